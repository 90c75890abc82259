// What a network interface is, asked from the kernel by rtnetlink: no shell, no libnl, no root.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/sysroot.h"
#include "probes/host/netlink.h"

namespace ringside {

// A snapshot. The name may change at any time; ifindex and netns_inum together are the identity.
struct Interface {
    std::string name;
    unsigned ifindex = 0;
    std::uint32_t netns_inum =
        0;               // inode of the network namespace it was found in; 0: /proc not readable
    std::string driver;  // as `ethtool -i` says: "r8169", "st_gmac", "virtio_net"; may be empty
    std::string kind;    // rtnl link kind: "veth", "bridge", "tun"; empty for hardware
    unsigned num_tx_queues = 0;  // allocated (IFLA_NUM_TX_QUEUES)
    unsigned real_tx_queues =
        0;            // in use; 0: not known (sysfs of another namespace), see real_tx_queues()
    bool up = false;  // IFF_UP: the administrator wants it up
    bool carrier = false;  // there is a link
    bool loopback = false;
    unsigned mtu = 0;           // bytes
    unsigned tx_queue_len = 0;  // packets
    std::string qdisc;          // kind of the root qdisc: "mq", "fq_codel", "noqueue"
    unsigned lower_ifindex =
        0;              // the device it sits on (veth: its peer), 0: none or in another namespace
    std::string lower;  // its name
    unsigned master_ifindex = 0;     // bridge, bond or team it is a port of; 0: none
    std::vector<std::string> ports;  // of a bridge, bond or team: names of its ports
    // Tells whether sysfs shows the same device; a hash of the hardware address so that the address
    // itself is not carried around. Never recorded.
    std::uint64_t address_hash = 0;
};

// A name that the kernel could have given: 1 to 15 bytes, no '/', ':' or white space, not "." or
// "..". Errors: kUsage.
Status check_interface_name(std::string_view name);

// Errors: kUsage (impossible name), kNotFound with a hint that lists interfaces that exist, kIo.
// An alternative name (`ip link property`) of at most 15 bytes is found too; `name` is then the
// real one.
Result<Interface> find_interface(std::string_view name, const Sysroot& root = Sysroot());

// All links of this namespace, by ifindex; without driver, real_tx_queues, lower and ports.
Result<std::vector<Interface>> list_interfaces();

// Whether it has a TX path of its own that can be traced. A device that packets only pass through
// is refused (kUnsupported) with the device to trace instead as the hint.
Status check_traceable(const Interface& interface);

// What to keep in mind when reading a trace of this driver; empty when there is nothing.
std::string remark(const Interface& interface);

// Inode of the network namespace of the calling thread. Errors: of stat.
Result<std::uint32_t> current_netns();

// Whether /sys/class/net/<name> is this device. It is not when /sys was mounted in another network
// namespace, where the same name is another device or none. Needs the ifindex (and, where given,
// the hardware address) to agree. Errors: kNotFound (no such name there), kGone (another device).
Status check_sysfs(const Interface& interface, const Sysroot& root);

// TX queues in use: the tx-N folders of /sys/class/net/<name>/queues (the kernel keeps one for each
// queue in use, not for each allocated one). Errors: kNotFound.
Result<unsigned> real_tx_queues(const Sysroot& root, std::string_view name);

// The kernel's own counters of one link since the device exists (IFLA_STATS64).
struct LinkCounters {
    std::uint64_t tx_packets = 0;
    std::uint64_t tx_bytes = 0;
    std::uint64_t tx_dropped = 0;
    std::uint64_t tx_errors = 0;
};

// Asks about links again and again on one socket; in the namespace of the thread that opened it.
class LinkQuery {
  public:
    // Errors: kNoRights, kIo.
    static Result<LinkQuery> open();

    // RTM_GETSTATS, two system calls. Errors: kGone (no such link any more), kUnsupported
    // (before 4.7).
    Result<LinkCounters> counters(unsigned ifindex);
    // As list_interfaces(), for one. Errors: kNotFound.
    Result<Interface> by_name(std::string_view name);
    Result<std::vector<Interface>> all();

  private:
    explicit LinkQuery(NetlinkSocket socket) : socket_(std::move(socket)) {}
    NetlinkSocket socket_;
};

// One counter reading on a socket of its own; a loop keeps a LinkQuery. Errors: as LinkQuery.
Result<LinkCounters> link_counters(unsigned ifindex);

// The payload of an RTM_NEWLINK or RTM_DELLINK. Nothing for what is not about a link itself: a
// bridge port leaving its bridge is an RTM_DELLINK too, of family AF_BRIDGE.
std::optional<Interface> parse_link(std::string_view payload);

}  // namespace ringside
