/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The programs of every tier. What a tier does of its own is in xmit_begin(), xmit_end() and
 * rings_polled(), which flight.bpf.h or ring.bpf.h must have defined before.
 */
#ifndef RINGSIDE_PROGRAMS_BPF_H
#define RINGSIDE_PROGRAMS_BPF_H

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(on_net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	if (is_target(dev))
		xmit_begin(skb, dev);
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(on_net_dev_xmit, struct sk_buff *skb, int rc, struct net_device *dev)
{
	if (is_target(dev))
		xmit_end(dev, rc);
	return 0;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(on_napi_poll, struct napi_struct *napi, int work, int budget)
{
	/* Instances without a device (busy polling, threaded backlog) have a NULL dev. */
	if (!napi->dev || !is_target(napi->dev))
		return 0;
	poll_ended(napi, work, budget);
	rings_polled(napi);
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

#endif
