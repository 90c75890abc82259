/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ring tier: what is in flight, by the driver's own ring indices. A packet is in flight from
 * net_dev_start_xmit until a poll has moved the tail past its last descriptor.
 *
 * A driver's file defines before it includes this one:
 *   RING_INDEX_MASK  0 when indices wrap at the ring's size, else the mask of the free-running index
 *   bool ring_supported(void)                       all types and fields exist
 *   void ring_layout(struct rs_layout *)            offsets, for the eyes of people
 *   __u32 ring_size(__u64 dev, __u32 queue)         descriptors
 *   void ring_read(__u64 dev, __u32 queue, struct ring_view *)
 *   bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)   that instance completes that queue
 * and, when several instances or the driver's transmit function complete the same queue,
 *   RING_SHARED 1    needs Linux 5.12
 * and, when the driver has a timer of its own that schedules the poll,
 *   RING_TIMER 1
 *   __u32 ring_timer(__u64 dev, __u64 timer)        queue of the timer at that address, or RING_NO_QUEUE
 * `dev` is the address of the struct net_device.
 */
#ifndef RINGSIDE_RING_BPF_H
#define RINGSIDE_RING_BPF_H

#include "probes/bpf/txpath.bpf.h"

#ifndef RING_SHARED
#define RING_SHARED 0
#endif

#ifndef RING_TIMER
#define RING_TIMER 0
#endif

const volatile __u32 rs_fifo_size = 1024; /* a power of two, set before loading */

struct rs_ring rings[RS_MAX_QUEUES];
struct rs_layout layout;

/* Index: queue * rs_fifo_size + place. Sized before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_fifo_entry);
} fifos SEC(".maps");

static __always_inline struct rs_ring *ring_of(__u32 queue)
{
	return &rings[queue & (RS_MAX_QUEUES - 1)];
}

static __always_inline struct rs_fifo_entry *fifo_entry(__u32 queue, __u32 at)
{
	__u32 index = queue * rs_fifo_size + (at & (rs_fifo_size - 1));

	return bpf_map_lookup_elem(&fifos, &index);
}

/* Steps from one driver index to a later one. */
static __always_inline __u32 ring_step(const struct rs_ring *ring, __u32 from, __u32 to)
{
	if (RING_INDEX_MASK)
		return (to - from) & RING_INDEX_MASK;
	return to >= from ? to - from : to + ring->size - from;
}

static __always_inline void level_add(struct rs_level *level, __u32 n, __u64 now)
{
	level->n += n;
	level->n_t += (__u64)n * now;
}

static __noinline int ring_complete(__u32 index, __u32 wakeup);

/* ---- transmit side ---------------------------------------------------------------------------------- */

static __always_inline void ring_begin(struct rs_ring *ring, struct rs_xmit_cell *cell, __u64 dev, __u32 queue,
				       const struct ring_view *view, __u64 now)
{
	__u32 used;

	ring->size = ring_size(dev, queue);
	used = ring_step(ring, view->tail, view->head);
	if (used > ring->size) {
		__sync_fetch_and_add(&trouble.ring_odd, 1);
		return;
	}
	/* What is in the ring already counts as put in now. */
	level_add(&cell->descriptors, used, now);
	ring->head_index = view->head;
	ring->tail_index = view->tail;
	ring->tail = ring->head - used;
	ring->tail_epoch = ring->epoch;
	ring->flushed = 0;
	*(volatile __u32 *)&ring->ready = 1;
}

