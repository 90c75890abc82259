/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The program bodies that all drivers share: maps, accounting of the transmit and the completion side,
 * stops, NAPI. It collects; what the figures mean is decided in user space.
 *
 * Linux 5.10 features only: no atomics that return a value, no bpf_loop, no kfuncs.
 */
#ifndef RINGSIDE_TXPATH_BPF_H
#define RINGSIDE_TXPATH_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/bpf/events.h"
#include "probes/bpf/kernel_types.bpf.h"

/* Set before loading. */
const volatile __u32 rs_num_queues = 1;
const volatile __u32 rs_num_cpus = 1;

/* Shared with user space through memory maps; see events.h. */
struct rs_control control;
struct rs_trouble trouble;
struct rs_queue queues[RS_MAX_QUEUES];
struct rs_napi napis[RS_MAX_NAPI];
struct rs_napi_cell napi_cells[RS_SLOTS * RS_MAX_NAPI];

/* Index: (slot * rs_num_queues + queue) * rs_num_cpus + cpu. Sized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_xmit_cell);
} xmit_cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_done_cell);
} done_cells SEC(".maps");

/* An array and not a per-CPU array: look-ups in it are inlined by every kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_stash);
} stashes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_cpu);
} cpus SEC(".maps");

/* By Linux number: 1 for an interrupt of the device. Written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RS_MAX_IRQ);
	__type(key, __u32);
	__type(value, __u64);
} watched_irqs SEC(".maps");

static __always_inline __u64 now_ns(void)
{
	return bpf_ktime_get_boot_ns();
}

/*
 * By ifindex and namespace: a name can change. The address that was found so is remembered, so that a
 * packet of the device costs one comparison; the ifindex is still looked at, because the address may be
 * used again for another device before user space has heard that this one is gone.
 */
static __always_inline bool is_target(const struct net_device *dev)
{
	if (dev->ifindex != (int)control.ifindex)
		return false;
	if ((__u64)dev == control.device)
		return true;
	if (bpf_core_field_exists(dev->nd_net.net) && dev->nd_net.net->ns.inum != control.netns_inum)
		return false;
	*(volatile __u64 *)&control.device = (__u64)dev;
	return true;
}

static __always_inline __u32 cell_index(__u32 queue)
{
	return ((control.slot & (RS_SLOTS - 1)) * rs_num_queues + queue) * rs_num_cpus +
	       bpf_get_smp_processor_id();
}

static __always_inline struct rs_xmit_cell *xmit_cell(__u32 queue)
{
	__u32 index = cell_index(queue);

	return bpf_map_lookup_elem(&xmit_cells, &index);
}

static __always_inline struct rs_done_cell *done_cell(__u32 queue)
{
	__u32 index = cell_index(queue);

	return bpf_map_lookup_elem(&done_cells, &index);
}

static __always_inline struct rs_stash *stash_of_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&stashes, &cpu);
}

static __always_inline struct rs_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/*
 * Cells are per CPU and each field has one program that writes it, so plain additions do: the kernel does
 * not run a program inside itself on the same CPU (from 6.1 on it skips and counts that: recursion_misses).
 */
static __always_inline void flow_add(struct rs_flow *flow, __u32 bytes, __u64 now)
{
	flow->packets += 1;
	flow->packets_t += now;
	flow->bytes += bytes;
	flow->bytes_t += (__u64)bytes * now;
}

/* ---- stops ------------------------------------------------------------------------------------- */

static __always_inline void stop_observe(struct rs_stop *stop, bool stopped, __u64 now)
{
	__u64 begins = stop->begins;
	bool open = begins != stop->ends;

	if (stopped && !open) {
		stop->begin_ns = now;
		stop->base_ns = stop->closed_ns;
		stop->begins = begins + 1;
	} else if (!stopped && open) {
		__u64 length = now - stop->begin_ns;

		stop->closed_ns = stop->base_ns + length;
		if (length > stop->longest_ns)
			stop->longest_ns = length;
		stop->ends = begins;
	}
}

static __always_inline bool stop_differs(const struct rs_stop *stop, bool stopped)
{
	return stopped != (stop->begins != stop->ends);
}

/* Reads the clock only when something has changed. */
static __always_inline void stops_observe(struct rs_queue *queue, unsigned long state)
{
	bool driver = state & RS_QUEUE_STATE_DRV_XOFF;
	bool bql = state & RS_QUEUE_STATE_STACK_XOFF;

	if (stop_differs(&queue->stop[RS_STOP_DRIVER], driver) ||
	    stop_differs(&queue->stop[RS_STOP_BQL], bql)) {
		__u64 now = now_ns();

		stop_observe(&queue->stop[RS_STOP_DRIVER], driver, now);
		stop_observe(&queue->stop[RS_STOP_BQL], bql, now);
	}
}

