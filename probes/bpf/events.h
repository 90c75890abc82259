/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What crosses the border between the kernel and user space: the only place where these layouts are
 * written. Plain C, read by the BPF programs and by C++; probes/tracer.cpp asserts every size.
 *
 * All times are CLOCK_BOOTTIME in ns.
 *
 * How levels are measured. For anything that enters and leaves (packets, bytes, BQL bytes) both sides
 * keep a count n and a sum of n * time. With t relative to anything, the area under the level up to T is
 *     (in.n * T - in.nt) - (out.n * T - out.nt)        modulo 2^64,
 * so the time average over any window follows from two snapshots, without any state that both sides
 * would have to share. Sums may wrap: only differences are used.
 *
 * Who writes what. The cells are per CPU and come twice: `control.slot` says which copy is written now;
 * user space flips it at the end of each window and reads the other copy when it has come to rest.
 * Counters in cells only grow (a program that was delayed past the flip loses nothing); the fields
 * named max_* are set to 0 by user space after reading.
 */
#ifndef RINGSIDE_EVENTS_H
#define RINGSIDE_EVENTS_H

#include <linux/types.h>

/* Whatever two CPUs write at the same time lies on cache lines of its own. */
#define RS_CACHE_ALIGNED __attribute__((aligned(64)))

#define RS_SLOTS 2
#define RS_MAX_NAPI 64
#define RS_MAX_IRQ 8192 /* interrupts with higher numbers are not watched */

/* Latency histogram: bucket 0 is everything below 2^RS_HIST_MIN_SHIFT ns, then 2^RS_HIST_SUB_BITS
 * equal buckets an octave, the last bucket is everything from 2^RS_HIST_MAX_SHIFT ns on. */
#define RS_HIST_MIN_SHIFT 9  /* 512 ns */
#define RS_HIST_MAX_SHIFT 34 /* 17.2 s */
#define RS_HIST_SUB_BITS 5   /* bucket width at most 3.2 % of its lower bound */
#define RS_HIST_BUCKETS (2 + ((RS_HIST_MAX_SHIFT - RS_HIST_MIN_SHIFT) << RS_HIST_SUB_BITS))

/* Packets in flight, found again by the address of their skb: a hash table of buckets of one cache
 * line. A key of 0 is a free place. */
#define RS_FLIGHT_WAYS 3
#define RS_FLIGHT_SHIFT 14
#define RS_FLIGHT_BUCKETS (1 << RS_FLIGHT_SHIFT)

struct rs_flight_bucket {
	__u64 key[RS_FLIGHT_WAYS];
	__u64 start_ns[RS_FLIGHT_WAYS];
	__u32 info[RS_FLIGHT_WAYS]; /* RS_INFO(queue, len) */
	__u32 spilled;              /* a packet of this bucket may be in the neighbour */
} RS_CACHE_ALIGNED;

/* skb->len is at most 512 KiB (BIG TCP), queues are capped at RS_MAX_QUEUES. */
#define RS_MAX_QUEUES 64
#define RS_INFO_LEN_BITS 20
#define RS_INFO_LEN_MASK ((1u << RS_INFO_LEN_BITS) - 1)
#define RS_INFO(queue, len) (((__u32)(queue) << RS_INFO_LEN_BITS) | (len))

/* What user space tells the programs while they run. */
struct rs_control {
	__u32 ifindex;    /* 0: watch nothing */
	__u32 netns_inum; /* inode of the network namespace */
	__u32 slot;       /* copy of the cells to write, 0 .. RS_SLOTS-1 */
	__u32 pad;
	__u64 device;     /* address of the device once it was met; set to 0 with each new ifindex */
};

/* A thing that enters or leaves: see the head of this file. */
struct rs_flow {
	__u64 packets;
	__u64 packets_t; /* sum of ns */
	__u64 bytes;     /* sum of skb->len */
	__u64 bytes_t;   /* sum of bytes * ns */
};

/* The same for descriptors. */
struct rs_level {
	__u64 n;
	__u64 n_t; /* sum of ns */
};

