#include "probes/host/ethtool.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "probes/host/interface.h"

namespace ringside {

namespace {

// No kernel is near this; a driver that claims more is not believed.
constexpr std::uint32_t kMaxFeatures = 1024;
constexpr std::uint32_t kFeaturesPerBlock = 32;

struct FeatureGroup {
    std::string_view group;
    std::array<std::string_view, 4> members;  // kernel names; '*' at the end for anything
};

// As in ethtool's table of legacy names (off_flag_def), where TSO is "tx-tcp*-segmentation"; here
// it is what the kernel itself calls TSO (NETIF_F_ALL_TSO). The AccECN feature of newer kernels
// matches the pattern, but does not make a device segment when TSO proper is off.
constexpr std::array kGroups = {
    FeatureGroup{"rx-checksumming", {"rx-checksum"}},
    FeatureGroup{"tx-checksumming", {"tx-checksum-*"}},
    FeatureGroup{"scatter-gather", {"tx-scatter-gather*"}},
    FeatureGroup{"tcp-segmentation-offload",
                 {"tx-tcp-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation",
                  "tx-tcp6-segmentation"}},
    FeatureGroup{"generic-segmentation-offload", {"tx-generic-segmentation"}},
    FeatureGroup{"generic-receive-offload", {"rx-gro"}},
    FeatureGroup{"large-receive-offload", {"rx-lro"}},
    FeatureGroup{"rx-vlan-offload", {"rx-vlan-hw-parse"}},
    FeatureGroup{"tx-vlan-offload", {"tx-vlan-hw-insert"}},
    FeatureGroup{"receive-hashing", {"rx-hashing"}},
};

bool is_member(const FeatureGroup& group, std::string_view name) {
    return std::any_of(group.members.begin(), group.members.end(), [&](std::string_view member) {
        return member.ends_with('*') ? name.starts_with(member.substr(0, member.size() - 1))
                                     : !member.empty() && name == member;
    });
}

// A fixed field of chars that a driver may have filled to the end.
template <std::size_t N>
std::string field(const char (&chars)[N]) {
    return std::string(chars, ::strnlen(chars, N));
}

Duplex duplex_of(std::uint8_t value) {
    switch (value) {
        case DUPLEX_HALF:
            return Duplex::kHalf;
        case DUPLEX_FULL:
            return Duplex::kFull;
        default:
            return Duplex::kUnknown;
    }
}

// Header and tail of a struct with a flexible array, as bytes that the kernel writes into.
template <class Header>
struct Buffer {
    explicit Buffer(std::size_t tail) : bytes(sizeof(Header) + tail, '\0') {}
    void put(const Header& header) { std::memcpy(bytes.data(), &header, sizeof header); }
    [[nodiscard]] Header header() const {
        Header value;
        std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    std::string bytes;
};

}  // namespace

Result<Ethtool> Ethtool::open(std::string_view name) {
    if (Status valid = check_interface_name(name); !valid) {
        return fail(std::move(valid).error());
    }
    UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) {
        // A kernel or a sandbox without IPv4: any socket of the namespace will do.
        fd.reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0));
    }
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot open a socket for ethtool requests"));
    }
    return Ethtool(std::move(fd), std::string(name));
}

Status Ethtool::call(void* data, std::string_view what) const {
    ifreq request = {};
    std::memcpy(request.ifr_name, name_.data(),
                std::min(name_.size(), sizeof request.ifr_name - 1));
    request.ifr_data = static_cast<char*>(data);
    if (::ioctl(fd_.get(), SIOCETHTOOL, &request) < 0) {
        return fail(Error::from_errno(errno, name_ + ": cannot read the " + std::string(what)));
    }
    return {};
}

template <class Raw, class Value>
Result<Value> Ethtool::get(std::uint32_t command, std::string_view what,
                           Value (*make)(const Raw&)) const {
    Raw raw = {};
    raw.cmd = command;
    if (Status status = call(&raw, what); !status) {
        return fail(std::move(status).error());
    }
    return make(raw);
}

Result<DriverInfo> Ethtool::driver() const {
    return get(
        ETHTOOL_GDRVINFO, "driver information", +[](const ethtool_drvinfo& d) {
            return DriverInfo{field(d.driver), field(d.version), field(d.fw_version),
                              field(d.bus_info)};
        });
}

Result<RingSizes> Ethtool::rings() const {
    return get(
        ETHTOOL_GRINGPARAM, "ring sizes", +[](const ethtool_ringparam& r) {
            return RingSizes{r.rx_pending, r.rx_max_pending, r.tx_pending, r.tx_max_pending};
        });
}

Result<Coalesce> Ethtool::coalesce() const {
    return get(
        ETHTOOL_GCOALESCE, "interrupt coalescing", +[](const ethtool_coalesce& c) {
            Coalesce coalesce;
            coalesce.rx_usecs = c.rx_coalesce_usecs;
            coalesce.rx_frames = c.rx_max_coalesced_frames;
            coalesce.tx_usecs = c.tx_coalesce_usecs;
            coalesce.tx_frames = c.tx_max_coalesced_frames;
            coalesce.adaptive_rx = c.use_adaptive_rx_coalesce != 0;
            coalesce.adaptive_tx = c.use_adaptive_tx_coalesce != 0;
            return coalesce;
        });
}

Result<Channels> Ethtool::channels() const {
    return get(
        ETHTOOL_GCHANNELS, "channel counts", +[](const ethtool_channels& c) {
            return Channels{c.rx_count, c.tx_count, c.combined_count,
                            c.max_rx,   c.max_tx,   c.max_combined};
        });
}

Result<Pause> Ethtool::pause() const {
    return get(
        ETHTOOL_GPAUSEPARAM, "pause settings", +[](const ethtool_pauseparam& p) {
            return Pause{p.autoneg != 0, p.rx_pause != 0, p.tx_pause != 0};
        });
}