/* The driver's index is not where the last packet left it. */
static __always_inline void ring_moved(struct rs_ring *ring, struct rs_xmit_cell *cell, __u64 dev, __u32 queue,
				       const struct ring_view *view, __u64 now)
{
	__u32 step;

	if (view->head == 0 && view->tail == 0) {
		/* The driver has emptied the ring: reset, resize, reopen. The size is read again. */
		ring->size = ring_size(dev, queue);
		ring->head_index = 0;
		ring->epoch_head = ring->head;
		ring->epoch_ns = now;
		*(volatile __u32 *)&ring->epoch = ring->epoch + 1;
		return;
	}
	step = ring_step(ring, ring->head_index, view->head);
	if (step > ring->size) {
		__sync_fetch_and_add(&trouble.ring_odd, 1);
		step = 0;
	}
	ring->head += step;
	ring->head_index = view->head;
	cell->bypassed += step;
	level_add(&cell->descriptors, step, now);
}

static __always_inline void xmit_begin(const struct sk_buff *skb, const struct net_device *net_device)
{
	struct rs_xmit_cell *cell;
	struct rs_stash *stash = xmit_open(skb, net_device, &cell);
	struct ring_view view = {};
	struct rs_fifo_entry *entry;
	struct rs_ring *ring;
	__u64 dev;
	__u32 in;

	if (!stash)
		return;
	stash->paired = 0;
	dev = control.device;
	ring = ring_of(stash->queue);
	ring_read(dev, stash->queue, &view);
	if (!ring->ready)
		ring_begin(ring, cell, dev, stash->queue, &view, stash->start_ns);
	else if (view.head != ring->head_index)
		ring_moved(ring, cell, dev, stash->queue, &view, stash->start_ns);
	stash->ring_head = view.head;

	in = ring->fifo_in;
	entry = fifo_entry(stash->queue, in);
	if (!entry || in - *(volatile __u32 *)&ring->fifo_out >= rs_fifo_size)
		return;
	entry->start_ns = stash->start_ns;
	entry->seen_ns = 0;
	entry->begin = ring->head;
	entry->end = ring->head;
	entry->len = stash->len;
	entry->epoch = ring->epoch;
	/* Now, before the driver hands the descriptors to the hardware: its own barriers order this store
	 * before anything that a poll can see of the packet. */
	*(volatile __u32 *)&ring->fifo_in = in + 1;
	stash->paired = 1;
}

static __always_inline void xmit_end(const struct net_device *net_device, int rc)
{
	struct rs_stash *stash = stash_of_cpu();
	struct ring_view view = {};
	struct rs_fifo_entry *entry;
	struct rs_xmit_cell *cell;
	struct rs_queue *queue;
	struct rs_ring *ring;
	__u32 step, used;

	if (!stash || !stash->skb)
		return;
	cell = xmit_cell(stash->queue);
	if (!cell)
		return;
	queue = queue_state(stash->queue);
	ring = ring_of(stash->queue);
	ring_read(control.device, stash->queue, &view);
	step = ring_step(ring, stash->ring_head, view.head);

	if (rc == RS_NETDEV_TX_BUSY) {
		xmit_refused(stash, cell);
		step = 0;
	} else {
		if (rc)
			cell->errors += 1;
		if (!step)
			cell->swallowed += 1;
		else if (!stash->paired)
			cell->unpaired += 1;
	}
	if (!step) {
		if (stash->paired)
			*(volatile __u32 *)&ring->fifo_in = ring->fifo_in - 1;
	} else {
		ring->head += step;
		ring->head_index = view.head;
		level_add(&cell->descriptors, step, stash->start_ns);
		entry = fifo_entry(stash->queue, ring->fifo_in - 1);
		if (stash->paired && entry) {
			*(volatile __u32 *)&entry->end = ring->head;
			flow_add(&cell->sent, stash->len, stash->start_ns);
			queue->started += 1;
			note_in_flight(cell, queue);
		}
	}
	used = ring_step(ring, view.tail, view.head);
	if (used > ring->size)
		__sync_fetch_and_add(&trouble.ring_odd, 1);
	else if (used > cell->max_used)
		cell->max_used = used;
	if (RING_SHARED)
		ring_complete(stash->queue, RS_BY_OTHER);
	xmit_close(stash, cell, queue, net_device);
}

/* ---- completion side: one at a time for each queue ---------------------------------------------------- */

