// What the network chips have in common: one transmit path, one peer, the control commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tests/lab/models/faults.h"
#include "tests/lab/models/guest_memory.h"
#include "tests/lab/models/interrupts.h"
#include "tests/lab/models/pci_device.h"
#include "tests/lab/models/peer.h"
#include "tests/lab/models/truth_log.h"
#include "tests/lab/models/tx_path.h"

namespace ringside::lab {

// What a chip is plugged into. All of it must outlive the chip.
struct Machine {
    GuestMemory& memory;
    Interrupts& interrupts;
    Faults& faults;
    TruthLog& log;
    PeerAddress peer = {};
};

class Nic : public PciDevice, protected TxChip {
  public:
    std::optional<std::uint64_t> advance(std::uint64_t now_ns) final;
    // Takes over a knob, logs it, and does what follows from it at once.
    void control(const Command& command, std::string_view line, std::uint64_t now_ns);
    void log_counters(std::uint64_t now_ns);

    [[nodiscard]] unsigned queues() const { return queues_; }
    [[nodiscard]] const TxPath& tx() const { return tx_; }
    [[nodiscard]] std::uint64_t messages() const { return messages_; }

  protected:
    Nic(const Machine& machine, unsigned queues)
        : machine_(machine),
          queues_(queues),
          tx_(*this, machine.faults, machine.log),
          peer_(machine.peer, machine.faults, machine.log) {}

    // Puts a frame of the peer into the receive ring. False: no descriptor is free.
    virtual bool receive(Bytes frame, std::uint64_t now_ns) = 0;
    // The cable was pulled or plugged in.
    virtual void link_changed(std::uint64_t now_ns) = 0;
    // The knob "tbu" was turned.
    virtual void tbu_changed() {}

    void frame_on_wire(const TxFrame& frame, std::uint64_t now_ns, std::uint64_t sent_at_ns) final;

    // Sends an interrupt message, unless the fault "loseirq" takes it.
    void send_message(unsigned vector, std::uint32_t status, std::uint64_t now_ns);
    // Adds a buffer to the head of a frame, as far as the peer reads. False: not mapped.
    bool gather(Bytes& head, std::uint64_t address, std::uint32_t size) const;
    // Pads a frame of the peer to what a wire carries and adds the four bytes of its FCS, which
    // both drivers expect in the length and cut off.
    static void pad_received(Bytes& frame);

    Machine machine_;
    unsigned queues_;
    TxPath tx_;
    Peer peer_;

  private:
    std::uint64_t messages_ = 0;
    std::uint64_t messages_lost_ = 0;
    std::uint64_t rx_frames_ = 0;
    std::uint64_t rx_lost_ = 0;
};

}  // namespace ringside::lab