/* Written by the CPU that transmits, with softirqs off. */
struct rs_xmit_cell {
	struct rs_flow sent;  /* packets that are remembered until they complete */
	__u64 packets;        /* every packet given to the driver, GSO packets count once */
	__u64 bytes;          /* their skb->len */
	__u64 segments;       /* frames on the wire after segmentation */
	__u64 wire_bytes;     /* bytes of those frames, without preamble, FCS and gap */
	__u64 unpaired;       /* no place to remember the packet */
	__u64 errors;         /* the driver took the packet and returned an error */
	__u64 requeued;       /* NETDEV_TX_BUSY: the packet went back to the qdisc */
	__u64 requeued_bytes;
	struct rs_flow returned; /* the requeued packets, as far as they had a place in the table */
	struct rs_flow stale; /* still in the table when its skb was sent again: completion missed */
	__u64 max_in_flight;  /* packets */
	__u64 max_bql_bytes;
	/* ring tier */
	struct rs_level descriptors; /* put into the ring */
	__u64 max_used;   /* descriptors */
	__u64 bypassed;   /* descriptors that others put in between two packets that were seen */
	__u64 swallowed;  /* packets that the driver took without using a descriptor: it dropped them */
} RS_CACHE_ALIGNED;

/* What scheduled a NAPI poll, as far as it is seen: the rest are polls that go on, busy polling, other
 * queues of the same instance. */
enum rs_wakeup { RS_BY_IRQ, RS_BY_TIMER, RS_WAKEUPS, RS_BY_OTHER = RS_WAKEUPS };

/* Written by the CPU that frees, or that polls. */
struct rs_done_cell {
	struct rs_flow completed; /* consume_skb; ring tier: the driver has taken the descriptors back */
	struct rs_flow dropped;   /* kfree_skb */
	__u64 latency_ns;         /* sum over completed */
	__u64 max_latency_ns;
	/* Longest time with a packet in flight and none leaving, and when it ended. */
	__u64 max_gap_ns;
	__u64 max_gap_end_ns;
	/* ring tier */
	struct rs_level descriptors; /* taken back */
	__u64 batches;   /* polls that took something back */
	__u64 max_batch; /* descriptors */
	__u64 batches_by[RS_WAKEUPS]; /* of them, those whose poll was scheduled so */
	__u32 latency[RS_HIST_BUCKETS];
} RS_CACHE_ALIGNED;

/* One reason why a queue is stopped. Every update is an assignment computed from values that do not
 * change while the stop is open, so two CPUs that see the same change at once do no harm.
 * Stopped time up to T: open (begins != ends) ? base_ns + T - begin_ns : closed_ns. */
struct rs_stop {
	__u64 begins;
	__u64 ends;
	__u64 begin_ns;
	__u64 base_ns;   /* closed_ns when the open stop began */
	__u64 closed_ns; /* time in stops that have ended */
	__u64 longest_ns;
};

enum rs_stop_reason { RS_STOP_DRIVER, RS_STOP_BQL, RS_STOP_REASONS };

/* State of a queue, shared by all CPUs. The two sides have cache lines of their own. */
struct rs_queue {
	/* transmit side */
	__u64 started;     /* packets put into the flight table */
	__u64 txq;         /* address of its struct netdev_queue, 0 before the first packet */
	__u64 bql_in;      /* bytes given to BQL since the first packet */
	__u64 bql_in_t;    /* sum of bytes * ns */
	__u32 bql_in_last; /* dql.num_queued */
	__u32 bql_seen;    /* BQL state has been read once */
	/* completion side */
	__u64 finished RS_CACHE_ALIGNED; /* packets that have left the flight table, for any reason */
	__u64 last_ns;   /* when the last one left */
	__u64 bql_out;
	__u64 bql_out_t;
	__u32 bql_out_last; /* dql.num_completed */
	__u32 watchdogs;    /* net_dev_xmit_timeout */
	__u64 timers;       /* times that the driver's TX timer of this queue has expired */
	__u64 timer_ns;     /* the last one */
	struct rs_stop stop[RS_STOP_REASONS] RS_CACHE_ALIGNED;
} RS_CACHE_ALIGNED;

/*
 * Ring tier. Packets leave a ring in the order in which they entered, so what is in flight is a queue:
 * the transmit side adds at one end, the poll takes from the other, and neither writes what the other
 * writes. Indices of the ring are counted on without end (modulo 2^32), whatever the driver does.
 */
#define RS_FIFO_MAX 4096 /* packets of one ring; no driver here allows more descriptors */

struct rs_fifo_entry {
	__u64 start_ns;
	__u64 seen_ns; /* the poll came past while `end` was not known yet; 0: it did not */
	__u32 begin;   /* index of the first descriptor */
	__u32 end;     /* index after the last one; equal to `begin` until net_dev_xmit */
	__u32 len;
	__u32 epoch;
};