/* A global function is verified once, not once for each of the packets that a poll may complete. */
__noinline int ring_count_completed(__u32 index, __u32 len, __u64 start_ns, __u64 now)
{
	struct rs_done_cell *cell;

	if (index >= RS_MAX_QUEUES)
		return 0;
	cell = done_cell(index);
	if (cell)
		count_completed(cell, &queues[index], len, start_ns, now);
	return 0;
}

/* The ring was reset with the packet in it: no completion, but the end of a wait. */
__noinline int ring_count_lost(__u32 index, __u32 len, __u64 start_ns)
{
	struct rs_ring *ring = ring_of(index);
	struct rs_done_cell *cell;

	if (index >= RS_MAX_QUEUES)
		return 0;
	flow_add(&ring->lost, len, ring->lost_ns);
	cell = done_cell(index);
	if (cell)
		note_progress(cell, &queues[index], start_ns, ring->lost_ns);
	return 0;
}

#define RING_WALK 1024

/* Takes packets whose descriptors lie before `tail` out of the queue; those of an older epoch are lost.
 * Returns their number. */
__noinline int ring_take(__u32 index, __u32 tail, __u64 now)
{
	struct rs_ring *ring = ring_of(index);
	__u32 epoch = ring->tail_epoch;
	int i, taken = 0;

	for (i = 0; i < RING_WALK; i++) {
		struct rs_fifo_entry *entry;
		__u32 out = ring->fifo_out, end;

		if (out == *(volatile __u32 *)&ring->fifo_in)
			break;
		entry = fifo_entry(index, out);
		if (!entry)
			break;
		end = *(volatile __u32 *)&entry->end;
		if ((__s32)(entry->epoch - epoch) > 0)
			break;
		if (entry->epoch != epoch) {
			ring_count_lost(index, entry->len, entry->start_ns);
		} else if (end == entry->begin) {
			/* Still in the driver's xmit function on another CPU. */
			if ((__s32)(tail - end) > 0 && !entry->seen_ns)
				entry->seen_ns = now;
			break;
		} else if ((__s32)(tail - end) < 0) {
			break;
		} else {
			ring_count_completed(index, entry->len, entry->start_ns,
					     entry->seen_ns ? entry->seen_ns : now);
		}
		*(volatile __u32 *)&ring->fifo_out = out + 1;
		taken++;
	}
	return taken;
}

/* True while a packet is between net_dev_start_xmit and net_dev_xmit. */
static __always_inline bool xmit_in_progress(__u32 index, const struct rs_ring *ring)
{
	__u32 in = *(volatile __u32 *)&ring->fifo_in;
	struct rs_fifo_entry *last = fifo_entry(index, in - 1);

	return in != ring->fifo_out && last && *(volatile __u32 *)&last->end == last->begin;
}

static __always_inline void ring_lose_descriptors(struct rs_ring *ring, __u32 head, __u64 when)
{
	ring->lost_ns = when;
	level_add(&ring->lost_descriptors, head - ring->tail, when);
	ring->tail = head;
	ring->tail_index = 0;
}

