/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tests/unit/ring_engine.h"

#include <stdbool.h>

#include "probes/bpf/txpath.bpf.h"

struct engine_driver engine_driver;
static struct napi_struct own_napi, other_napi;
static __u32 engine_index_mask;

/* The driver's file of this test: see the head of ring.bpf.h. */
#define RING_INDEX_MASK engine_index_mask

#define RING_NO_QUEUE (~0u)

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
#define RING_TIMER 1
static __u32 ring_timer(__u64 dev, __u64 timer)
{
	return timer == (__u64)&engine_driver ? 0 : RING_NO_QUEUE;
}
static bool ring_polled_by(__u64 dev, __u32 queue, __u64 napi)
{
	return napi == (__u64)&own_napi;
}

#include "probes/bpf/ring.bpf.h"
#include "probes/bpf/programs.bpf.h"

/* One queue, one CPU: the values that rs_num_queues and rs_num_cpus have when nobody sets them. */
static struct rs_xmit_cell xmit_memory[RS_SLOTS];
static struct rs_done_cell done_memory[RS_SLOTS];
static struct rs_stash stash_memory[1];
static struct rs_fifo_entry fifo_memory[1024];
static struct rs_cpu cpu_memory[1];
static __u64 irq_memory[RS_MAX_IRQ];
static struct netdev_queue txqs[1];
static struct net_device device = {.ifindex = 1, ._tx = txqs};
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
	if (map == &cpus)
		return ENTRY(cpu_memory, index);
	if (map == &watched_irqs)
		return ENTRY(irq_memory, index);
	return ENTRY(fifo_memory, index);
}

void engine_reset(int free_running)
{
	memset(&engine_driver, 0, sizeof(engine_driver));
	memset(xmit_memory, 0, sizeof(xmit_memory));
	memset(done_memory, 0, sizeof(done_memory));
	memset(stash_memory, 0, sizeof(stash_memory));
	memset(fifo_memory, 0, sizeof(fifo_memory));
	memset(cpu_memory, 0, sizeof(cpu_memory));
	memset(napis, 0, sizeof(napis));
	memset(napi_cells, 0, sizeof(napi_cells));
	memset(rings, 0, sizeof(rings));
	memset(queues, 0, sizeof(queues));
	memset(txqs, 0, sizeof(txqs));
	memset(&trouble, 0, sizeof(trouble));
	control.device = (__u64)&device;
	control.ifindex = 1;
	own_napi.dev = other_napi.dev = &device;
	memset(irq_memory, 0, sizeof(irq_memory));
	irq_memory[ENGINE_IRQ] = 1;
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
	on_napi_poll(&own_napi, 0, 64);
}
void engine_poll_of_another_queue(void)
{
	on_napi_poll(&other_napi, 0, 64);
}
void engine_softirq(void)
{
	on_softirq_entry(RS_NET_RX_SOFTIRQ);
}
void engine_irq(int number)
{
	on_irq_handler_entry(number);
}
void engine_timer(void)
{
	on_hrtimer_expire_entry(&engine_driver);
}

const struct rs_napi_cell *engine_napi_cell(void)
{
	return &napi_cells[0];
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