struct rs_ring {
	/* transmit side */
	__u32 ready;       /* the fields are valid */
	__u32 head;        /* descriptors put in */
	__u32 head_index;  /* the driver's own index, as last seen */
	__u32 size;        /* descriptors in the ring */
	__u32 fifo_in;     /* packets put in */
	__u32 epoch;       /* resets noticed when transmitting */
	__u32 epoch_head;  /* `head` when the epoch began; the driver's own indices were 0 */
	__u64 epoch_ns;    /* when that was noticed */
	/* completion side */
	__u32 tail RS_CACHE_ALIGNED; /* descriptors taken back */
	__u32 tail_index;
	__u32 fifo_out;
	__u32 tail_epoch;
	__u32 flushed;     /* a reset was noticed by a poll before the transmit side has noticed it */
	__u32 busy;        /* somebody is at it; only where several can be (RING_SHARED) */
	__u64 lost_ns;     /* when what was lost last was lost */
	struct rs_flow lost; /* packets that were in the ring when it was reset */
	struct rs_level lost_descriptors;
} RS_CACHE_ALIGNED;

/* What CO-RE found in this kernel, written by a test run of on_layout. */
struct rs_layout {
	__u32 found;       /* all types and fields that are needed exist */
	__u32 head_offset; /* bytes from the start of the driver's private data, queue 0 */
	__u32 tail_offset;
	__u32 stride;      /* bytes from one queue to the next; 0: one queue only, or pointers */
};

/* One NAPI instance; polls of an instance never overlap. */
struct rs_napi_cell {
	__u64 polls;
	__u64 work;        /* as the driver reports it: many drivers count RX only */
	__u64 budget;      /* sum of the budgets */
	__u64 exhausted;   /* polls that used the whole budget */
	__u64 gap_ns;      /* sum of the times between two polls */
	__u64 max_gap_ns;
	__u64 irq_polls;     /* polls that an interrupt had scheduled */
	__u64 irq_to_poll_ns; /* sum of the times from the interrupt to the beginning of the poll */
	__u64 max_irq_to_poll_ns;
	__u32 gap[RS_HIST_BUCKETS];
	__u32 irq_to_poll[RS_HIST_BUCKETS];
} RS_CACHE_ALIGNED;

struct rs_napi {
	__u64 key; /* address of the napi_struct, an identity and nothing more */
	__u64 last_ns;
	__u64 irq_ns; /* the last interrupt that a poll of this instance answered */
};

/* What a CPU does for the device besides transmitting. Written on that CPU only. */
struct rs_cpu {
	__u64 irqs;     /* interrupts of the device */
	__u64 irq_ns;   /* the last one */
	__u64 free_ns;  /* when the poll that runs now began: NET_RX was entered, or the poll before ended */
	__u32 pass;     /* NET_RX softirqs entered */
	__u32 irq_pass; /* `pass` at irq_ns */
} RS_CACHE_ALIGNED;

/* What the transmit programs remember between net_dev_start_xmit and net_dev_xmit of one packet, one
 * for each CPU: softirqs are off from the first to the second. */
struct rs_stash {
	__u64 skb; /* 0: nothing is being transmitted */
	__u64 start_ns;
	__u64 scratch; /* turns a typed pointer into a number: only a map can do that */
	__u32 queue;
	__u32 len;
	__u32 segments;
	__u32 wire_bytes;
	__u32 paired;
	__u32 ring_head; /* the driver's index before the packet */
} RS_CACHE_ALIGNED;

/* Things that must be 0 in a good recording, and are printed when they are not. */
struct rs_trouble {
	__u64 queue_beyond; /* packets of a queue that has no cells */
	__u64 napi_beyond;  /* polls of a NAPI instance that has no cell */
	__u64 ring_odd;     /* ring indices that cannot be: more in use than there are */
};

/* Index of the histogram bucket that holds `ns`. */
static inline __u32 rs_hist_index(__u64 ns)
{
	__u32 shift = 0;
	__u64 v = ns >> RS_HIST_SUB_BITS;

	if (ns < (1ULL << RS_HIST_MIN_SHIFT))
		return 0;
	if (ns >= (1ULL << RS_HIST_MAX_SHIFT))
		return RS_HIST_BUCKETS - 1;
	/* log2 by halving: BPF has no count-leading-zeros instruction. */
	if (v >= 1ULL << 16) { v >>= 16; shift += 16; }
	if (v >= 1ULL << 8) { v >>= 8; shift += 8; }
	if (v >= 1ULL << 4) { v >>= 4; shift += 4; }
	if (v >= 1ULL << 2) { v >>= 2; shift += 2; }
	if (v >= 1ULL << 1) { shift += 1; }
	/* ns >> shift lies in [2^SUB_BITS, 2^(SUB_BITS+1)). */
	return 1 + ((shift + RS_HIST_SUB_BITS - RS_HIST_MIN_SHIFT) << RS_HIST_SUB_BITS) +
	       ((__u32)(ns >> shift) - (1u << RS_HIST_SUB_BITS));
}

#endif