__noinline int ring_advance(__u32 index, __u32 wakeup)
{
	struct rs_ring *ring = ring_of(index);
	struct rs_done_cell *cell;
	struct ring_view view = {};
	__u64 now = now_ns();
	__u32 step, epoch;
	int round, taken, sum = 0;

	if (index >= RS_MAX_QUEUES)
		return 0;
	cell = done_cell(index);
	if (!cell)
		return 0;
	epoch = *(volatile __u32 *)&ring->epoch;
	ring_read(control.device, index, &view);

	if (ring->tail_epoch != epoch) {
		ring_lose_descriptors(ring, ring->epoch_head, ring->epoch_ns);
		ring->tail_epoch = epoch;
		ring->flushed = 0;
	} else if (ring->flushed) {
		return 0;
	} else if (view.head == 0 && view.tail == 0 && ring->head_index != 0 &&
		   !xmit_in_progress(index, ring)) {
		/* Emptied, and nothing sent since: no packet of this epoch will ever complete. */
		ring_lose_descriptors(ring, ring->head, now);
		ring->tail_epoch = epoch + 1;
		ring->flushed = 1;
	}
	step = ring->flushed ? 0 : ring_step(ring, ring->tail_index, view.tail);
	if (step > ring->size) {
		__sync_fetch_and_add(&trouble.ring_odd, 1);
		step = 0;
	}
	if (step) {
		ring->tail += step;
		ring->tail_index = view.tail;
		level_add(&cell->descriptors, step, now);
		cell->batches += 1;
		if (wakeup < RS_WAKEUPS)
			cell->batches_by[wakeup] += 1;
		if (step > cell->max_batch)
			cell->max_batch = step;
	}
	for (round = 0; round < RS_FIFO_MAX / RING_WALK; round++) {
		taken = ring_take(index, ring->tail, now);
		sum += taken;
		if (taken < RING_WALK)
			break;
	}
	queues[index].finished += (__u32)sum;
	if (ring->flushed)
		ring->tail_epoch = epoch;
	return 0;
}

/* Whoever finds another at it goes on: that one sees the same ring. */
static __noinline int ring_complete(__u32 index, __u32 wakeup)
{
	struct rs_ring *ring = ring_of(index);

	if (!RING_SHARED)
		return ring_advance(index, wakeup);
	if (__sync_val_compare_and_swap(&ring->busy, 0, 1))
		return 0;
	ring_advance(index, wakeup);
	/* An exchange and not a store: it orders what was written before. */
	__sync_lock_test_and_set(&ring->busy, 0);
	return 0;
}

/* The timer first: it schedules the queue's poll and nothing else, while an interrupt may have been for
 * something that was received. */
static __always_inline __u32 wakeup_of(const struct rs_queue *queue, const struct poll_view *poll)
{
	if (queue->timer_ns > poll->before_ns)
		return RS_BY_TIMER;
	return poll->by_irq ? RS_BY_IRQ : RS_BY_OTHER;
}

static __always_inline void rings_polled(const struct napi_struct *napi, const struct poll_view *poll)
{
	__u64 dev = control.device;
	__u32 i;

	for (i = 0; i < RS_MAX_QUEUES; i++) {
		const struct rs_ring *ring = &rings[i];

		if (i >= rs_num_queues)
			break;
		if (!*(volatile __u32 *)&ring->ready ||
		    (ring->fifo_in == ring->fifo_out && ring->head == ring->tail))
			continue;
		if (ring_polled_by(dev, i, (__u64)napi))
			ring_complete(i, wakeup_of(&queues[i], poll));
	}
}

#if RING_TIMER
static __always_inline void timer_expired(__u64 timer)
{
	struct rs_queue *queue;
	__u32 index;

	if (!control.ifindex || !control.device)
		return;
	index = ring_timer(control.device, timer);
	if (index >= rs_num_queues)
		return;
	queue = queue_state(index);
	queue->timers += 1;
	queue->timer_ns = now_ns();
}

/* raw_tp: the address of the timer is compared and computed with, which the verifier allows for plain numbers
 * only. */
SEC("raw_tp/hrtimer_expire_entry")
int BPF_PROG(on_hrtimer_expire_entry, void *timer)
{
	timer_expired((__u64)timer);
	return 0;
}

/* What drivers used before. */
SEC("raw_tp/timer_expire_entry")
int BPF_PROG(on_timer_expire_entry, void *timer)
{
	timer_expired((__u64)timer);
	return 0;
}
#endif

/* Run once by user space after loading: tells what relocation has found. */
SEC("raw_tp")
int on_layout(void *ctx)
{
	bool found = ring_supported();

	layout.found = found;
	if (found)
		ring_layout(&layout);
	return 0;
}

#endif
