#include "dtcompare/driver.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ringside::dt {

namespace {

struct KnownDriver {
    std::string_view name;
    int major;
    int minor;
    Driver driver;
    bool vendor;
};
constexpr KnownDriver kDrivers[] = {
    {"vendor-6.1", 6, 1, Driver::kVendor61, true},
    {"mainline-6.1", 6, 1, Driver::kMainline61, false},
    {"mainline-6.12", 6, 12, Driver::kMainline612, false},
    {"mainline-6.18", 6, 18, Driver::kMainline618, false},
    {"mainline-7.2", 7, 2, Driver::kMainline72, false},
};

struct Version {
    int major;
    int minor;
};

// "6.18", "6.18.26-rc1" at the front of `text`.
std::optional<Version> read_version(std::string_view text) {
    Version version{};
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, version.major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') {
        return std::nullopt;
    }
    const auto second = std::from_chars(first.ptr + 1, end, version.minor);
    if (second.ec != std::errc() || version.major < 2 || version.major > 20 || version.minor < 0) {
        return std::nullopt;
    }
    return version;
}

// The newest known driver of the family that is not newer; the oldest when all are.
DriverChoice choose(bool vendor, Version version) {
    const KnownDriver* best = nullptr;
    for (const KnownDriver& known : kDrivers) {
        const bool newer = known.major > version.major ||
                           (known.major == version.major && known.minor > version.minor);
        if (known.vendor == vendor && (best == nullptr || !newer)) {
            best = &known;
        }
    }
    DriverChoice choice;
    choice.driver = best->driver;
    choice.nearest = best->major != version.major || best->minor != version.minor;
    choice.label = std::string(vendor ? "vendor-" : "mainline-") + std::to_string(version.major) +
                   '.' + std::to_string(version.minor);
    return choice;
}

// A kernel version in a folder or file name, as distributions write it.
std::optional<Version> version_in_path(std::string_view path) {
    constexpr std::string_view kMarks[] = {"linux-image-", "linux-base-", "/modules/",
                                           "linux-",       "dtb-",        "mainline-",
                                           "stock-",       "vendor-",     "dtbs/"};
    for (const std::string_view mark : kMarks) {
        for (std::size_t at = path.find(mark); at != std::string_view::npos;
             at = path.find(mark, at + 1)) {
            if (const auto version = read_version(path.substr(at + mark.size()))) {
                return version;
            }
        }
    }
    return std::nullopt;
}

// What only a vendor kernel reads or writes.
std::string_view vendor_mark(const Tree& tree, Numbering numbering) {
    const NodeId chosen = tree.child(tree.root(), "chosen");
    if (chosen != kNoNode) {
        const std::string_view bootargs = tree.text(chosen, "bootargs");
        for (const std::string_view mark : {"ttyFIQ", "storagemedia=", "androidboot."}) {
            if (bootargs.find(mark) != std::string_view::npos) {
                return "bootargs";
            }
        }
    }
    for (NodeId id = 0; id < tree.size(); ++id) {
        if (tree.has(id, "rockchip,php_grf")) {
            return "rockchip,php_grf";
        }
        if (tree.compatible_with(id, "rockchip,fiq-debugger")) {
            return "its fiq-debugger node";
        }
    }
    return numbering == Numbering::kVendor ? "its clock numbers" : "";
}

constexpr DriverDelta kDeltas[] = {
    {"default tx-usecs",
     true,
     {"1000 us", "1000 us", "5000 us", "5000 us", "5000 us"},
     "stmmac_main.c, stmmac_init_coalesce (STMMAC_COAL_TX_TIMER)"},
    {"completion interrupt at the end of a transmit burst",
     true,
     {"no", "no", "yes", "no", "no"},
     "stmmac_main.c, stmmac_xmit"},
    {"transmit timer re-armed",
     true,
     {"per packet", "per packet", "unless NAPI runs", "unless NAPI runs", "only if idle"},
     "stmmac_main.c, stmmac_tx_timer_arm"},
    {"PHY-autonomous EEE of RTL8211F",
     true,
     {"left on", "not read", "left on", "off: MAC LPI used", "off: MAC LPI used"},
     "phy/realtek, rtl8211f_config_init"},
    {"RX delay line in rgmii-rxid",
     false,
     {"off", "not read", "enabled, 0", "enabled, 0", "enabled, 0"},
     "dwmac-rk.c, rk3588_set_to_rgmii"},
    {"default tx-frames",
     true,
     {"25", "25", "25", "25", "25"},
     "stmmac_main.c, stmmac_init_coalesce (STMMAC_TX_FRAMES)"},
    {"split header on receive, Rockchip",
     false,
     {"forced off", "not forced off", "not forced off", "not forced off", "not forced off"},
     "dwmac-rk.c, rk_gmac_probe"},
    {"TX ring",
     true,
     {"512 (1024 option)", "512", "512", "512", "512"},
     "stmmac_main.c, DMA_DEFAULT_TX_SIZE"},
};

}  // namespace

std::string_view driver_name(Driver driver) {
    return kDrivers[static_cast<std::size_t>(driver)].name;
}

std::span<const DriverDelta> driver_deltas() {
    return kDeltas;
}

Result<DriverChoice> parse_driver(std::string_view text) {
    const std::size_t dash = text.find('-');
    const std::string_view family = text.substr(0, dash);
    const auto version =
        dash == std::string_view::npos ? std::nullopt : read_version(text.substr(dash + 1));
    if (!version || (family != "vendor" && family != "mainline" && family != "stock")) {
        std::string known;
        for (const KnownDriver& driver : kDrivers) {
            known += (known.empty() ? "" : ", ") + std::string(driver.name);
        }
        return fail(Error(ErrorCode::kUsage, "unknown driver '" + std::string(text) + "'")
                        .hint("known: " + known + "; a version between them means the one before"));
    }
    return choose(family != "mainline", *version);
}

DriverChoice guess_driver(const LoadedTree& loaded, Numbering numbering) {
    const std::string_view mark = vendor_mark(loaded.tree, numbering);
    std::string how;
    std::optional<Version> version;
    if (!loaded.kernel_release.empty()) {
        version = read_version(loaded.kernel_release);
        how = "guessed from the running kernel";
    }
    if (!version) {
        version = version_in_path(loaded.name);
        how = "guessed from the file's path";
    }
    if (!version) {
        version = mark.empty() ? Version{6, 18} : Version{6, 1};
        how = mark.empty() ? "assumed" : "guessed from " + std::string(mark);
    } else if (!mark.empty()) {
        how += " and " + std::string(mark);
    }
    DriverChoice choice = choose(!mark.empty(), *version);
    choice.how = how;
    choice.guessed = true;
    return choice;
}

}  // namespace ringside::dt
