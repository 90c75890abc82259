// The hook table: which tracepoints the BPF programs hang on, and what each of them gives. A new
// one is one program in probes/bpf and one row in hooks.cpp.
#pragma once

#include <string>
#include <vector>

#include "probes/bpf_object.h"

namespace ringside {

// One program and what became of it.
struct Hook {
    std::string name;   // tracepoint
    std::string how;    // "tp_btf", "raw_tp", or "-" when it is not attached
    std::string gives;  // what is seen through it
    std::string why;    // why it is not attached; empty when it is
    bool required = false;

    [[nodiscard]] bool wanted() const { return how != "-"; }
};

// The hooks that an opened object has programs for, none of them attached yet.
std::vector<Hook> hooks_of(const BpfObject& object);

// Name of the program of a hook that hooks_of() has made.
const char* program_of(const Hook& hook);

void mark_absent(Hook& hook, std::string why);

}  // namespace ringside
