/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The skb tier: any driver, no knowledge of its ring. A packet is in flight from net_dev_start_xmit
 * until its skb is freed.
 */
#include "probes/bpf/flight.bpf.h"
#include "probes/bpf/programs.bpf.h"

/* raw_tp and not tp_btf: only the address is needed, and raw arguments are plain numbers. The first
 * argument is the skb in every kernel; later ones were added in 6.12 (consume_skb: location). */
SEC("raw_tp/consume_skb")
int on_consume_skb(struct bpf_raw_tracepoint_args *ctx)
{
	packet_freed(ctx->args[0], false);
	return 0;
}

SEC("raw_tp/kfree_skb")
int on_kfree_skb(struct bpf_raw_tracepoint_args *ctx)
{
	packet_freed(ctx->args[0], true);
	return 0;
}
