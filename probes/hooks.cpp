#include "probes/hooks.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ringside {

namespace {

struct HookRow {
    const char* tracepoint;
    const char* how;
    const char* gives;
    bool required;
    const char* program;  // an object that has no program of this name does without the hook
};

constexpr std::array kHooks{
    HookRow{"net_dev_start_xmit", "tp_btf", "packets, bytes, segments per queue", true,
            "on_net_dev_start_xmit"},
    HookRow{"net_dev_xmit", "tp_btf", "requeues, BQL, queue stops", true, "on_net_dev_xmit"},
    HookRow{"consume_skb", "raw_tp", "completion latency, packets in flight", true,
            "on_consume_skb"},
    HookRow{"kfree_skb", "raw_tp", "drops after the driver was called", true, "on_kfree_skb"},
    HookRow{"napi_poll", "tp_btf", "polls, work, budget, gaps", false, "on_napi_poll"},
    HookRow{"softirq_raise", "tp_btf", "the moment a stopped queue is woken", false,
            "on_softirq_raise"},
    HookRow{"softirq_entry", "tp_btf", "when a poll begins", false, "on_softirq_entry"},
    HookRow{"irq_handler_entry", "tp_btf", "from interrupt to poll, what an interrupt completes",
            false, "on_irq_handler_entry"},
    HookRow{"hrtimer_expire_entry", "raw_tp", "what the driver's TX timer completes", false,
            "on_hrtimer_expire_entry"},
    HookRow{"timer_expire_entry", "raw_tp", "the same for the timers of old drivers", false,
            "on_timer_expire_entry"},
    HookRow{"net_dev_xmit_timeout", "tp_btf", "TX watchdog", false, "on_net_dev_xmit_timeout"},
};

// The ring tier sees completions in the polls.
constexpr std::string_view kCompletionHook = "napi_poll";
constexpr const char* kRingProgram = "on_layout";

}  // namespace

std::vector<Hook> hooks_of(const BpfObject& object) {
    const bool ring = object.program(kRingProgram) != nullptr;
    std::vector<Hook> hooks;
    for (const HookRow& row : kHooks) {
        if (object.program(row.program) == nullptr) {
            continue;
        }
        hooks.push_back({.name = row.tracepoint,
                         .how = row.how,
                         .gives = row.gives,
                         .why = {},
                         .required = row.required});
        if (ring && hooks.back().name == kCompletionHook) {
            hooks.back().gives = "completion latency, ring use, polls";
            hooks.back().required = true;
        }
    }
    return hooks;
}

const char* program_of(const Hook& hook) {
    return std::find_if(kHooks.begin(), kHooks.end(),
                        [&](const HookRow& row) { return hook.name == row.tracepoint; })
        ->program;
}

void mark_absent(Hook& hook, std::string why) {
    hook.how = "-";
    hook.why = std::move(why);
}

}  // namespace ringside
