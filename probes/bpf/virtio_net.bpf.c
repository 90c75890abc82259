/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * virtio_net on split rings. The indices count packets (descriptor chains), not descriptors, and run
 * free in 16 bits. The send instance, the receive instance and the transmit function all take packets
 * back.
 */
#include "probes/bpf/netdev_priv.bpf.h"

#define RING_INDEX_MASK 0xffffu
#define RING_SHARED 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct virtqueue {
	void *priv;
};

struct vring {
	unsigned int num;
};

/* Of drivers/virtio/virtio_ring.c. */
struct vring_virtqueue {
	struct virtqueue vq;
	__u16 last_used_idx;
	union {
		struct {
			struct vring vring;
			__u16 avail_idx_shadow;
		} split;
	};
};

struct send_queue {
	struct virtqueue *vq;
	struct napi_struct napi;
};

struct receive_queue {
	struct napi_struct napi;
};

struct virtnet_info {
	struct send_queue *sq;
	struct receive_queue *rq;
};

#pragma clang attribute pop

static __always_inline bool ring_supported(void)
{
	return bpf_core_field_exists(struct vring_virtqueue, last_used_idx) &&
	       bpf_core_field_exists(struct vring_virtqueue, split.avail_idx_shadow) &&
	       bpf_core_field_exists(struct vring_virtqueue, split.vring.num) &&
	       bpf_core_field_exists(struct send_queue, vq) && bpf_core_field_exists(struct virtnet_info, sq) &&
	       bpf_core_field_exists(struct virtnet_info, rq);
}

/* Of struct vring_virtqueue, to which the send queue points. */
static __always_inline void ring_layout(struct rs_layout *to)
{
	to->head_offset = bpf_core_field_offset(struct vring_virtqueue, split.avail_idx_shadow);
	to->tail_offset = bpf_core_field_offset(struct vring_virtqueue, last_used_idx);
}

static __always_inline __u64 send_queue_of(__u64 dev, __u32 queue)
{
	return read_u64(netdev_priv_of(dev) + bpf_core_field_offset(struct virtnet_info, sq)) +
	       queue * bpf_core_type_size(struct send_queue);
}

static __always_inline __u64 vring_of(__u64 dev, __u32 queue)
{
	return read_u64(send_queue_of(dev, queue) + bpf_core_field_offset(struct send_queue, vq)) -
	       bpf_core_field_offset(struct vring_virtqueue, vq);
}

static __always_inline __u32 ring_size(__u64 dev, __u32 queue)
{
	return read_u32(vring_of(dev, queue) + bpf_core_field_offset(struct vring_virtqueue, split.vring.num));
}

static __always_inline void ring_read(__u64 dev, __u32 queue, struct ring_view *view)
{
	__u64 vring = vring_of(dev, queue);

	view->head = read_u16(vring + bpf_core_field_offset(struct vring_virtqueue, split.avail_idx_shadow));
	view->tail = read_u16(vring + bpf_core_field_offset(struct vring_virtqueue, last_used_idx));
}

static __always_inline bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	__u64 receive = read_u64(netdev_priv_of(dev) + bpf_core_field_offset(struct virtnet_info, rq)) +
			queue * bpf_core_type_size(struct receive_queue);

	return napi == send_queue_of(dev, queue) + bpf_core_field_offset(struct send_queue, napi) ||
	       napi == receive + bpf_core_field_offset(struct receive_queue, napi);
}

#include "probes/bpf/ring.bpf.h"
#include "probes/bpf/programs.bpf.h"
