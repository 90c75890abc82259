// RTL8125B: what the kernel's r8169 and Realtek's own r8125 need to probe, to bring the link up, to
// send and to receive. Both ways of completing are there: "close" (the chip clears DescOwn) and
// "no close" (DescOwn stays; the chip moves a close pointer, which the driver reads).
//
// Interrupts as the driver programs them: one level with one message (r8169), or a status bit and
// an MSI-X vector for each source (r8125 with INT_CFG0 bit 0).
//
// Not there: interrupt mitigation timers, VLAN, filters, RSS and further RX queues, wake-up, EEE.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tests/lab/models/nic.h"
#include "tests/lab/models/register_file.h"
#include "tests/lab/models/rtl8125_phy.h"

namespace ringside::lab {

class Rtl8125 final : public Nic {
  public:
    static constexpr unsigned kTxQueues = 2;
    static constexpr std::uint64_t kWireKbps = 2'500'000;

    explicit Rtl8125(const Machine& machine);

    PciConfig& config() override { return config_; }
    std::uint64_t read(unsigned bar, std::uint64_t offset, unsigned size,
                       std::uint64_t now_ns) override;
    void write(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value,
               std::uint64_t now_ns) override;
    void reset(std::uint64_t now_ns) override;
    void intx_unmasked(std::uint64_t now_ns) override;

  private:
    struct TxRing {
        std::uint32_t next = 0;     // ring index of the next descriptor to fetch
        std::uint16_t fetched = 0;  // descriptors fetched since reset, as the tail pointer counts
        bool halted = false;        // after a bus error, until reset
        bool withheld = false;      // "neverdone": the close pointer moves no more
    };
    using WriteHandler = void (Rtl8125::*)(std::uint32_t value, std::uint64_t now_ns);
    struct WriteRule {
        std::uint32_t offset;
        WriteHandler handler;
    };
    static WriteHandler handler_of(std::uint64_t offset);

    // Register writes that do something.
    void write_counter_address(std::uint32_t value, std::uint64_t now_ns);
    void write_chip_command(std::uint32_t value, std::uint64_t now_ns);
    void write_interrupt_mask(std::uint32_t value, std::uint64_t now_ns);
    void write_interrupt_status(std::uint32_t value, std::uint64_t now_ns);
    void write_tx_config(std::uint32_t value, std::uint64_t now_ns);
    void write_csi(std::uint32_t value, std::uint64_t now_ns);
    void write_ephy(std::uint32_t value, std::uint64_t now_ns);
    void write_tx_poll(std::uint32_t value, std::uint64_t now_ns);
    void write_mac_ocp(std::uint32_t value, std::uint64_t now_ns);
    void write_phy_ocp(std::uint32_t value, std::uint64_t now_ns);
    void write_imr_clear(std::uint32_t value, std::uint64_t now_ns);
    void write_isr_v2(std::uint32_t value, std::uint64_t now_ns);
    void write_imr_set(std::uint32_t value, std::uint64_t now_ns);
    void write_tail_q0(std::uint32_t value, std::uint64_t now_ns);
    void write_tail_q1(std::uint32_t value, std::uint64_t now_ns);
    void write_tx_base_q0(std::uint32_t value, std::uint64_t now_ns);
    void write_tx_base_q1(std::uint32_t value, std::uint64_t now_ns);
    void write_rx_base(std::uint32_t value, std::uint64_t now_ns);

    void power_on(std::uint64_t now_ns);
    void reset_rings(std::uint64_t now_ns);
    void write_tail(unsigned queue, std::uint32_t value, std::uint64_t now_ns);
    void dump_counters();

    [[nodiscard]] bool v2() const;
    [[nodiscard]] bool no_close() const;
    void raise(std::uint32_t legacy, unsigned v2_bit, std::uint64_t now_ns);
    void update_line(std::uint64_t now_ns);
    void send_v2(std::uint32_t bits, std::uint64_t now_ns);

    // Transmit
    std::optional<TxFrame> fetch_frame(std::uint64_t now_ns) override;
    bool write_back(const TxFrame& frame) override;
    void withhold(const TxFrame& frame) override;
    void tx_event(unsigned queue, std::uint64_t now_ns) override;
    std::optional<TxFrame> fetch_from(unsigned queue, std::uint64_t now_ns);
    // Adds one descriptor to the frame. Empty: an error, which has halted the ring.
    std::optional<std::uint32_t> add_descriptor(TxFrame& frame, std::uint64_t address,
                                                std::uint64_t now_ns);
    void halt(unsigned queue, std::string_view what, std::uint64_t now_ns);
    static void apply_tso(TxFrame& frame, std::uint32_t opts1, std::uint32_t opts2);
    [[nodiscard]] std::uint64_t descriptor(unsigned queue, std::uint32_t index) const;

    bool receive(Bytes frame, std::uint64_t now_ns) override;
    void link_changed(std::uint64_t now_ns) override;

    PciConfig config_;
    RegisterFile<65536> registers_;
    std::array<std::uint16_t, 32768> mac_{};  // MAC OCP
    Rtl8125Phy phy_;
    std::array<TxRing, kTxQueues> rings_;
    unsigned first_queue_ = 0;  // whose turn it is
    std::uint32_t rx_next_ = 0;
    std::uint32_t isr_v2_ = 0;
    std::uint32_t imr_v2_ = 0;
    bool line_ = false;
    std::uint64_t rx_frames_ = 0;
};

}  // namespace ringside::lab
