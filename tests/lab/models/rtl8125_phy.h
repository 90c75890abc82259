// The PHY inside RTL8125B as both drivers see it through PHY OCP: clause 22 registers at 0xa400,
// vendor pages above. Negotiates 2500BASE-T full duplex with any cable.
#pragma once

#include <array>
#include <cstdint>

namespace ringside::lab {

class Rtl8125Phy {
  public:
    Rtl8125Phy() { reset(); }
    void reset();

    [[nodiscard]] std::uint16_t read(std::uint16_t address) const;
    // Returns whether the link has come up or negotiated anew by this: a reason for LinkChg.
    bool write(std::uint16_t address, std::uint16_t value);

    void set_cable(bool plugged) { cable_ = plugged; }
    [[nodiscard]] bool up() const;

  private:
    [[nodiscard]] std::uint16_t stored(std::uint16_t address) const {
        return words_.at(address / 2);
    }

    std::array<std::uint16_t, 32768> words_{};
    bool cable_ = true;
};

}  // namespace ringside::lab
