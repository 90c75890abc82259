/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An independent look at a stopped queue: run from user space again and again, it reads the queue's
 * state word. It knows nothing of packets, stops and wakes; the share of samples that find the queue
 * stopped is the share of time that it was stopped.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/bpf/kernel_types.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u32 ifindex;
__u64 txq;
__u64 samples;
__u64 stopped;

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(find_queue, const struct sk_buff *skb, const struct net_device *dev)
{
	if (!txq && dev->ifindex == (int)ifindex)
		*(volatile __u64 *)&txq = (__u64)dev->_tx;
	return 0;
}

/* Never attached: BPF_PROG_TEST_RUN runs it, on the CPU of the caller. */
SEC("raw_tp")
int sample(void *ctx)
{
	unsigned long state = 0;

	if (!txq)
		return 0;
	bpf_probe_read_kernel(&state, sizeof(state),
			      (void *)(txq + bpf_core_field_offset(struct netdev_queue, state)));
	samples += 1;
	if (state & RS_QUEUE_STATE_DRV_XOFF)
		stopped += 1;
	return 0;
}
