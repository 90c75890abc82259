/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/unit/ring_engine.h"

#include <stdbool.h>

#include "probes/bpf/txpath.bpf.h"

struct engine_driver engine_driver;
static __u32 engine_index_mask;

/* The driver's file of this test: see the head of ring.bpf.h. */
#define RING_INDEX_MASK engine_index_mask

struct ring_view {
	__u32 head;
	__u32 tail;
};

static bool ring_supported(void)
{
	return true;
}
static void ring_layout(struct rs_layout *to)
{
	to->stride = 0;
}
static __u32 ring_size(__u64 dev, __u32 queue)
{
	return engine_driver.size;
}
static void ring_read(__u64 dev, __u32 queue, struct ring_view *view)
{
	view->head = engine_driver.head;
	view->tail = engine_driver.tail;
}
static bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	return napi == 1;
}

#include "probes/bpf/ring.bpf.h"

/* One queue, one CPU: the values that rs_num_queues and rs_num_cpus have when nobody sets them. */
static struct rs_xmit_cell xmit_memory[RS_SLOTS];
static struct rs_done_cell done_memory[RS_SLOTS];
static struct rs_stash stash_memory[1];
static struct rs_fifo_entry fifo_memory[1024];
static struct netdev_queue txqs[1];
static struct net_device device = {._tx = txqs};
static struct sk_buff packet;

__u64 bpf_ktime_get_boot_ns(void)
{
	return engine_driver.now_ns;
}
__u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

#define ENTRY(memory, key) ((key) < sizeof(memory) / sizeof((memory)[0]) ? (void *)&(memory)[key] : NULL)

void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 index;

	memcpy(&index, key, sizeof(index));
	if (map == &xmit_cells)
		return ENTRY(xmit_memory, index);
	if (map == &done_cells)
		return ENTRY(done_memory, index);
	if (map == &stashes)
		return ENTRY(stash_memory, index);
	return ENTRY(fifo_memory, index);
}

void engine_reset(int free_running)
{
	memset(&engine_driver, 0, sizeof(engine_driver));
	memset(xmit_memory, 0, sizeof(xmit_memory));
	memset(done_memory, 0, sizeof(done_memory));
	memset(stash_memory, 0, sizeof(stash_memory));
	memset(fifo_memory, 0, sizeof(fifo_memory));
	memset(rings, 0, sizeof(rings));
	memset(queues, 0, sizeof(queues));
	memset(txqs, 0, sizeof(txqs));
	memset(&trouble, 0, sizeof(trouble));
	control.device = (__u64)&device;
	engine_index_mask = free_running ? ~0u : 0;
}

void engine_xmit_begin(__u32 len)
{
	memset(&packet, 0, sizeof(packet));
	packet.len = len;
	xmit_begin(&packet, &device);
}

void engine_xmit_end(int rc)
{
	xmit_end(&device, rc);
}

void engine_poll(void)
{
	rings_polled((const struct napi_struct *)1);
}
void engine_poll_of_another_queue(void)
{
	rings_polled((const struct napi_struct *)2);
}

const struct rs_xmit_cell *engine_xmit_cell(void)
{
	return &xmit_memory[0];
}
const struct rs_done_cell *engine_done_cell(void)
{
	return &done_memory[0];
}
const struct rs_ring *engine_ring(void)
{
	return &rings[0];
}
const struct rs_queue *engine_queue(void)
{
	return &queues[0];
}
__u64 engine_odd(void)
{
	return trouble.ring_odd;
}
