/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * r8125: Realtek's own driver for its 2.5-gigabit controllers. Free-running indices in each ring. Which
 * NAPI instance completes which ring depends on the interrupt layout of the chip.
 */
#include "probes/bpf/netdev_priv.bpf.h"

#define RING_INDEX_MASK 0xffffffffu
#define RS_R8125_QUEUES 2
#define RS_R8125_VECTORS 32

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rtl8125_tx_ring {
	__u32 cur_tx;
	__u32 dirty_tx;
	__u32 num_tx_desc;
};

struct r8125_napi {
	struct napi_struct napi;
};

struct rtl8125_private {
	struct r8125_napi r8125napi[RS_R8125_VECTORS];
	struct rtl8125_tx_ring tx_ring[RS_R8125_QUEUES];
	__u8 HwCurrIsrVer;
};

#pragma clang attribute pop

static __always_inline bool ring_supported(void)
{
	return bpf_core_field_exists(struct rtl8125_tx_ring, cur_tx) &&
	       bpf_core_field_exists(struct rtl8125_tx_ring, dirty_tx) &&
	       bpf_core_field_exists(struct rtl8125_tx_ring, num_tx_desc) &&
	       bpf_core_field_exists(struct rtl8125_private, tx_ring) &&
	       bpf_core_field_exists(struct rtl8125_private, r8125napi) &&
	       bpf_core_field_exists(struct rtl8125_private, HwCurrIsrVer);
}

static __always_inline void ring_layout(struct rs_layout *to)
{
	__u32 ring = bpf_core_field_offset(struct rtl8125_private, tx_ring);

	to->head_offset = ring + bpf_core_field_offset(struct rtl8125_tx_ring, cur_tx);
	to->tail_offset = ring + bpf_core_field_offset(struct rtl8125_tx_ring, dirty_tx);
	to->stride = bpf_core_type_size(struct rtl8125_tx_ring);
}

static __always_inline __u64 tx_ring_of(__u64 dev, __u32 queue)
{
	return netdev_priv_of(dev) + bpf_core_field_offset(struct rtl8125_private, tx_ring) +
	       queue * bpf_core_type_size(struct rtl8125_tx_ring);
}

static __always_inline __u32 ring_size(__u64 dev, __u32 queue)
{
	return read_u32(tx_ring_of(dev, queue) + bpf_core_field_offset(struct rtl8125_tx_ring, num_tx_desc));
}

static __always_inline void ring_read(__u64 dev, __u32 queue, struct ring_view *view)
{
	read_pair(tx_ring_of(dev, queue), bpf_core_field_offset(struct rtl8125_tx_ring, cur_tx),
		  bpf_core_field_offset(struct rtl8125_tx_ring, dirty_tx), view);
}

/* The vector of a TX ring: rtl8125_tx_interrupt_with_vector(). */
static __always_inline __u32 vector_of(__u8 isr_version, __u32 queue)
{
	switch (isr_version) {
	case 2:
		return 16 + 2 * queue;
	case 3:
	case 4:
		return queue;
	case 5:
		return 16 + queue;
	case 7:
		return 27 + queue;
	default:
		return 0; /* rtl8125_poll() walks all rings */
	}
}

static __always_inline bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	__u64 priv = netdev_priv_of(dev);
	__u8 version = 0;

	bpf_probe_read_kernel(&version, sizeof(version),
			      (void *)(priv + bpf_core_field_offset(struct rtl8125_private, HwCurrIsrVer)));
	return napi == priv + bpf_core_field_offset(struct rtl8125_private, r8125napi) +
			       vector_of(version, queue) * bpf_core_type_size(struct r8125_napi) +
			       bpf_core_field_offset(struct r8125_napi, napi);
}

#include "probes/bpf/ring.bpf.h"
#include "probes/bpf/programs.bpf.h"
