// Interfaces as a real kernel shows them: devices of our own in a network namespace of our own,
// which goes away with the thread that runs the test. Needs root. No traffic leaves the namespace.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "probes/host/ethtool.h"
#include "probes/host/facts.h"
#include "probes/host/interface.h"
#include "probes/host/link_monitor.h"
#include "tests/live/host_live_network.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Interface find(const std::string& name) {
    Result<Interface> found = find_interface(name);
    EXPECT_TRUE(found) << found.error().line();
    return found ? *found : Interface();
}

std::vector<LinkEvent> events_of(LinkMonitor& monitor) {
    const auto events = monitor.read_events();
    EXPECT_TRUE(events) << events.error().line();
    return events ? *events : std::vector<LinkEvent>();
}

LinkMonitor open_monitor(LinkMonitor::Options options = {}) {
    Result<LinkMonitor> monitor = LinkMonitor::open(std::move(options));
    EXPECT_TRUE(monitor) << monitor.error().line();
    return std::move(monitor).value();
}

bool is_readable(int fd, int wait_ms = 0) {
    pollfd entry = {fd, POLLIN, 0};
    return ::poll(&entry, 1, wait_ms) == 1;
}

// The kernel tells of carrier changes from a work queue, up to a second late.
bool comes(LinkMonitor& monitor, const LinkEvent& event) {
    constexpr int kPatienceMs = 5'000;
    while (is_readable(monitor.fd(), kPatienceMs)) {
        const std::vector<LinkEvent> events = events_of(monitor);
        if (std::find(events.begin(), events.end(), event) != events.end()) {
            return true;
        }
    }
    return false;
}

TEST(HostLive, FindsAVethAndItsPeer) {
    const std::uint32_t outside = current_netns().value();
    in_namespace([&] {
        create_veth("left", "right");
        const Interface left = find("left");
        EXPECT_EQ(left.kind, "veth");
        EXPECT_EQ(left.driver, "veth");
        EXPECT_EQ(left.lower, "right");
        EXPECT_EQ(left.real_tx_queues, 1u);
        EXPECT_GE(left.num_tx_queues, left.real_tx_queues);
        EXPECT_EQ(left.mtu, 1500u);
        EXPECT_FALSE(left.up);
        EXPECT_FALSE(left.carrier);
        EXPECT_NE(left.netns_inum, outside);
        EXPECT_EQ(left.netns_inum, current_netns().value());
        EXPECT_TRUE(check_traceable(left));
        EXPECT_THAT(remark(left), HasSubstr("peer"));
        set_up(left.ifindex, true);
        set_up(find("right").ifindex, true);
        EXPECT_TRUE(find("left").up);
        EXPECT_TRUE(find("left").carrier);
        const auto missing = find_interface("middle");
        ASSERT_FALSE(missing);
        EXPECT_THAT(missing.error().hint(), testing::AllOf(HasSubstr("left"), HasSubstr("right")));
    });
}

TEST(HostLive, RefusesABridgeAndAMacvlanWithTheWayOut) {
    in_namespace([] {
        create("br0", "bridge");
        create("ifb7", "ifb");
        create_veth("port", "far");
        const unsigned far = find("far").ifindex;
        set_master(find("port").ifindex, find("br0").ifindex);
        create("mv0", "macvlan", {}, far);
        const Status bridge = check_traceable(find("br0"));
        ASSERT_FALSE(bridge);
        EXPECT_EQ(bridge.error().hint(), "trace one of its ports: port");
        const Status macvlan = check_traceable(find("mv0"));
        ASSERT_FALSE(macvlan);
        EXPECT_EQ(macvlan.error().hint(), "trace the device it sits on: far");
        EXPECT_FALSE(check_traceable(find("lo")));
        EXPECT_TRUE(check_traceable(find("port")));
        EXPECT_TRUE(check_traceable(find("ifb7")));
    });
}

TEST(HostLive, NamesAtMostEightInterfacesInTheHint) {
    in_namespace([] {
        for (int i = 0; i < 5; ++i) {
            create_veth("a" + std::to_string(i), "b" + std::to_string(i));
        }
        const auto missing = find_interface("nosuch");
        ASSERT_FALSE(missing);
        EXPECT_THAT(missing.error().hint(), HasSubstr("and 3 more"));
    });
}

