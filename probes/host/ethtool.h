// What a driver says about itself through SIOCETHTOOL. Reads only; no root needed.
// Each call is a value, or an Error with the driver's errno: EOPNOTSUPP (kUnsupported) means that
// the driver has no such function, ENODEV (kNotFound) that the name is not there any more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"

namespace ringside {

struct DriverInfo {
    std::string driver;
    std::string version;  // in-tree drivers mostly say the kernel's release
    std::string firmware;
    std::string bus;  // "0000:01:00.0", "fe1c0000.ethernet"
};

// Ring sizes in descriptors; *_max 0: the driver does not say.
struct RingSizes {
    std::uint32_t rx = 0;
    std::uint32_t rx_max = 0;
    std::uint32_t tx = 0;
    std::uint32_t tx_max = 0;
};

// Times in us, thresholds in frames. This interface cannot tell "0" from "not supported by the
// driver".
struct Coalesce {
    std::uint32_t rx_usecs = 0;
    std::uint32_t rx_frames = 0;
    std::uint32_t tx_usecs = 0;
    std::uint32_t tx_frames = 0;
    bool adaptive_rx = false;
    bool adaptive_tx = false;
};

struct Channels {
    std::uint32_t rx = 0;
    std::uint32_t tx = 0;
    std::uint32_t combined = 0;
    std::uint32_t rx_max = 0;
    std::uint32_t tx_max = 0;
    std::uint32_t combined_max = 0;
};

enum class Duplex { kHalf, kFull, kUnknown };

struct LinkSettings {
    std::optional<std::uint32_t> speed_mbps;  // none: no link, or the driver does not know
    Duplex duplex = Duplex::kUnknown;
    bool autoneg = false;
};

struct Pause {
    bool autoneg = false;
    bool rx = false;
    bool tx = false;
};

// Energy-efficient Ethernet.
struct Eee {
    bool enabled = false;
    bool active = false;  // negotiated with the link partner
    bool tx_lpi_enabled = false;
    std::uint32_t tx_lpi_timer_us = 0;
};

// One device feature under the kernel's own name ("tx-tcp-segmentation", "rx-gro"), not the long
// names that `ethtool -k` makes of groups of them; those are offload_groups().
struct Feature {
    std::string name;
    bool active = false;
    bool fixed = false;  // cannot be changed

    bool operator==(const Feature&) const = default;
};

// The groups that `ethtool -k` shows under long names: "tcp-segmentation-offload" is on when any of
// tx-tcp-segmentation, tx-tcp6-segmentation, ... is, and fixed when all of them are.
// A group none of whose features this kernel knows is left out.
std::vector<Feature> offload_groups(const std::vector<Feature>& features);
// All the long names, in the order of offload_groups().
std::vector<std::string_view> offload_group_names();

class Ethtool {
  public:
    // In the network namespace of the calling thread; the name is looked up at each call.
    // Errors: kUsage (name too long), kIo.
    static Result<Ethtool> open(std::string_view name);

    [[nodiscard]] Result<DriverInfo> driver() const;
    [[nodiscard]] Result<RingSizes> rings() const;
    [[nodiscard]] Result<Coalesce> coalesce() const;
    [[nodiscard]] Result<Channels> channels() const;
    [[nodiscard]] Result<LinkSettings> link() const;
    [[nodiscard]] Result<Pause> pause() const;
    [[nodiscard]] Result<Eee> eee() const;
    // In the kernel's order.
    [[nodiscard]] Result<std::vector<Feature>> features() const;

  private:
    Ethtool(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

    // One request; `data` starts with the command. `what` is named in the error.
    Status call(void* data, std::string_view what) const;
    // The same for a plain struct of the kernel, turned into a value.
    template <class Raw, class Value>
    Result<Value> get(std::uint32_t command, std::string_view what,
                      Value (*make)(const Raw&)) const;
    [[nodiscard]] Result<std::vector<std::string>> feature_names() const;

    UniqueFd fd_;
    std::string name_;
};

}  // namespace ringside