static __always_inline bool has_open_stop(const struct rs_queue *queue)
{
	return queue->stop[RS_STOP_DRIVER].begins != queue->stop[RS_STOP_DRIVER].ends ||
	       queue->stop[RS_STOP_BQL].begins != queue->stop[RS_STOP_BQL].ends;
}

/* ---- BQL and the queue state word ---------------------------------------------------------------- */

struct txq_view {
	unsigned long state;
	__u32 queued;
	__u32 completed;
};

/* By address: for any queue but the first, because a typed pointer plus a variable is refused by the
 * verifier. */
static __always_inline void txq_read(__u64 txq, struct txq_view *view)
{
	bpf_probe_read_kernel(&view->state, sizeof(view->state),
			      (void *)(txq + bpf_core_field_offset(struct netdev_queue, state)));
	if (bpf_core_field_exists(((struct netdev_queue *)0)->dql)) {
		bpf_probe_read_kernel(&view->queued, sizeof(view->queued),
				      (void *)(txq + bpf_core_field_offset(struct netdev_queue,
									   dql.num_queued)));
		bpf_probe_read_kernel(&view->completed, sizeof(view->completed),
				      (void *)(txq + bpf_core_field_offset(struct netdev_queue,
									   dql.num_completed)));
	}
}

/* By typed loads: what most boards use most of the time, and several times cheaper. */
static __always_inline void txq_read_first(const struct net_device *dev, struct txq_view *view)
{
	const struct netdev_queue *txq = dev->_tx;

	view->state = txq->state;
	if (bpf_core_field_exists(txq->dql)) {
		view->queued = txq->dql.num_queued;
		view->completed = txq->dql.num_completed;
	}
}

/* Assignments computed from one pair of old values: two CPUs that see the same step write the same. */
static __always_inline void bql_observe_out(struct rs_queue *queue, __u32 completed, __u64 now)
{
	__s32 step = completed - queue->bql_out_last;

	/* Negative: read before another CPU saw a later value. */
	if (step > 0) {
		__u64 out = queue->bql_out + (__u32)step;
		__u64 out_t = queue->bql_out_t + (__u32)step * now;

		queue->bql_out_last = completed;
		queue->bql_out = out;
		queue->bql_out_t = out_t;
	}
}

static __always_inline void bql_observe_in(struct rs_queue *queue, const struct txq_view *view, __u64 now)
{
	__u32 step;

	if (!queue->bql_seen) {
		/* What is in flight already counts as given now. */
		queue->bql_in_last = view->completed;
		queue->bql_out_last = view->completed;
		queue->bql_seen = 1;
	}
	step = view->queued - queue->bql_in_last;
	if ((__s32)step < 0) {
		/* netdev_tx_reset_queue() starts both counters at 0 again: all that was in flight is gone. */
		__u64 gone = queue->bql_in - queue->bql_out;

		queue->bql_in_last = 0;
		queue->bql_out_last = 0;
		queue->bql_out += gone;
		queue->bql_out_t += gone * now;
		step = view->queued;
	}
	if (step) {
		queue->bql_in_last = view->queued;
		queue->bql_in += step;
		queue->bql_in_t += (__u64)step * now;
	}
}

static __always_inline struct rs_queue *queue_state(__u32 queue)
{
	return &queues[queue & (RS_MAX_QUEUES - 1)];
}

/* ---- transmit side ---------------------------------------------------------------------------------- */

/* Frames and bytes on the wire of a GSO packet: each segment carries the headers again. */
static __always_inline void measure_segments(const struct sk_buff *skb, struct rs_stash *stash)
{
	struct skb_shared_info *shared = (void *)(skb->head + skb->end);
	__u16 gso_size = 0, gso_segs = 0;
	__u32 gso_type = 0, header;
	__u64 transport;

	stash->segments = 1;
	stash->wire_bytes = stash->len;
	/* A GSO packet has fragments or a checksum that is left to the device. */
	if (!skb->data_len && BPF_CORE_READ_BITFIELD(skb, ip_summed) != RS_CHECKSUM_PARTIAL)
		return;
	bpf_probe_read_kernel(&gso_size, sizeof(gso_size),
			      (void *)shared + bpf_core_field_offset(struct skb_shared_info, gso_size));
	if (!gso_size)
		return;
	bpf_probe_read_kernel(&gso_segs, sizeof(gso_segs),
			      (void *)shared + bpf_core_field_offset(struct skb_shared_info, gso_segs));
	bpf_probe_read_kernel(&gso_type, sizeof(gso_type),
			      (void *)shared + bpf_core_field_offset(struct skb_shared_info, gso_type));

	transport = (__u64)skb->head + (BPF_CORE_READ_BITFIELD(skb, encapsulation)
						? skb->inner_transport_header
						: skb->transport_header);
	header = transport - (__u64)skb->data;
	if (gso_type & (RS_SKB_GSO_TCPV4 | RS_SKB_GSO_TCPV6)) {
		__u8 data_offset = 0;

		/* High four bits of byte 12 of the TCP header: its length in 32-bit words. */
		bpf_probe_read_kernel(&data_offset, sizeof(data_offset), (void *)(transport + 12));
		header += (data_offset >> 4) * 4;
	} else {
		header += 8; /* UDP */
	}
	/* gso_segs may be 0 for packets that come from outside (virtio, TAP). */
	if (!gso_segs && stash->len > header)
		gso_segs = (stash->len - header + gso_size - 1) / gso_size;
	if (gso_segs > 1) {
		stash->segments = gso_segs;
		stash->wire_bytes += (gso_segs - 1) * header;
	}
}

