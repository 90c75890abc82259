/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stmmac: Synopsys DWMAC (Rockchip gmac, Allwinner emac, Intel Elkhart Lake and many others). Several
 * queues, indices that wrap at the ring's size, a NAPI instance for each queue.
 */
#include "probes/bpf/netdev_priv.bpf.h"

#define RS_STMMAC_QUEUES 8 /* MTL_MAX_TX_QUEUES */
#define RING_INDEX_MASK 0
#define RING_TIMER 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hrtimer {
};

/* txtimer: an hrtimer since commit d5a05e69ac6e (net: stmmac: Use hrtimer for TX coalescing), a timer_list
 * before; only its place is asked for. */
struct stmmac_tx_queue {
	unsigned int cur_tx;
	unsigned int dirty_tx;
	struct hrtimer txtimer;
};

struct stmmac_dma_conf {
	struct stmmac_tx_queue tx_queue[RS_STMMAC_QUEUES];
	unsigned int dma_tx_size;
};

/* rxtx_napi: since 5.13 (net: stmmac: Add initial XDP/AF_XDP zero-copy support). */
struct stmmac_channel {
	struct napi_struct tx_napi;
	struct napi_struct rxtx_napi;
};

/* dma_conf: since 6.0 (net: stmmac: move dma conf out of stmmac_priv). */
struct stmmac_priv {
	struct stmmac_dma_conf dma_conf;
	struct stmmac_channel channel[RS_STMMAC_QUEUES];
};

/* Before: 5.10, and vendor kernels that grew from it. */
struct stmmac_priv___direct {
	struct stmmac_tx_queue tx_queue[RS_STMMAC_QUEUES];
	unsigned int dma_tx_size;
};

#pragma clang attribute pop

static __always_inline bool has_dma_conf(void)
{
	return bpf_core_field_exists(struct stmmac_priv, dma_conf);
}

static __always_inline bool ring_supported(void)
{
	return bpf_core_field_exists(struct stmmac_tx_queue, cur_tx) &&
	       bpf_core_field_exists(struct stmmac_tx_queue, dirty_tx) &&
	       bpf_core_field_exists(struct stmmac_priv, channel) &&
	       (bpf_core_field_exists(struct stmmac_dma_conf, tx_queue) ||
		bpf_core_field_exists(struct stmmac_priv___direct, tx_queue));
}

/* From the private data to queue 0. */
static __always_inline __u32 queues_offset(void)
{
	if (has_dma_conf())
		return bpf_core_field_offset(struct stmmac_priv, dma_conf) +
		       bpf_core_field_offset(struct stmmac_dma_conf, tx_queue);
	return bpf_core_field_offset(struct stmmac_priv___direct, tx_queue);
}

static __always_inline void ring_layout(struct rs_layout *to)
{
	to->head_offset = queues_offset() + bpf_core_field_offset(struct stmmac_tx_queue, cur_tx);
	to->tail_offset = queues_offset() + bpf_core_field_offset(struct stmmac_tx_queue, dirty_tx);
	to->stride = bpf_core_type_size(struct stmmac_tx_queue);
}

static __always_inline __u32 ring_size(__u64 dev, __u32 queue)
{
	__u64 priv = netdev_priv_of(dev);

	if (has_dma_conf())
		return read_u32(priv + bpf_core_field_offset(struct stmmac_priv, dma_conf) +
				bpf_core_field_offset(struct stmmac_dma_conf, dma_tx_size));
	return read_u32(priv + bpf_core_field_offset(struct stmmac_priv___direct, dma_tx_size));
}

static __always_inline void ring_read(__u64 dev, __u32 queue, struct ring_view *view)
{
	read_pair(netdev_priv_of(dev) + queues_offset() + queue * bpf_core_type_size(struct stmmac_tx_queue),
		  bpf_core_field_offset(struct stmmac_tx_queue, cur_tx),
		  bpf_core_field_offset(struct stmmac_tx_queue, dirty_tx), view);
}

static __always_inline bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	__u64 channel = netdev_priv_of(dev) + bpf_core_field_offset(struct stmmac_priv, channel) +
			queue * bpf_core_type_size(struct stmmac_channel);

	if (napi == channel + bpf_core_field_offset(struct stmmac_channel, tx_napi))
		return true;
	return bpf_core_field_exists(struct stmmac_channel, rxtx_napi) &&
	       napi == channel + bpf_core_field_offset(struct stmmac_channel, rxtx_napi);
}

/* The coalescing timer lies within its queue. */
static __always_inline __u32 ring_timer(__u64 dev, __u64 timer)
{
	__u64 first = netdev_priv_of(dev) + queues_offset();
	__u64 place = timer - first - bpf_core_field_offset(struct stmmac_tx_queue, txtimer);
	__u32 stride = bpf_core_type_size(struct stmmac_tx_queue);

	/* Below the first queue: a large number. */
	if (place >= RS_STMMAC_QUEUES * stride || place % stride)
		return RING_NO_QUEUE;
	return place / stride;
}

#include "probes/bpf/ring.bpf.h"
#include "probes/bpf/programs.bpf.h"
