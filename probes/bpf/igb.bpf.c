/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * igb: Intel's gigabit controllers. Rings of their own allocation, indices that wrap at the ring's size.
 */
#include "probes/bpf/netdev_priv.bpf.h"

#define RING_INDEX_MASK 0
#define RS_IGB_QUEUES 16

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct igb_q_vector {
	struct napi_struct napi;
};

struct igb_ring {
	struct igb_q_vector *q_vector;
	__u16 count;
	__u16 next_to_clean;
	__u16 next_to_use;
};

struct igb_adapter {
	struct igb_ring *tx_ring[RS_IGB_QUEUES];
};

#pragma clang attribute pop

static __always_inline bool ring_supported(void)
{
	return bpf_core_field_exists(struct igb_adapter, tx_ring) &&
	       bpf_core_field_exists(struct igb_ring, next_to_use) &&
	       bpf_core_field_exists(struct igb_ring, next_to_clean) &&
	       bpf_core_field_exists(struct igb_ring, count) &&
	       bpf_core_field_exists(struct igb_ring, q_vector) &&
	       bpf_core_field_exists(struct igb_q_vector, napi);
}

/* Of struct igb_ring, to which the private data point. */
static __always_inline void ring_layout(struct rs_layout *to)
{
	to->head_offset = bpf_core_field_offset(struct igb_ring, next_to_use);
	to->tail_offset = bpf_core_field_offset(struct igb_ring, next_to_clean);
}

static __always_inline __u64 tx_ring_of(__u64 dev, __u32 queue)
{
	return read_u64(netdev_priv_of(dev) + bpf_core_field_offset(struct igb_adapter, tx_ring) + queue * 8);
}

static __always_inline __u32 ring_size(__u64 dev, __u32 queue)
{
	return read_u16(tx_ring_of(dev, queue) + bpf_core_field_offset(struct igb_ring, count));
}

static __always_inline void ring_read(__u64 dev, __u32 queue, struct ring_view *view)
{
	__u64 ring = tx_ring_of(dev, queue);

	view->head = read_u16(ring + bpf_core_field_offset(struct igb_ring, next_to_use));
	view->tail = read_u16(ring + bpf_core_field_offset(struct igb_ring, next_to_clean));
}

static __always_inline bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	__u64 ring = tx_ring_of(dev, queue);

	return ring && napi == read_u64(ring + bpf_core_field_offset(struct igb_ring, q_vector)) +
				       bpf_core_field_offset(struct igb_q_vector, napi);
}

#include "probes/bpf/ring.bpf.h"
#include "probes/bpf/programs.bpf.h"
