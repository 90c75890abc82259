#include "probes/host/interface.h"

#include <linux/if_link.h>
#include <net/if.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "probes/host/ethtool.h"

namespace ringside {

namespace {

constexpr std::size_t kNamesInHint = 8;

// FNV-1a over the text that sysfs shows, "02:00:5e:...": both sides hash the same form.
std::uint64_t hash_text(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    return hash;
}

std::string hardware_address_text(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        text += text.empty() ? "" : ":";
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

std::string link_kind(std::string_view link_info) {
    std::string kind;
    for_each_attribute(link_info, [&](std::uint16_t type, std::string_view payload) {
        if (type == IFLA_INFO_KIND) {
            kind = attribute_text(payload);
        }
    });
    return kind;
}

void apply_attribute(Interface& link, std::uint16_t type, std::string_view payload) {
    const std::uint32_t number = copy_front<std::uint32_t>(payload).value_or(0);
    switch (type) {
        case IFLA_IFNAME:
            link.name = attribute_text(payload);
            break;
        case IFLA_LINKINFO:
            link.kind = link_kind(payload);
            break;
        case IFLA_NUM_TX_QUEUES:
            link.num_tx_queues = number;
            break;
        case IFLA_CARRIER:
            link.carrier = copy_front<std::uint8_t>(payload).value_or(0) != 0;
            break;
        case IFLA_MTU:
            link.mtu = number;
            break;
        case IFLA_TXQLEN:
            link.tx_queue_len = number;
            break;
        case IFLA_QDISC:
            link.qdisc = attribute_text(payload);
            break;
        case IFLA_LINK:
            link.lower_ifindex = number;
            break;
        case IFLA_MASTER:
            link.master_ifindex = number;
            break;
        case IFLA_ADDRESS:
            link.address_hash = hash_text(hardware_address_text(payload));
            break;
        default:
            break;
    }
}

// The names at the other ends of lower_ifindex and master_ifindex.
void name_neighbours(Interface& interface, const std::vector<Interface>& all) {
    for (const Interface& other : all) {
        if (interface.lower_ifindex != 0 && other.ifindex == interface.lower_ifindex) {
            interface.lower = other.name;
        }
        if (other.master_ifindex == interface.ifindex) {
            interface.ports.push_back(other.name);
        }
    }
}

// `ethtool -i` first: it works in any namespace. Some drivers have no ethtool at all.
std::string driver_name(const Interface& interface, const Sysroot& root) {
    if (const auto ethtool = Ethtool::open(interface.name)) {
        if (const auto info = ethtool->driver(); info && !info->driver.empty()) {
            return info->driver;
        }
    }
    if (!check_sysfs(interface, root)) {
        return {};
    }
    return root.link_name("/sys/class/net/" + interface.name + "/device/driver").value_or("");
}

std::string existing_names(LinkQuery& query) {
    const auto all = query.all();
    if (!all || all->empty()) {
        return "this network namespace has no interfaces that can be listed";
    }
    std::string text = "there are: ";
    for (std::size_t i = 0; i < std::min(all->size(), kNamesInHint); ++i) {
        text += (i == 0 ? "" : ", ") + (*all)[i].name;
    }
    if (all->size() > kNamesInHint) {
        text += " and " + std::to_string(all->size() - kNamesInHint) + " more";
    }
    return text;
}

Result<LinkCounters> parse_counters(std::string_view payload) {
    std::optional<rtnl_link_stats64> stats;
    if (payload.size() >= sizeof(if_stats_msg)) {
        for_each_attribute(
            payload.substr(sizeof(if_stats_msg)), [&](std::uint16_t type, std::string_view bytes) {
                if (type != IFLA_STATS_LINK_64) {
                    return;
                }
                // The struct grows with the kernel: take what both know.
                stats.emplace();
                std::memcpy(&*stats, bytes.data(), std::min(bytes.size(), sizeof *stats));
            });
    }
    if (!stats) {
        return fail(ErrorCode::kUnsupported, "the kernel gave no link counters");
    }
    return LinkCounters{stats->tx_packets, stats->tx_bytes, stats->tx_dropped, stats->tx_errors};
}

}  // namespace

Status check_interface_name(std::string_view name) {
    const auto impossible = [](char c) {
        return c == '/' || c == ':' || c == '\0' ||
               std::isspace(static_cast<unsigned char>(c)) != 0;
    };
    if (name.empty() || name.size() >= IFNAMSIZ || name == "." || name == ".." ||
        std::any_of(name.begin(), name.end(), impossible)) {
        return fail(
            Error(ErrorCode::kUsage,
                  "'" + std::string(name.substr(0, 40)) + "' cannot be an interface name")
                .hint("1 to 15 characters, without '/', ':' or white space, as `ip link` shows"));
    }
    return {};
}

Result<std::uint32_t> current_netns() {
    // thread-self, not self: a thread that has left for a namespace of its own must see that one.
    struct stat status = {};
    if (::stat("/proc/thread-self/ns/net", &status) != 0) {
        return fail(Error::from_errno(errno, "cannot tell the network namespace"));
    }
    return static_cast<std::uint32_t>(status.st_ino);
}

std::optional<Interface> parse_link(std::string_view payload) {
    const auto header = copy_front<ifinfomsg>(payload);
    if (!header || header->ifi_family != AF_UNSPEC || header->ifi_index <= 0) {
        return std::nullopt;
    }
    Interface link;
    link.ifindex = static_cast<unsigned>(header->ifi_index);
    link.up = (header->ifi_flags & IFF_UP) != 0;
    link.loopback = (header->ifi_flags & IFF_LOOPBACK) != 0;
    bool lower_is_foreign = false;
    for_each_attribute(
        payload.substr(std::min(payload.size(), std::size_t{NLMSG_ALIGN(sizeof *header)})),
        [&](std::uint16_t type, std::string_view bytes) {
            lower_is_foreign |= type == IFLA_LINK_NETNSID;
            apply_attribute(link, type, bytes);
        });
    if (lower_is_foreign || link.lower_ifindex == link.ifindex) {
        link.lower_ifindex = 0;
    }
    if (link.name.empty()) {
        return std::nullopt;
    }
    return link;
}

Result<LinkQuery> LinkQuery::open() {
    Result<NetlinkSocket> socket = NetlinkSocket::open();
    if (!socket) {
        return fail(std::move(socket).error());
    }
    return LinkQuery(std::move(*socket));
}

Result<LinkCounters> LinkQuery::counters(unsigned ifindex) {
    if_stats_msg header = {};
    header.ifindex = ifindex;
    header.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
    Result<LinkCounters> counters = fail(ErrorCode::kIo, "no answer about the link counters");
    const Status status = socket_.request(
        NetlinkRequest(RTM_GETSTATS, 0).header(header),
        [&](const NetlinkMessage& message) { counters = parse_counters(message.payload); });
    if (status) {
        return counters;
    }
    if (status.error().error_number() == ENODEV) {
        return fail(ErrorCode::kGone,
                    "the interface with index " + std::to_string(ifindex) + " is gone");
    }
    return fail(Error(status.error()).context("reading the link counters"));
}

Result<Interface> LinkQuery::by_name(std::string_view name) {
    if (Status valid = check_interface_name(name); !valid) {
        return fail(std::move(valid).error());
    }
    Result<Interface> found = fail(ErrorCode::kIo, "no answer about " + std::string(name));
    const Status status = socket_.request(
        NetlinkRequest(RTM_GETLINK, 0).header(ifinfomsg{}).text(IFLA_IFNAME, std::string(name)),
        [&](const NetlinkMessage& message) {
            if (auto link = parse_link(message.payload)) {
                found = std::move(*link);
            }
        });
    if (!status) {
        return fail(Error(status.error()).context("asking for the interface " + std::string(name)));
    }
    return found;
}

Result<std::vector<Interface>> LinkQuery::all() {
    std::vector<Interface> links;
    const Status status = socket_.request(
        NetlinkRequest(RTM_GETLINK, NLM_F_DUMP).header(ifinfomsg{}),
        [&](const NetlinkMessage& message) {
            if (auto link = parse_link(message.payload)) {
                links.push_back(std::move(*link));
            }
        },
        [&] { links.clear(); });
    if (!status) {
        return fail(Error(status.error()).context("listing the interfaces"));
    }
    std::sort(links.begin(), links.end(),
              [](const Interface& a, const Interface& b) { return a.ifindex < b.ifindex; });
    return links;
}

Result<LinkCounters> link_counters(unsigned ifindex) {
    Result<LinkQuery> query = LinkQuery::open();
    if (!query) {
        return fail(std::move(query).error());
    }
    return query->counters(ifindex);
}

Result<std::vector<Interface>> list_interfaces() {
    Result<LinkQuery> query = LinkQuery::open();
    if (!query) {
        return fail(std::move(query).error());
    }
    Result<std::vector<Interface>> all = query->all();
    if (all) {
        for (Interface& link : *all) {
            link.netns_inum = current_netns().value_or(0);
        }
    }
    return all;
}

Result<Interface> find_interface(std::string_view name, const Sysroot& root) {
    Result<LinkQuery> query = LinkQuery::open();
    if (!query) {
        return fail(std::move(query).error());
    }
    Result<Interface> found = query->by_name(name);
    if (!found && found.error().code() == ErrorCode::kNotFound) {
        return fail(Error(ErrorCode::kNotFound, "there is no interface " + std::string(name))
                        .hint(existing_names(*query)));
    }
    if (!found) {
        return found;
    }
    Interface& interface = *found;
    interface.netns_inum = current_netns().value_or(0);
    if (const auto all = query->all()) {
        name_neighbours(interface, *all);
    }
    interface.driver = driver_name(interface, root);
    if (check_sysfs(interface, root)) {
        interface.real_tx_queues = real_tx_queues(root, interface.name).value_or(0);
    }
    return found;
}

Status check_sysfs(const Interface& interface, const Sysroot& root) {
    const std::string folder = "/sys/class/net/" + interface.name;
    if (!root.exists(folder)) {
        return fail(Error(ErrorCode::kNotFound, folder + " does not exist")
                        .hint("is /sys mounted in the interface's network namespace?"));
    }
    const auto ifindex = root.read_int(folder + "/ifindex");
    const auto address = root.read_line(folder + "/address");
    const bool other_index = ifindex && *ifindex != static_cast<std::int64_t>(interface.ifindex);
    const bool other_address =
        interface.address_hash != 0 && address && hash_text(*address) != interface.address_hash;
    if (other_index || other_address) {
        return fail(
            Error(ErrorCode::kGone, folder + " is another device of the same name")
                .hint("mount /sys in the interface's network namespace, as `ip netns exec` does"));
    }
    return {};
}

Result<unsigned> real_tx_queues(const Sysroot& root, std::string_view name) {
    const std::string folder = "/sys/class/net/" + std::string(name) + "/queues";
    if (!root.exists(folder)) {
        return fail(ErrorCode::kNotFound, folder + " does not exist");
    }
    const std::vector<std::string> names = root.list(folder);
    const auto count = std::count_if(names.begin(), names.end(), [](std::string_view entry) {
        return entry.size() > 3 && entry.starts_with("tx-") &&
               entry.substr(3).find_first_not_of("0123456789") == std::string_view::npos;
    });
    return static_cast<unsigned>(count);
}

}  // namespace ringside