TEST(HostLive, CountsWhatATapSent) {
    in_namespace([] {
        constexpr std::uint64_t kFrames = 13;
        constexpr std::size_t kBytes = 100;
        const UniqueFd tap = open_tap("tap0");
        const Interface interface = find("tap0");
        set_up(interface.ifindex, true);
        Result<LinkQuery> query = LinkQuery::open();
        ASSERT_TRUE(query);
        const LinkCounters before = query->counters(interface.ifindex).value();
        const UniqueFd packet(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
        ASSERT_TRUE(packet) << std::strerror(errno);
        sockaddr_ll to = {};
        to.sll_family = AF_PACKET;
        to.sll_ifindex = static_cast<int>(interface.ifindex);
        // A protocol number of IEEE's local experiments: no one answers.
        std::string frame(kBytes, '\0');
        frame[12] = static_cast<char>(0x88);
        frame[13] = static_cast<char>(0xb5);
        std::string received(2048, '\0');
        for (std::uint64_t i = 0; i < kFrames; ++i) {
            ASSERT_EQ(::sendto(packet.get(), frame.data(), frame.size(), 0,
                               reinterpret_cast<const sockaddr*>(&to), sizeof to),
                      static_cast<ssize_t>(kBytes))
                << std::strerror(errno);
            ASSERT_EQ(::read(tap.get(), received.data(), received.size()),
                      static_cast<ssize_t>(kBytes));
        }
        const LinkCounters after = query->counters(interface.ifindex).value();
        EXPECT_EQ(after.tx_packets - before.tx_packets, kFrames);
        EXPECT_EQ(after.tx_bytes - before.tx_bytes, kFrames * kBytes);
        EXPECT_EQ(after.tx_errors, before.tx_errors);
        EXPECT_EQ(after.tx_dropped, before.tx_dropped);
        remove_link(interface.ifindex);
        EXPECT_EQ(query->counters(interface.ifindex).error().code(), ErrorCode::kGone);
    });
}

TEST(HostLive, AsksEthtoolAboutATapAndAVeth) {
    in_namespace([] {
        const UniqueFd tap = open_tap("tap0");
        const Ethtool ethtool = Ethtool::open("tap0").value();
        EXPECT_EQ(ethtool.driver().value().driver, "tun");
        EXPECT_EQ(ethtool.link().value().duplex, Duplex::kFull);
        EXPECT_TRUE(ethtool.link().value().speed_mbps);
        EXPECT_EQ(ethtool.rings().error().error_number(), EOPNOTSUPP);
        EXPECT_EQ(ethtool.rings().error().code(), ErrorCode::kUnsupported);
        EXPECT_EQ(ethtool.pause().error().code(), ErrorCode::kUnsupported);
        const std::vector<Feature> features = ethtool.features().value();
        const auto is_gro = [](const Feature& f) { return f.name == "rx-gro"; };
        EXPECT_EQ(std::count_if(features.begin(), features.end(), is_gro), 1);
        EXPECT_EQ(offload_groups(features).size(), offload_group_names().size());

        create_veth("left", "right");
        const Ethtool veth = Ethtool::open("left").value();
        EXPECT_EQ(veth.channels().value().tx, 1u);
        remove_link(find("left").ifindex);
        EXPECT_EQ(veth.channels().error().error_number(), ENODEV);
    });
}

TEST(HostLive, SeesFeaturesThatAreTurnedOff) {
    in_namespace([] {
        create_veth("left", "right");
        const Ethtool ethtool = Ethtool::open("left").value();
        const auto tso = [&] {
            for (const Feature& group : offload_groups(ethtool.features().value())) {
                if (group.name == "tcp-segmentation-offload") {
                    return group.active;
                }
            }
            return false;
        };
        EXPECT_TRUE(tso());
        ethtool_value off = {ETHTOOL_STSO, 0};
        ifreq request = {};
        std::strcpy(request.ifr_name, "left");
        request.ifr_data = reinterpret_cast<char*>(&off);
        const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::ioctl(socket.get(), SIOCETHTOOL, &request), 0) << std::strerror(errno);
        EXPECT_FALSE(tso());
    });
}

