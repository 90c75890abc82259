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
	struct rs_cpu *cpu = this_cpu();
	struct poll_view poll = {};
	__u64 now;

	if (!cpu)
		return 0;
	now = now_ns();
	/* Instances without a device (busy polling, threaded backlog) have a NULL dev. */
	if (napi->dev && is_target(napi->dev)) {
		poll_ended(napi, work, budget, cpu, now, &poll);
		rings_polled(napi, &poll);
		queues_observe(false, true);
	}
	cpu->free_ns = now;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq_entry, unsigned int vector)
{
	struct rs_cpu *cpu;

	if (vector != RS_NET_RX_SOFTIRQ)
		return 0;
	cpu = this_cpu();
	if (cpu) {
		cpu->pass += 1;
		cpu->free_ns = now_ns();
	}
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq_handler_entry, int irq)
{
	const __u64 *watched = bpf_map_lookup_elem(&watched_irqs, &irq);
	struct rs_cpu *cpu;

	if (!watched || !*watched)
		return 0;
	cpu = this_cpu();
	if (cpu) {
		cpu->irqs += 1;
		cpu->irq_ns = now_ns();
		cpu->irq_pass = cpu->pass;
	}
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
