/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the BPF sources need from libbpf, as ordinary C: the same source then runs in a unit test, under
 * sanitizers, with a driver, a clock and CPUs that the test moves by hand (tests/unit/ring_engine.c).
 */
#ifndef RINGSIDE_SHIM_BPF_HELPERS_H
#define RINGSIDE_SHIM_BPF_HELPERS_H

#include <stddef.h>
#include <string.h>

#include <linux/types.h>

#define SEC(name) __attribute__((unused))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define barrier_var(variable) __asm__ volatile("" : "+r"(variable))

/* Given by the test. */
__u64 bpf_ktime_get_boot_ns(void);
__u32 bpf_get_smp_processor_id(void);
void *bpf_map_lookup_elem(void *map, const void *key);

static inline long bpf_probe_read_kernel(void *to, __u32 size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

#endif