Result<Eee> Ethtool::eee() const {
    return get(
        ETHTOOL_GEEE, "EEE settings", +[](const ethtool_eee& e) {
            return Eee{e.eee_enabled != 0, e.eee_active != 0, e.tx_lpi_enabled != 0,
                       e.tx_lpi_timer};
        });
}

Result<LinkSettings> Ethtool::link() const {
    constexpr std::string_view kWhat = "link settings";
    // First the kernel says how many words its link mode masks have (as a negative number), then it
    // answers to who asks with that number.
    ethtool_link_settings ask = {};
    ask.cmd = ETHTOOL_GLINKSETTINGS;
    if (Status status = call(&ask, kWhat); !status) {
        return fail(std::move(status).error());
    }
    const int words = -ask.link_mode_masks_nwords;
    if (words <= 0) {
        return fail(ErrorCode::kUnsupported,
                    name_ + ": the kernel does not answer ETHTOOL_GLINKSETTINGS");
    }
    ask = {};
    ask.cmd = ETHTOOL_GLINKSETTINGS;
    ask.link_mode_masks_nwords = static_cast<std::int8_t>(words);
    Buffer<ethtool_link_settings> buffer(3 * static_cast<std::size_t>(words) *
                                         sizeof(std::uint32_t));
    buffer.put(ask);
    if (Status status = call(buffer.bytes.data(), kWhat); !status) {
        return fail(std::move(status).error());
    }
    const ethtool_link_settings answer = buffer.header();
    LinkSettings settings;
    if (answer.speed != 0 && answer.speed != static_cast<std::uint32_t>(SPEED_UNKNOWN)) {
        settings.speed_mbps = answer.speed;
    }
    settings.duplex = duplex_of(answer.duplex);
    settings.autoneg = answer.autoneg == AUTONEG_ENABLE;
    return settings;
}

Result<std::vector<std::string>> Ethtool::feature_names() const {
    constexpr std::string_view kWhat = "names of the device features";
    Buffer<ethtool_sset_info> count_buffer(sizeof(std::uint32_t));
    ethtool_sset_info set = {};
    set.cmd = ETHTOOL_GSSET_INFO;
    set.sset_mask = 1ull << ETH_SS_FEATURES;
    count_buffer.put(set);
    if (Status status = call(count_buffer.bytes.data(), kWhat); !status) {
        return fail(std::move(status).error());
    }
    std::uint32_t count = 0;
    std::memcpy(&count, count_buffer.bytes.data() + sizeof set, sizeof count);
    if (count_buffer.header().sset_mask == 0 || count == 0 || count > kMaxFeatures) {
        return fail(ErrorCode::kUnsupported,
                    name_ + ": the kernel does not list the device features");
    }
    Buffer<ethtool_gstrings> buffer(std::size_t{count} * ETH_GSTRING_LEN);
    ethtool_gstrings strings = {};
    strings.cmd = ETHTOOL_GSTRINGS;
    strings.string_set = ETH_SS_FEATURES;
    strings.len = count;
    buffer.put(strings);
    if (Status status = call(buffer.bytes.data(), kWhat); !status) {
        return fail(std::move(status).error());
    }
    std::vector<std::string> names(std::min(count, buffer.header().len));
    const char* at = buffer.bytes.data() + sizeof strings;
    for (std::string& name : names) {
        name.assign(at, ::strnlen(at, ETH_GSTRING_LEN));
        at += ETH_GSTRING_LEN;
    }
    return names;
}

Result<std::vector<Feature>> Ethtool::features() const {
    const Result<std::vector<std::string>> names = feature_names();
    if (!names) {
        return fail(names.error());
    }
    const std::size_t blocks = (names->size() + kFeaturesPerBlock - 1) / kFeaturesPerBlock;
    Buffer<ethtool_gfeatures> buffer(blocks * sizeof(ethtool_get_features_block));
    ethtool_gfeatures ask = buffer.header();
    ask.cmd = ETHTOOL_GFEATURES;
    ask.size = static_cast<std::uint32_t>(blocks);
    buffer.put(ask);
    if (Status status = call(buffer.bytes.data(), "device features"); !status) {
        return fail(std::move(status).error());
    }
    std::vector<ethtool_get_features_block> values(blocks);
    std::memcpy(values.data(), buffer.bytes.data() + sizeof ask, blocks * sizeof values.front());
    std::vector<Feature> features;
    for (std::size_t i = 0; i < names->size(); ++i) {
        const ethtool_get_features_block& block = values[i / kFeaturesPerBlock];
        const std::uint32_t bit = 1u << (i % kFeaturesPerBlock);
        const bool fixed = (block.available & bit) == 0 || (block.never_changed & bit) != 0;
        if (!(*names)[i].empty()) {
            features.push_back({(*names)[i], (block.active & bit) != 0, fixed});
        }
    }
    return features;
}

std::vector<Feature> offload_groups(const std::vector<Feature>& features) {
    std::vector<Feature> groups;
    for (const FeatureGroup& group : kGroups) {
        Feature sum{std::string(group.group), false, true};
        bool known = false;
        for (const Feature& feature : features) {
            if (is_member(group, feature.name)) {
                known = true;
                sum.active |= feature.active;
                sum.fixed &= feature.fixed;
            }
        }
        if (known) {
            groups.push_back(std::move(sum));
        }
    }
    return groups;
}

std::vector<std::string_view> offload_group_names() {
    std::vector<std::string_view> names;
    names.reserve(kGroups.size());
    for (const FeatureGroup& group : kGroups) {
        names.push_back(group.group);
    }
    return names;
}

}  // namespace ringside
