// A gigabit PHY on an MDIO bus, clause 22. Its id belongs to no driver, so the kernel takes
// "Generic PHY" and polls it once a second: a change of the link is seen that late.
#pragma once

#include <array>
#include <cstdint>

namespace ringside::lab {

class MdioPhy {
  public:
    MdioPhy() { reset(); }
    void reset();
    [[nodiscard]] std::uint16_t read(unsigned reg) const;
    void write(unsigned reg, std::uint16_t value);
    void set_cable(bool plugged) { cable_ = plugged; }
    [[nodiscard]] bool up() const;

  private:
    std::array<std::uint16_t, 32> words_{};
    bool cable_ = true;
};

}  // namespace ringside::lab