/* Notes the packet in the stash of this CPU and counts it. NULL: a queue that has no cells. */
static __always_inline struct rs_stash *xmit_open(const struct sk_buff *skb, const struct net_device *dev,
						  struct rs_xmit_cell **cell_out)
{
	__u32 index = skb->queue_mapping;
	struct rs_stash *stash = stash_of_cpu();
	struct rs_xmit_cell *cell;
	struct rs_queue *queue;

	if (!stash)
		return NULL;
	if (index >= rs_num_queues) {
		__sync_fetch_and_add(&trouble.queue_beyond, 1);
		return NULL;
	}
	cell = xmit_cell(index);
	if (!cell)
		return NULL;
	queue = queue_state(index);

	*(volatile __u64 *)&stash->skb = (__u64)skb;
	if (!queue->txq) {
		*(volatile __u64 *)&stash->scratch = (__u64)dev->_tx;
		queue->txq = *(volatile __u64 *)&stash->scratch +
			     index * bpf_core_type_size(struct netdev_queue);
	}
	stash->queue = index;
	stash->len = skb->len;
	measure_segments(skb, stash);
	stash->start_ns = now_ns();

	cell->packets += 1;
	cell->bytes += stash->len;
	cell->segments += stash->segments;
	cell->wire_bytes += stash->wire_bytes;
	*cell_out = cell;
	return stash;
}

/* NETDEV_TX_BUSY: the driver did not take the packet, the qdisc keeps it and will send it again. */
static __always_inline void xmit_refused(const struct rs_stash *stash, struct rs_xmit_cell *cell)
{
	cell->requeued += 1;
	cell->requeued_bytes += stash->len;
	cell->segments -= stash->segments;
	cell->wire_bytes -= stash->wire_bytes;
}

/* What the queue looks like after the driver has taken the packet or refused it. */
static __always_inline void xmit_close(struct rs_stash *stash, struct rs_xmit_cell *cell, struct rs_queue *queue,
				       const struct net_device *dev)
{
	struct txq_view view = {};
	__u32 bql_bytes;

	if (stash->queue == 0)
		txq_read_first(dev, &view);
	else
		txq_read(queue->txq, &view);
	bql_observe_in(queue, &view, stash->start_ns);
	/* For drivers that complete outside a NAPI poll of their own. */
	bql_observe_out(queue, view.completed, stash->start_ns);
	bql_bytes = view.queued - view.completed;
	if ((__s32)bql_bytes > (__s64)cell->max_bql_bytes)
		cell->max_bql_bytes = bql_bytes;
	stops_observe(queue, view.state);
	stash->skb = 0;
}

/* In flight as the transmit side sees it now. */
static __always_inline void note_in_flight(struct rs_xmit_cell *cell, struct rs_queue *queue)
{
	__u64 in_flight = *(volatile __u64 *)&queue->started - *(volatile __u64 *)&queue->finished;

	if ((__s64)in_flight > (__s64)cell->max_in_flight)
		cell->max_in_flight = in_flight;
}

/* ---- completion side --------------------------------------------------------------------------------- */

/* Something was in flight from `start_ns` on, or since the last packet left, and leaves at `now`. */
static __always_inline void note_progress(struct rs_done_cell *cell, struct rs_queue *queue, __u64 start_ns,
					  __u64 now)
{
	__u64 progress = queue->last_ns > start_ns ? queue->last_ns : start_ns;

	if (now > progress && now - progress > cell->max_gap_ns) {
		cell->max_gap_ns = now - progress;
		cell->max_gap_end_ns = now;
	}
	queue->last_ns = now;
}