TEST(LinkMonitorLive, TellsTheLifeOfALink) {
    in_namespace([] {
        LinkMonitor monitor = open_monitor();
        EXPECT_FALSE(is_readable(monitor.fd()));
        EXPECT_THAT(events_of(monitor), IsEmpty());

        create_veth("left", "right");
        EXPECT_TRUE(is_readable(monitor.fd()));
        const unsigned left = find("left").ifindex;
        const unsigned right = find("right").ifindex;
        EXPECT_THAT(events_of(monitor), testing::UnorderedElementsAre(
                                            LinkEvent{LinkEventKind::kNew, left, "left", "", 0},
                                            LinkEvent{LinkEventKind::kNew, right, "right", "", 0}));

        rename_link(left, "wan");
        EXPECT_THAT(events_of(monitor),
                    ElementsAre(LinkEvent{LinkEventKind::kRenamed, left, "wan", "left", 0}));

        set_up(left, true);
        set_up(right, true);
        EXPECT_TRUE(comes(monitor, {LinkEventKind::kCarrierUp, left, "wan", "", 0}));
        set_up(right, false);
        EXPECT_TRUE(comes(monitor, {LinkEventKind::kCarrierDown, left, "wan", "", 0}));

        remove_link(left);
        create_veth("wan", "right");
        const unsigned again = find("wan").ifindex;
        EXPECT_NE(again, left);
        const std::vector<LinkEvent> events = events_of(monitor);
        const auto at = [&](const LinkEvent& event) {
            return std::find(events.begin(), events.end(), event);
        };
        const auto gone = at({LinkEventKind::kGone, left, "wan", "", 0});
        const auto back = at({LinkEventKind::kNew, again, "wan", "", 0});
        ASSERT_NE(gone, events.end());
        ASSERT_NE(back, events.end());
        EXPECT_LT(gone, back);
        EXPECT_EQ(monitor.resyncs(), 0u);
    });
}

// The kernel says RTM_DELLINK, of family AF_BRIDGE, when a port leaves.
TEST(LinkMonitorLive, DoesNotTakeAPortThatLeavesItsBridgeForGone) {
    in_namespace([] {
        create("br0", "bridge");
        create_veth("left", "right");
        const unsigned left = find("left").ifindex;
        set_master(left, find("br0").ifindex);
        LinkMonitor monitor = open_monitor();
        set_master(left, 0);
        for (const LinkEvent& event : events_of(monitor)) {
            EXPECT_NE(event.kind, LinkEventKind::kGone) << event.name;
            EXPECT_NE(event.kind, LinkEventKind::kNew) << event.name;
        }
    });
}

