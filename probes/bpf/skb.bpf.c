/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The skb tier: any driver, no knowledge of its ring. A packet is in flight from net_dev_start_xmit
 * until its skb is freed.
 */
#include "probes/bpf/txpath.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(on_net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	if (is_target(dev))
		xmit_begin(skb, dev);
	return 0;
}

/* The skb may be gone here: its queue is remembered from net_dev_start_xmit. */
SEC("tp_btf/net_dev_xmit")
int BPF_PROG(on_net_dev_xmit, struct sk_buff *skb, int rc, struct net_device *dev)
{
	if (is_target(dev))
		xmit_end(dev, rc);
	return 0;
}

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

SEC("tp_btf/napi_poll")
int BPF_PROG(on_napi_poll, struct napi_struct *napi, int work, int budget)
{
	/* Instances without a device (busy polling, threaded backlog) have a NULL dev. */
	if (!napi->dev || !is_target(napi->dev))
		return 0;
	poll_ended(napi, work, budget);
	queues_observe(false, true);
	return 0;
}

/* netif_tx_wake_queue() and netif_schedule_queue() end in a raise of NET_TX: the moment of the wake,
 * without a kprobe. */
SEC("tp_btf/softirq_raise")
int BPF_PROG(on_softirq_raise, unsigned int vector)
{
	if (vector == RS_NET_TX_SOFTIRQ)
		queues_observe(true, false);
	return 0;
}

SEC("tp_btf/net_dev_xmit_timeout")
int BPF_PROG(on_net_dev_xmit_timeout, struct net_device *dev, int queue)
{
	if (is_target(dev) && queue >= 0 && (__u32)queue < rs_num_queues)
		__sync_fetch_and_add(&queue_state(queue)->watchdogs, 1);
	return 0;
}
