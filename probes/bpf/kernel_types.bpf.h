/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel fields that are read, and no others. preserve_access_index makes libbpf relocate every
 * access against the running kernel's BTF, so neither order nor offsets matter here.
 */
#ifndef RINGSIDE_KERNEL_TYPES_BPF_H
#define RINGSIDE_KERNEL_TYPES_BPF_H

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

/* Empty with CONFIG_NET_NS=n. */
typedef struct {
	struct net *net;
} possible_net_t;

/* BQL. num_queued is written by the transmit side, num_completed by the completion side. */
struct dql {
	unsigned int num_queued;
	unsigned int num_completed;
};

/* dql: only with CONFIG_BQL=y. */
struct netdev_queue {
	unsigned long state;
	struct dql dql;
};

struct net_device {
	int ifindex;
	struct netdev_queue *_tx;
	possible_net_t nd_net;
};

/* 64-bit kernels: `end` is an offset from `head` (NET_SKBUFF_DATA_USES_OFFSET). */
struct sk_buff {
	unsigned int len;
	unsigned int data_len;
	__u16 queue_mapping;
	__u8 ip_summed : 2;
	__u8 encapsulation : 1;
	__u16 transport_header;
	__u16 inner_transport_header;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
	unsigned int gso_type;
};

/* thread: since 5.12 (net: extract napi poll functionality to __napi_poll). */
struct napi_struct {
	struct net_device *dev;
	struct task_struct *thread;
};

#pragma clang attribute pop

/* Bits of netdev_queue.state, enum netdev_queue_state_t; the same in 5.10 to 7.2. */
#define RS_QUEUE_STATE_DRV_XOFF (1UL << 0)
#define RS_QUEUE_STATE_STACK_XOFF (1UL << 1)

#define RS_NETDEV_TX_BUSY 0x10
#define RS_NET_TX_SOFTIRQ 2
#define RS_NET_RX_SOFTIRQ 3

#define RS_CHECKSUM_PARTIAL 3 /* sk_buff.ip_summed */

/* skb_shared_info.gso_type */
#define RS_SKB_GSO_TCPV4 (1 << 0)
#define RS_SKB_GSO_TCPV6 (1 << 4)

#endif