TEST(LinkMonitorLive, TakesAMoveToAnotherNamespaceForGone) {
    in_namespace([] {
        const UniqueFd here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << std::strerror(errno);
        const UniqueFd there(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        ASSERT_EQ(::setns(here.get(), CLONE_NEWNET), 0) << std::strerror(errno);
        create_veth("left", "right");
        const unsigned left = find("left").ifindex;
        LinkMonitor monitor = open_monitor();
        change(link_request(RTM_NEWLINK, 0, left).number(IFLA_NET_NS_FD, there.get()));
        EXPECT_THAT(events_of(monitor),
                    testing::Contains(LinkEvent{LinkEventKind::kGone, left, "left", "", 0}));
        EXPECT_EQ(find("right").lower_ifindex, 0u) << "its peer is in another namespace";
    });
}

TEST(LinkMonitorLive, TellsWhenTheQueueCountChanges) {
    in_namespace([] {
        UniqueFd first = open_tap("tap0", IFF_MULTI_QUEUE);
        const Interface interface = find("tap0");
        EXPECT_EQ(interface.real_tx_queues, 1u);
        EXPECT_GT(interface.num_tx_queues, 1u);
        LinkMonitor::Options options;
        options.watch_ifindex = interface.ifindex;
        LinkMonitor monitor = open_monitor(options);
        EXPECT_THAT(events_of(monitor), IsEmpty());
        UniqueFd second = open_tap("tap0", IFF_MULTI_QUEUE);
        const LinkEvent two{LinkEventKind::kQueuesChanged, interface.ifindex, "tap0", "", 2};
        EXPECT_THAT(events_of(monitor), testing::Contains(two));
        rename_link(interface.ifindex, "tap1");
        second.reset();
        const LinkEvent one{LinkEventKind::kQueuesChanged, interface.ifindex, "tap1", "", 1};
        EXPECT_THAT(events_of(monitor), testing::Contains(one));
    });
}

TEST(LinkMonitorLive, ListsTheLinksAnewWhenMessagesWereLost) {
    in_namespace([] {
        create_veth("left", "right");
        create_veth("other", "peer");
        const unsigned left = find("left").ifindex;
        const unsigned other = find("other").ifindex;
        LinkMonitor::Options options;
        options.receive_buffer = 1;  // the kernel makes it its smallest, a message or two
        LinkMonitor monitor = open_monitor(options);
        for (int i = 0; i < 101; ++i) {
            rename_link(left, "left" + std::to_string(i));
        }
        remove_link(other);
        create("late", "ifb");
        const unsigned late = find("late").ifindex;
        const std::vector<LinkEvent> events = events_of(monitor);
        EXPECT_EQ(monitor.resyncs(), 1u);
        const auto last_name =
            std::find_if(events.rbegin(), events.rend(), [&](const LinkEvent& event) {
                return event.kind == LinkEventKind::kRenamed && event.ifindex == left;
            });
        ASSERT_NE(last_name, events.rend());
        EXPECT_EQ(last_name->name, "left100");
        EXPECT_THAT(events,
                    testing::Contains(LinkEvent{LinkEventKind::kGone, other, "other", "", 0}));
        EXPECT_THAT(events, testing::Contains(LinkEvent{LinkEventKind::kNew, late, "late", "", 0}));
        EXPECT_THAT(events_of(monitor), IsEmpty());
    });
}

std::string shown(const std::vector<Fact>& facts, const std::string& name) {
    for (const Fact& fact : facts) {
        if (fact.name == name) {
            const auto* number = std::get_if<std::int64_t>(&fact.value);
            const auto* text = std::get_if<std::string>(&fact.value);
            return number != nullptr ? std::to_string(*number)
                   : text != nullptr ? *text
                                     : "absent: " + fact.absent;
        }
    }
    return "not in the list";
}

TEST(FactsLive, DescribeATap) {
    in_namespace([] {
        const UniqueFd tap = open_tap("tap0");
        const Interface interface = find("tap0");
        set_up(interface.ifindex, true);
        const std::vector<Fact> facts = collect_facts(find("tap0"), Sysroot());
        EXPECT_EQ(shown(facts, "driver.name"), "tun");
        EXPECT_EQ(shown(facts, "link.kind"), "tun");
        EXPECT_EQ(shown(facts, "link.up"), "on");
        EXPECT_EQ(shown(facts, "queues.tx.real"), "1");
        EXPECT_EQ(shown(facts, "mtu"), "1500");
        EXPECT_EQ(shown(facts, "irq.count"), "0");
        EXPECT_EQ(shown(facts, "queues.tx.q0.timeouts"), "0");
        EXPECT_THAT(shown(facts, "ring.tx.size"), HasSubstr("does not support"));
    });
}

TEST(FactsLive, ListTheQdiscsBelowMq) {
    in_namespace([] {
        const UniqueFd first = open_tap("tap0", IFF_MULTI_QUEUE);
        const UniqueFd second = open_tap("tap0", IFF_MULTI_QUEUE);
        set_up(find("tap0").ifindex, true);
        const std::vector<Fact> facts = collect_facts(find("tap0"), Sysroot());
        EXPECT_EQ(shown(facts, "qdisc.kind"), "mq");
        EXPECT_THAT(shown(facts, "qdisc.leaves"), HasSubstr(" x2"));
    });
}

// /sys stays the outer one, where a device of this name is another or not there at all.
TEST(FactsLive, TakeNothingFromASysOfAnotherNamespace) {
    in_namespace(
        [] {
            create_veth("rs-inner", "rs-peer");
            const Interface interface = find("rs-inner");
            EXPECT_EQ(interface.driver, "veth") << "ethtool needs no /sys";
            EXPECT_EQ(interface.real_tx_queues, 0u);
            const std::vector<Fact> facts = collect_facts(interface, Sysroot());
            EXPECT_THAT(shown(facts, "queues.tx.real"), HasSubstr("absent: "));
            EXPECT_THAT(shown(facts, "irq.count"), HasSubstr("absent: "));
            EXPECT_EQ(shown(facts, "driver.name"), "veth");
        },
        SysMount::kForeign);
}

}  // namespace
}  // namespace ringside
