/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Relocations, resolved by the C compiler: see bpf_helpers.h beside this file. */
#ifndef RINGSIDE_SHIM_BPF_CORE_READ_H
#define RINGSIDE_SHIM_BPF_CORE_READ_H

#include <stddef.h>

/* Both forms that libbpf knows: (pointer->field) and (type, field). */
#define RS_SHIM_PICK(_1, _2, which, ...) which
#define RS_SHIM_EXISTS(...) 1
#define bpf_core_field_exists(...) RS_SHIM_EXISTS(__VA_ARGS__)
#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_type_size(type) sizeof(type)
#define BPF_CORE_READ_BITFIELD(pointer, field) ((pointer)->field)

#endif
