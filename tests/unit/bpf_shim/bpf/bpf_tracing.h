/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A program is a function of the tracepoint's arguments. */
#ifndef RINGSIDE_SHIM_BPF_TRACING_H
#define RINGSIDE_SHIM_BPF_TRACING_H

#define BPF_PROG(name, ...) name(__VA_ARGS__)

#endif
