#include "probes/host/device_figures.h"

#include <linux/pkt_sched.h>
#include <sys/utsname.h>

namespace ringside {

namespace {

struct Qdisc {
    unsigned ifindex = 0;
    std::uint32_t parent = 0;
    std::string kind;
};

std::optional<Qdisc> parse_qdisc(std::string_view payload) {
    const auto header = copy_front<tcmsg>(payload);
    if (!header) {
        return std::nullopt;
    }
    Qdisc qdisc{static_cast<unsigned>(header->tcm_ifindex), header->tcm_parent, {}};
    for_each_attribute(payload.substr(sizeof *header),
                       [&](std::uint16_t type, std::string_view bytes) {
                           if (type == TCA_KIND) {
                               qdisc.kind = attribute_text(bytes);
                           }
                       });
    return qdisc;
}

std::string machine() {
    utsname names = {};
    return ::uname(&names) == 0 ? names.machine : "";
}

}  // namespace

Result<std::map<std::string, unsigned>> leaf_qdiscs(unsigned ifindex) {
    Result<NetlinkSocket> socket = NetlinkSocket::open();
    if (!socket) {
        return fail(std::move(socket).error());
    }
    tcmsg header = {};
    header.tcm_ifindex = static_cast<int>(ifindex);
    std::map<std::string, unsigned> kinds;
    const Status status = socket->request(
        NetlinkRequest(RTM_GETQDISC, NLM_F_DUMP).header(header),
        [&](const NetlinkMessage& message) {
            // The kernel lists the qdiscs of every device, whatever was asked.
            const auto qdisc = parse_qdisc(message.payload);
            if (qdisc && qdisc->ifindex == ifindex && qdisc->parent != TC_H_ROOT &&
                qdisc->parent != TC_H_INGRESS) {
                ++kinds[qdisc->kind];
            }
        },
        [&] { kinds.clear(); });
    if (!status) {
        return fail(Error(status.error()).context("listing the qdiscs"));
    }
    return kinds;
}

DeviceFigures read_device(const Interface& interface) {
    const Result<Ethtool> ethtool = Ethtool::open(interface.name);
    const auto ask = [&](auto function) -> decltype(((*ethtool).*function)()) {
        if (!ethtool) {
            return fail(ethtool.error());
        }
        return ((*ethtool).*function)();
    };
    return {ask(&Ethtool::driver),
            ask(&Ethtool::rings),
            ask(&Ethtool::coalesce),
            ask(&Ethtool::channels),
            ask(&Ethtool::link),
            ask(&Ethtool::pause),
            ask(&Ethtool::eee),
            ask(&Ethtool::features),
            leaf_qdiscs(interface.ifindex),
            machine()};
}

}  // namespace ringside
