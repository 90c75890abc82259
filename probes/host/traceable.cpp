// Which kinds of interface have a TX path of their own: tables, and the sentences made from them.
#include <algorithm>
#include <array>

#include "probes/host/interface.h"

namespace ringside {

namespace {

// Where the packets of a device without a ring go, and so what to name in the hint.
enum class Beneath {
    kOwnQueue,  // accepted
    kPorts,     // one of its ports
    kLower,     // the device it sits on
    kRoute,     // whatever the route of the outer packet says
    kNothing,   // nowhere
};

struct KindRule {
    std::string_view kind;
    Beneath beneath;
    std::string_view what;
};

// Kinds that are not listed: see rule_of().
constexpr std::array kKinds = {
    KindRule{"veth", Beneath::kOwnQueue, ""},
    KindRule{"tun", Beneath::kOwnQueue, ""},
    KindRule{"ifb", Beneath::kOwnQueue, ""},
    KindRule{"netkit", Beneath::kOwnQueue, ""},
    KindRule{"ipoib", Beneath::kOwnQueue, ""},
    KindRule{"wwan", Beneath::kOwnQueue, ""},
    KindRule{"can", Beneath::kOwnQueue, ""},
    KindRule{"bridge", Beneath::kPorts, "a bridge"},
    KindRule{"bond", Beneath::kPorts, "a bond"},
    KindRule{"team", Beneath::kPorts, "a team"},
    KindRule{"hsr", Beneath::kPorts, "an HSR ring"},
    KindRule{"vrf", Beneath::kPorts, "a VRF"},
    KindRule{"openvswitch", Beneath::kPorts, "an Open vSwitch port"},
    KindRule{"batadv", Beneath::kPorts, "a batman-adv mesh"},
    KindRule{"vlan", Beneath::kLower, "a VLAN"},
    KindRule{"macvlan", Beneath::kLower, "a macvlan"},
    KindRule{"macvtap", Beneath::kLower, "a macvtap"},
    KindRule{"ipvlan", Beneath::kLower, "an ipvlan"},
    KindRule{"ipvtap", Beneath::kLower, "an ipvtap"},
    KindRule{"macsec", Beneath::kLower, "a MACsec device"},
    KindRule{"dsa", Beneath::kLower, "a switch (DSA) port"},
    KindRule{"rmnet", Beneath::kLower, "an rmnet device"},
    KindRule{"ppp", Beneath::kLower, "a PPP link"},
    KindRule{"vxlan", Beneath::kRoute, "a VXLAN tunnel"},
    KindRule{"geneve", Beneath::kRoute, "a Geneve tunnel"},
    KindRule{"gre", Beneath::kRoute, "a GRE tunnel"},
    KindRule{"gretap", Beneath::kRoute, "a GRE tunnel"},
    KindRule{"ip6gre", Beneath::kRoute, "a GRE tunnel"},
    KindRule{"ip6gretap", Beneath::kRoute, "a GRE tunnel"},
    KindRule{"erspan", Beneath::kRoute, "an ERSPAN tunnel"},
    KindRule{"ip6erspan", Beneath::kRoute, "an ERSPAN tunnel"},
    KindRule{"ipip", Beneath::kRoute, "an IP tunnel"},
    KindRule{"ip6tnl", Beneath::kRoute, "an IP tunnel"},
    KindRule{"sit", Beneath::kRoute, "an IP tunnel"},
    KindRule{"vti", Beneath::kRoute, "an IPsec tunnel"},
    KindRule{"vti6", Beneath::kRoute, "an IPsec tunnel"},
    KindRule{"xfrm", Beneath::kRoute, "an IPsec tunnel"},
    KindRule{"gtp", Beneath::kRoute, "a GTP tunnel"},
    KindRule{"bareudp", Beneath::kRoute, "a UDP tunnel"},
    KindRule{"amt", Beneath::kRoute, "an AMT tunnel"},
    KindRule{"ovpn", Beneath::kRoute, "an OpenVPN tunnel"},
    KindRule{"wireguard", Beneath::kRoute, "a WireGuard tunnel"},
    KindRule{"dummy", Beneath::kNothing, "a dummy: it frees every packet at once"},
    KindRule{"nlmon", Beneath::kNothing, "a netlink monitor: it only receives"},
    KindRule{"vcan", Beneath::kNothing, "a virtual CAN bus: it loops packets back"},
    KindRule{"vsockmon", Beneath::kNothing, "a vsock monitor: it only receives"},
};

constexpr std::string_view kTraceHardware = "trace the port that the traffic really leaves by";

struct Remark {
    std::string_view name;  // link kind or driver
    std::string_view text;
};

constexpr std::array kRemarks = {
    Remark{"veth",
           "veth hands the packet itself to its peer: 'completed' is when the peer's stack frees "
           "it, which "
           "has no tracepoint on some paths"},
    Remark{"netkit",
           "netkit hands the packet itself to its peer: 'completed' is when the peer's stack frees "
           "it, which "
           "has no tracepoint on some paths"},
    Remark{"ifb",
           "ifb sends the packet itself back into the stack: 'completed' is when whoever gets it "
           "next frees "
           "it, which has no tracepoint on some paths"},
    Remark{"tun",
           "a tun/tap packet is completed when the process behind it reads it, and no ring is "
           "involved"},
    Remark{"virtio_net",
           "virtio_net frees sent packets in batches, without napi_tx only when the next one is "
           "sent: latency "
           "then includes that wait"},
    Remark{"r8152",
           "r8152 copies packets into USB transfers: 'completed' is when the copy is made or the "
           "transfer "
           "returns, not when the frame is on the wire"},
};

const KindRule* find_kind(std::string_view kind) {
    const auto* const rule = std::find_if(kKinds.begin(), kKinds.end(),
                                          [&](const KindRule& r) { return r.kind == kind; });
    return rule == kKinds.end() ? nullptr : rule;
}

KindRule rule_of(const Interface& interface) {
    if (interface.loopback) {
        return {"", Beneath::kNothing, "the loopback: packets go straight back into the stack"};
    }
    if (const KindRule* known = find_kind(interface.kind)) {
        return *known;
    }
    // Without a listed kind, sitting on another device is what tells: DSA ports have no kind before
    // Linux 6.0, and whatever is invented next will most likely pass packets on, too.
    if (interface.lower_ifindex != 0) {
        return {interface.kind, Beneath::kLower, "a device on top of another one"};
    }
    if (!interface.ports.empty()) {
        return {interface.kind, Beneath::kPorts, "a device made of ports"};
    }
    return {interface.kind, Beneath::kOwnQueue, ""};
}

std::string join(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

std::string hint_for(Beneath beneath, const Interface& interface) {
    if (beneath == Beneath::kPorts) {
        return interface.ports.empty() ? "it has no ports; " + std::string(kTraceHardware)
                                       : "trace one of its ports: " + join(interface.ports);
    }
    if (beneath == Beneath::kNothing) {
        return std::string(kTraceHardware);
    }
    if (!interface.lower.empty()) {
        return "trace the device it sits on: " + interface.lower;
    }
    return beneath == Beneath::kRoute
               ? "trace the port that `ip route get` names for the tunnel's far end"
               : std::string(kTraceHardware);
}

}  // namespace

Status check_traceable(const Interface& interface) {
    const KindRule rule = rule_of(interface);
    if (rule.beneath == Beneath::kOwnQueue) {
        return {};
    }
    std::string what = interface.name + " is " + std::string(rule.what);
    if (rule.beneath != Beneath::kNothing) {
        what += ", it has no transmit ring of its own and packets only pass through";
    }
    return fail(
        Error(ErrorCode::kUnsupported, std::move(what)).hint(hint_for(rule.beneath, interface)));
}

std::string remark(const Interface& interface) {
    for (const Remark& entry : kRemarks) {
        if (entry.name == interface.kind || entry.name == interface.driver) {
            return std::string(entry.text);
        }
    }
    if (!interface.kind.empty() && find_kind(interface.kind) == nullptr) {
        return "'" + interface.kind + "' is a kind of interface that ringside does not know";
    }
    return {};
}

}  // namespace ringside
