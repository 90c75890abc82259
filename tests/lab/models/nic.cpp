#include "tests/lab/models/nic.h"

#include <algorithm>

namespace ringside::lab {

std::optional<std::uint64_t> Nic::advance(std::uint64_t now_ns) {
    std::optional<std::uint64_t> next = tx_.advance(now_ns);
    while (std::optional<Bytes> frame = peer_.take(now_ns)) {
        const std::uint64_t bytes = frame->size();
        const bool received = machine_.faults.link() && receive(std::move(*frame), now_ns);
        ++(received ? rx_frames_ : rx_lost_);
        machine_.log.write(now_ns, received ? "rx" : "rx_lost", {{"b", bytes}});
    }
    if (const std::optional<std::uint64_t> arrival = peer_.next_arrival()) {
        next = std::min(next.value_or(*arrival), *arrival);
    }
    return next;
}

void Nic::control(const Command& command, std::string_view line, std::uint64_t now_ns) {
    const bool had_link = machine_.faults.link();
    machine_.faults.apply(command);
    if (command.knob == Knob::kMark) {
        machine_.log.write(now_ns, "mark", {{"text", command.text}, {"via", "control"}});
        return;
    }
    machine_.log.write(now_ns, "knob", {{"text", line}});
    if (command.knob == Knob::kStat) {
        log_counters(now_ns);
        machine_.log.flush();
    } else if (command.knob == Knob::kTbu) {
        tbu_changed();
    } else if (machine_.faults.link() != had_link) {
        link_changed(now_ns);
    }
}

void Nic::log_counters(std::uint64_t now_ns) {
    tx_.log_counters(queues_, now_ns);
    machine_.log.write(now_ns, "stat",
                       {{"scope", "all"},
                        {"irqs", messages_},
                        {"irqs_lost", messages_lost_},
                        {"rx_frames", rx_frames_},
                        {"rx_lost", rx_lost_},
                        {"tcp_bytes", peer_.tcp_bytes()},
                        {"rate_kbps", machine_.faults.rate_kbps()}});
}

void Nic::frame_on_wire(const TxFrame& frame, std::uint64_t now_ns, std::uint64_t sent_at_ns) {
    peer_.frame(frame.head, frame.payload, now_ns, sent_at_ns);
}

void Nic::send_message(unsigned vector, std::uint32_t status, std::uint64_t now_ns) {
    if (machine_.faults.take_message_loss()) {
        ++messages_lost_;
        machine_.log.write(now_ns, "irq_lost", {{"v", vector}, {"st", status}});
    } else if (machine_.interrupts.send(vector)) {
        ++messages_;
        machine_.log.write(now_ns, "irq", {{"v", vector}, {"st", status}});
    } else {
        machine_.log.write(now_ns, "irq_off", {{"v", vector}, {"st", status}});
    }
}

bool Nic::gather(Bytes& head, std::uint64_t address, std::uint32_t size) const {
    const std::byte* bytes = machine_.memory.readable(address, size);
    if (bytes == nullptr) {
        return false;
    }
    const std::size_t room = kPeerReads - std::min(head.size(), kPeerReads);
    append(head, BytesView(bytes, std::min<std::size_t>(size, room)));
    return true;
}

void Nic::pad_received(Bytes& frame) {
    constexpr std::size_t kShortest = 60;
    constexpr std::size_t kFcs = 4;
    frame.resize(std::max(frame.size(), kShortest) + kFcs);
}

}  // namespace ringside::lab
