/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The ring tier's BPF code as functions, with a driver that the test plays. */
#ifndef RINGSIDE_RING_ENGINE_H
#define RINGSIDE_RING_ENGINE_H

#include "probes/bpf/events.h"

#define ENGINE_IRQ 59

/* The driver's own ring, of one queue, and the clock as the programs see them. */
struct engine_driver {
	__u32 head;
	__u32 tail;
	__u32 size;
	__u64 now_ns;
};
extern struct engine_driver engine_driver;

void engine_reset(int free_running);
/* net_dev_start_xmit and net_dev_xmit of one packet. */
void engine_xmit_begin(__u32 len);
void engine_xmit_end(int rc);
/* The end of a NAPI poll that serves the queue, or another one. */
void engine_poll(void);
void engine_poll_of_another_queue(void);

/* NET_RX softirq entered; an interrupt handler, the device's is number ENGINE_IRQ; the driver's timer. */
void engine_softirq(void);
void engine_irq(int number);
void engine_timer(void);

const struct rs_napi_cell *engine_napi_cell(void);
const struct rs_xmit_cell *engine_xmit_cell(void);
const struct rs_done_cell *engine_done_cell(void);
const struct rs_ring *engine_ring(void);
const struct rs_queue *engine_queue(void);
__u64 engine_odd(void);

#endif
