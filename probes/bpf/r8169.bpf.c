/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * r8169: Realtek's gigabit and 2.5-gigabit controllers, in-tree driver. One queue, free-running indices,
 * one NAPI instance.
 */
#include "probes/bpf/netdev_priv.bpf.h"

#define RING_INDEX_MASK 0xffffffffu

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Named so that it matches no `struct ring_info` by name: r8169 and r8125 both have one. */
struct ring_info___r8169 {
	void *skb;
	__u32 len;
};

struct rtl8169_private {
	__u32 cur_tx;
	__u32 dirty_tx;
	struct ring_info___r8169 tx_skb[256];
};

#pragma clang attribute pop

static __always_inline bool ring_supported(void)
{
	return bpf_core_field_exists(struct rtl8169_private, cur_tx) &&
	       bpf_core_field_exists(struct rtl8169_private, dirty_tx) &&
	       bpf_core_field_exists(struct rtl8169_private, tx_skb);
}

static __always_inline void ring_layout(struct rs_layout *to)
{
	to->head_offset = bpf_core_field_offset(struct rtl8169_private, cur_tx);
	to->tail_offset = bpf_core_field_offset(struct rtl8169_private, dirty_tx);
}

/* NUM_TX_DESC: the kernel has one ring_info for each. */
static __always_inline __u32 ring_size(__u64 dev, __u32 queue)
{
	return bpf_core_field_size(struct rtl8169_private, tx_skb) / 16;
}

static __always_inline void ring_read(__u64 dev, __u32 queue, struct ring_view *view)
{
	read_pair(netdev_priv_of(dev), bpf_core_field_offset(struct rtl8169_private, cur_tx),
		  bpf_core_field_offset(struct rtl8169_private, dirty_tx), view);
}

static __always_inline bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	return true;
}

#include "probes/bpf/ring.bpf.h"
#include "probes/bpf/programs.bpf.h"
