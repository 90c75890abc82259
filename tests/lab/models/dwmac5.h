// DWMAC 5.10, the core of RK3588 and Intel Elkhart Lake, behind the latter's PCI id so that the
// kernel's dwmac-intel binds to it and stmmac drives it. Eight TX channels with a ring each, TSO
// with its context descriptors, interrupt on completion, 32-byte descriptors where the driver asks
// for them, weighted round robin or strict priority onto one wire, MDIO with one PHY, RX on channel
// 0.
//
// A channel that finds nothing to fetch is suspended until its tail pointer is written, and says so
// in the status bit TBU ("transmit buffer unavailable"), which stmmac never clears.
//
// Not there: MMC, PTP, EEE, VLAN, safety features, RX watchdog and filters, RX on other channels,
// credit-based shaping. A frame's descriptors come back together when the wire has sent it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tests/lab/models/mdio_phy.h"
#include "tests/lab/models/nic.h"
#include "tests/lab/models/register_file.h"

namespace ringside::lab {

struct Dwmac5Options {
    unsigned queues = 2;  // what the feature registers show; Linux 6.1 opens all eight regardless
    bool msix = false;    // a vector for each channel and direction, else one MSI
};

class Dwmac5 final : public Nic {
  public:
    Dwmac5(const Machine& machine, const Dwmac5Options& options);

    PciConfig& config() override { return config_; }
    std::uint64_t read(unsigned bar, std::uint64_t offset, unsigned size,
                       std::uint64_t now_ns) override;
    void write(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value,
               std::uint64_t now_ns) override;
    void reset(std::uint64_t now_ns) override;
    void intx_unmasked(std::uint64_t now_ns) override;

  private:
    struct Channel {
        std::uint32_t next = 0;  // ring index of the next descriptor to fetch
        std::uint32_t mss = 0;   // of the last context descriptor
        std::uint32_t credit = 0;
        bool suspended = true;  // until the tail pointer is written
        bool halted = false;    // after a bus error, until the channel is started again
        bool rx_line = false;
        bool tx_line = false;
    };
    struct Descriptor {
        std::uint64_t address = 0;
        std::uint32_t des0 = 0, des1 = 0, des2 = 0, des3 = 0;
    };

    void power_on(std::uint64_t now_ns);
    void soft_reset(std::uint64_t now_ns);
    void write_channel(unsigned channel, std::uint32_t offset, std::uint32_t value,
                       std::uint64_t now_ns);
    void write_tx_control(unsigned channel, std::uint32_t old, std::uint32_t value,
                          std::uint64_t now_ns);
    void mdio(std::uint32_t command);

    [[nodiscard]] std::uint32_t reg(unsigned channel, std::uint32_t offset) const;
    void set_reg(unsigned channel, std::uint32_t offset, std::uint32_t value);
    void set_status(unsigned channel, std::uint32_t bits);
    // Sends a message for each line that rises; `again` also for one that is still high.
    void update_lines(unsigned channel, bool again, std::uint64_t now_ns);

    // Transmit
    [[nodiscard]] std::uint32_t ring_size(unsigned channel) const;
    [[nodiscard]] std::uint32_t stride(unsigned channel) const;
    [[nodiscard]] std::uint32_t tail_index(unsigned channel) const;
    [[nodiscard]] std::optional<Descriptor> descriptor(unsigned channel, std::uint32_t index) const;
    void suspend(unsigned channel);
    void halt(unsigned channel, std::string_view what, std::uint64_t now_ns);
    std::optional<TxFrame> fetch_frame(std::uint64_t now_ns) override;
    std::optional<TxFrame> fetch_strict(std::uint64_t now_ns);
    std::optional<TxFrame> fetch_round_robin(std::uint64_t now_ns);
    std::optional<TxFrame> fetch_from(unsigned channel, std::uint64_t now_ns);
    struct Tso;
    // Adds one data descriptor to the frame. False: an error, which has halted the channel.
    bool add_data(TxFrame& frame, const Descriptor& descriptor, Tso& tso, std::uint64_t now_ns);
    bool write_back(const TxFrame& frame) override;
    void withhold(const TxFrame&) override {}
    void tx_event(unsigned queue, std::uint64_t now_ns) override;

    bool receive(Bytes frame, std::uint64_t now_ns) override;
    void link_changed(std::uint64_t now_ns) override;
    void tbu_changed() override;

    Dwmac5Options options_;
    PciConfig config_;
    RegisterFile<65536> registers_;
    MdioPhy phy_;
    std::array<Channel, kMaxQueues> channels_{};
    unsigned turn_ = 0;  // of the round robin
    std::uint32_t rx_next_ = 0;
};

}  // namespace ringside::lab
