/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets in flight by the address of their skb: from net_dev_start_xmit until the skb is freed. For any
 * driver, without knowing its ring.
 */
#ifndef RINGSIDE_FLIGHT_BPF_H
#define RINGSIDE_FLIGHT_BPF_H

#include "probes/bpf/txpath.bpf.h"

struct rs_flight_bucket flight[RS_FLIGHT_BUCKETS];

static __always_inline __u32 flight_index(__u64 key)
{
	return (key * 0x9E3779B97F4A7C15ULL) >> (64 - RS_FLIGHT_SHIFT);
}

/* Place of `key` in its bucket, RS_FLIGHT_WAYS when it is not there. */
static __always_inline __u32 flight_find(const struct rs_flight_bucket *bucket, __u64 key)
{
	if (bucket->key[0] == key)
		return 0;
	if (bucket->key[1] == key)
		return 1;
	if (bucket->key[2] == key)
		return 2;
	return RS_FLIGHT_WAYS;
}

static __always_inline bool flight_put(struct rs_flight_bucket *bucket, __u64 key, __u64 start_ns, __u32 info)
{
	__u32 way = flight_find(bucket, 0);

	if (way >= RS_FLIGHT_WAYS)
		return false;
	bucket->start_ns[way] = start_ns;
	bucket->info[way] = info;
	barrier_var(way);
	bucket->key[way] = key;
	return true;
}

/* Takes `key` out. False when it is not there, which is what happens for most skbs of the system: that
 * path is one hash and one cache line. */
static __always_inline bool flight_take(__u64 key, __u64 *start_ns, __u32 *info)
{
	__u32 index = flight_index(key);
	struct rs_flight_bucket *bucket = &flight[index & (RS_FLIGHT_BUCKETS - 1)];
	__u32 way = flight_find(bucket, key);

	if (way >= RS_FLIGHT_WAYS) {
		if (!bucket->spilled)
			return false;
		bucket = &flight[(index ^ 1) & (RS_FLIGHT_BUCKETS - 1)];
		way = flight_find(bucket, key);
		if (way >= RS_FLIGHT_WAYS)
			return false;
	}
	*start_ns = bucket->start_ns[way];
	*info = bucket->info[way];
	bucket->key[way] = 0;
	return true;
}

static __always_inline bool flight_add(__u64 key, __u64 start_ns, __u32 info)
{
	__u32 index = flight_index(key);
	struct rs_flight_bucket *bucket = &flight[index & (RS_FLIGHT_BUCKETS - 1)];

	if (flight_put(bucket, key, start_ns, info))
		return true;
	/* Never taken back: a needless look at the neighbour costs less than keeping count. */
	bucket->spilled = 1;
	return flight_put(&flight[(index ^ 1) & (RS_FLIGHT_BUCKETS - 1)], key, start_ns, info);
}

/* A packet whose skb is sent again while it is still in the table: its completion was not seen. */
static __always_inline void retire_stale(__u64 key, __u64 now)
{
	struct rs_xmit_cell *cell;
	__u64 start_ns;
	__u32 info;

	if (!flight_take(key, &start_ns, &info))
		return;
	cell = xmit_cell(info >> RS_INFO_LEN_BITS);
	if (cell)
		flow_add(&cell->stale, info & RS_INFO_LEN_MASK, now);
	__sync_fetch_and_add(&queue_state(info >> RS_INFO_LEN_BITS)->finished, 1);
}

static __always_inline void xmit_begin(const struct sk_buff *skb, const struct net_device *dev)
{
	struct rs_xmit_cell *cell;
	struct rs_stash *stash = xmit_open(skb, dev, &cell);
	struct rs_queue *queue;
	__u64 key;

	if (!stash)
		return;
	queue = queue_state(stash->queue);
	key = *(volatile __u64 *)&stash->skb;

	retire_stale(key, stash->start_ns);
	stash->paired = flight_add(key, stash->start_ns, RS_INFO(stash->queue, stash->len & RS_INFO_LEN_MASK));
	if (!stash->paired) {
		cell->unpaired += 1;
		return;
	}
	flow_add(&cell->sent, stash->len, stash->start_ns);
	/* Atomic for drivers without a TX lock (veth, tun), where several CPUs transmit on one queue. */
	__sync_fetch_and_add(&queue->started, 1);
	note_in_flight(cell, queue);
}

static __always_inline void xmit_end(const struct net_device *dev, int rc)
{
	struct rs_stash *stash = stash_of_cpu();
	struct rs_xmit_cell *cell;
	struct rs_queue *queue;
	__u64 start_ns;
	__u32 info;

	/* The skb may be gone here: its queue is remembered from net_dev_start_xmit. */
	if (!stash || !stash->skb)
		return;
	cell = xmit_cell(stash->queue);
	if (!cell)
		return;
	queue = queue_state(stash->queue);

	if (rc == RS_NETDEV_TX_BUSY) {
		xmit_refused(stash, cell);
		if (!stash->paired) {
			cell->unpaired -= 1;
		} else if (flight_take(stash->skb, &start_ns, &info)) {
			flow_add(&cell->returned, stash->len, now_ns());
			__sync_fetch_and_add(&queue->finished, 1);
		}
	} else if (rc) {
		cell->errors += 1;
	}
	xmit_close(stash, cell, queue, dev);
}

static __always_inline void packet_freed(__u64 key, bool dropped)
{
	struct rs_done_cell *cell;
	struct rs_queue *queue;
	__u64 start_ns, now;
	__u32 info, len;

	if (!flight_take(key, &start_ns, &info))
		return;
	cell = done_cell(info >> RS_INFO_LEN_BITS);
	if (!cell)
		return;
	queue = queue_state(info >> RS_INFO_LEN_BITS);
	len = info & RS_INFO_LEN_MASK;
	now = now_ns();

	__sync_fetch_and_add(&queue->finished, 1);
	/* A drop is not progress: a full queue drops packets while its hardware stands still. */
	if (dropped)
		flow_add(&cell->dropped, len, now);
	else
		count_completed(cell, queue, len, start_ns, now);
}

/* NAPI polls complete nothing that the free tracepoints do not see. */
static __always_inline void rings_polled(const struct napi_struct *napi, const struct poll_view *poll)
{
}

#endif