/* One packet that was given at `start_ns` has left at `now`. */
static __always_inline void count_completed(struct rs_done_cell *cell, struct rs_queue *queue, __u32 len,
					    __u64 start_ns, __u64 now)
{
	__u64 latency = now - start_ns;
	__u32 bucket;

	flow_add(&cell->completed, len, now);
	cell->latency_ns += latency;
	if (latency > cell->max_latency_ns)
		cell->max_latency_ns = latency;
	bucket = rs_hist_index(latency);
	if (bucket < RS_HIST_BUCKETS)
		cell->latency[bucket] += 1;
	note_progress(cell, queue, start_ns, now);
}

/* Looks at every queue that may have changed outside the transmit path. */
static __always_inline void queues_observe(bool only_stopped, bool bql)
{
	__u32 i;

	for (i = 0; i < RS_MAX_QUEUES; i++) {
		struct txq_view view = {};
		struct rs_queue *queue;

		if (i >= rs_num_queues)
			break;
		queue = &queues[i];
		if (!queue->txq || (only_stopped && !has_open_stop(queue)))
			continue;
		txq_read(queue->txq, &view);
		stops_observe(queue, view.state);
		if (bql && queue->bql_seen)
			bql_observe_out(queue, view.completed, now_ns());
	}
}

/* ---- NAPI ---------------------------------------------------------------------------------------------- */

static __always_inline __u32 napi_index(const struct napi_struct *napi)
{
	__u32 i;

	for (i = 0; i < RS_MAX_NAPI; i++) {
		if (napis[i].key == (__u64)napi)
			return i;
		if (!napis[i].key) {
			napis[i].key = (__u64)napi;
			return i;
		}
	}
	return RS_MAX_NAPI;
}

/*
 * Which interrupt made this poll run, from tracepoints that every kernel has and not from the driver's
 * functions, whose symbols come and go. It came on this CPU, before the poll began, not longer ago than one
 * NET_RX softirq, and no other poll of the instance has answered it. With several interrupts of the device
 * on one CPU it is the last of them. 0: none, or not to be told: a poll in a thread of its own begins at
 * a moment that no tracepoint shows.
 */
static __always_inline __u64 irq_of_poll(const struct napi_struct *napi, const struct rs_napi *known,
					 const struct rs_cpu *cpu)
{
	if (bpf_core_field_exists(napi->thread) && napi->thread)
		return 0;
	if (cpu->irq_ns <= known->irq_ns || cpu->irq_ns > cpu->free_ns || cpu->pass - cpu->irq_pass > 1)
		return 0;
	return cpu->irq_ns;
}

/* What rings_polled() has to know of the poll. */
struct poll_view {
	__u64 before_ns; /* end of the poll before of the same instance, 0: there was none */
	bool by_irq;
};

static __always_inline void poll_ended(const struct napi_struct *napi, int work, int budget,
				       const struct rs_cpu *cpu, __u64 now, struct poll_view *view)
{
	__u32 i = napi_index(napi), bucket;
	struct rs_napi_cell *cell;
	__u64 gap, irq_ns;

	if (i >= RS_MAX_NAPI) {
		__sync_fetch_and_add(&trouble.napi_beyond, 1);
		view->before_ns = now;
		return;
	}
	cell = &napi_cells[((control.slot & (RS_SLOTS - 1)) * RS_MAX_NAPI + i) &
			   (RS_SLOTS * RS_MAX_NAPI - 1)];
	cell->polls += 1;
	cell->work += (__u32)work;
	cell->budget += (__u32)budget;
	if (budget && work >= budget)
		cell->exhausted += 1;
	view->before_ns = napis[i].last_ns;
	if (napis[i].last_ns) {
		gap = now - napis[i].last_ns;
		cell->gap_ns += gap;
		if (gap > cell->max_gap_ns)
			cell->max_gap_ns = gap;
		bucket = rs_hist_index(gap);
		if (bucket < RS_HIST_BUCKETS)
			cell->gap[bucket] += 1;
	}
	napis[i].last_ns = now;

	irq_ns = irq_of_poll(napi, &napis[i], cpu);
	if (irq_ns) {
		__u64 wait = cpu->free_ns - irq_ns;

		view->by_irq = true;
		napis[i].irq_ns = irq_ns;
		cell->irq_polls += 1;
		cell->irq_to_poll_ns += wait;
		if (wait > cell->max_irq_to_poll_ns)
			cell->max_irq_to_poll_ns = wait;
		bucket = rs_hist_index(wait);
		if (bucket < RS_HIST_BUCKETS)
			cell->irq_to_poll[bucket] += 1;
	}
}

#endif
