/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Where a driver's private data begin, and what its ring looks like at one moment.
 */
#ifndef RINGSIDE_NETDEV_PRIV_BPF_H
#define RINGSIDE_NETDEV_PRIV_BPF_H

#include "probes/bpf/txpath.bpf.h"

#define RING_NO_QUEUE (~0u)

struct ring_view {
	__u32 head; /* index of the next descriptor to fill */
	__u32 tail; /* index of the next descriptor to take back */
};

/* Since 6.10 (net: Use zero-length array for driver private data) a field says where they begin; before,
 * netdev_priv() rounded the size of the struct up to 32. */
struct net_device___priv {
	__u8 priv[0];
} __attribute__((preserve_access_index));

static __always_inline __u64 netdev_priv_of(__u64 dev)
{
	if (bpf_core_field_exists(struct net_device___priv, priv))
		return dev + bpf_core_field_offset(struct net_device___priv, priv);
	return dev + ((bpf_core_type_size(struct net_device) + 31) & ~31ULL);
}

static __always_inline __u32 read_u32(__u64 address)
{
	__u32 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

static __always_inline __u16 read_u16(__u64 address)
{
	__u16 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

static __always_inline __u64 read_u64(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

/* Two u32 at once when they lie side by side, as they do in every driver so far. */
static __always_inline void read_pair(__u64 base, __u32 head_offset, __u32 tail_offset, struct ring_view *view)
{
	if (tail_offset == head_offset + 4) {
		bpf_probe_read_kernel(view, sizeof(*view), (void *)(base + head_offset));
	} else {
		view->head = read_u32(base + head_offset);
		view->tail = read_u32(base + tail_offset);
	}
}

#endif
