#include <gmock/gmock.h>
#include <linux/if_link.h>
#include <net/if.h>

#include <random>

#include "probes/host/ethtool.h"
#include "probes/host/interface.h"
#include "probes/host/netlink.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Sysroot sysroot(const std::string& name) {
    return Sysroot(std::string(RINGSIDE_TEST_DATA) + "/sysroot/" + name);
}

TEST(InterfaceName, IsCheckedBeforeItIsUsed) {
    for (const char* good :
         {"eth0", "a", "abcdefghijklmno", "br-lan", "eth0.100", "wan@x", "..."}) {
        EXPECT_TRUE(check_interface_name(good)) << good;
    }
    for (const char* bad :
         {"", ".", "..", "a/b", "../../etc", "a b", "a\tb", "a\n", "abcdefghijklmnop", "eth0:1"}) {
        const Status status = check_interface_name(bad);
        ASSERT_FALSE(status) << bad;
        EXPECT_EQ(status.error().code(), ErrorCode::kUsage);
        EXPECT_EQ(find_interface(bad).error().code(), ErrorCode::kUsage);
        EXPECT_FALSE(Ethtool::open(bad));
    }
    EXPECT_FALSE(check_interface_name(std::string_view("a\0b", 3)));
    EXPECT_FALSE(check_interface_name(std::string(1 << 20, 'x')));
}

TEST(FindInterface, ListsWhatThereIsForAnUnknownName) {
    const auto found = find_interface("nosuch0");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), ErrorCode::kNotFound);
    EXPECT_THAT(found.error().hint(), HasSubstr("lo"));
}

TEST(FindInterface, FindsTheLoopbackWithoutRoot) {
    const auto found = find_interface("lo");
    ASSERT_TRUE(found) << found.error().line();
    EXPECT_EQ(found->ifindex, 1u);
    EXPECT_TRUE(found->loopback);
    EXPECT_NE(found->netns_inum, 0u);
    EXPECT_TRUE(link_counters(found->ifindex));
    EXPECT_EQ(link_counters(0x7ffffffe).error().code(), ErrorCode::kGone);
}

Interface make(std::string name, std::string kind) {
    Interface interface;
    interface.name = std::move(name);
    interface.kind = std::move(kind);
    interface.ifindex = 5;
    return interface;
}

TEST(Traceable, AcceptsWhatHasATransmitPathOfItsOwn) {
    for (const char* kind : {"", "veth", "tun", "ifb", "netkit", "kind-of-tomorrow"}) {
        EXPECT_TRUE(check_traceable(make("x", kind))) << kind;
    }
}

TEST(Traceable, NamesThePortsOfABridge) {
    Interface bridge = make("br-lan", "bridge");
    bridge.ports = {"eth1", "eth2"};
    const Status status = check_traceable(bridge);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(status.error().message(), HasSubstr("br-lan is a bridge"));
    EXPECT_EQ(status.error().hint(), "trace one of its ports: eth1, eth2");
    bridge.ports.clear();
    EXPECT_THAT(check_traceable(bridge).error().hint(), HasSubstr("it has no ports"));
}

TEST(Traceable, NamesTheDeviceBeneath) {
    for (const char* kind : {"vlan", "macvlan", "dsa", "", "kind-of-tomorrow", "vxlan"}) {
        Interface upper = make("upper0", kind);
        upper.lower_ifindex = 2;
        upper.lower = "eth0";
        const Status status = check_traceable(upper);
        ASSERT_FALSE(status) << kind;
        EXPECT_EQ(status.error().hint(), "trace the device it sits on: eth0");
    }
    EXPECT_THAT(check_traceable(make("wg0", "wireguard")).error().hint(),
                HasSubstr("ip route get"));
}

TEST(Traceable, RefusesTheLoopbackAndDummies) {
    Interface loopback = make("lo", "");
    loopback.loopback = true;
    EXPECT_FALSE(check_traceable(loopback));
    EXPECT_FALSE(check_traceable(make("dummy0", "dummy")));
}

TEST(Traceable, RemarksOnDriversWithALimit) {
    EXPECT_THAT(remark(make("v", "veth")), HasSubstr("peer"));
    EXPECT_THAT(remark(make("i", "ifb")), HasSubstr("stack"));
    Interface virtio = make("eth0", "");
    virtio.driver = "virtio_net";
    EXPECT_THAT(remark(virtio), HasSubstr("batches"));
    EXPECT_EQ(remark(make("eth0", "")), "");
    EXPECT_THAT(remark(make("x", "kind-of-tomorrow")), HasSubstr("does not know"));
}

TEST(RealTxQueues, CountsFoldersWithNumbers) {
    EXPECT_EQ(real_tx_queues(sysroot("rk3588"), "eth0").value(), 2u);
    EXPECT_EQ(real_tx_queues(sysroot("virtio_vm"), "ens1").value(), 20u);
    EXPECT_EQ(real_tx_queues(sysroot("hostile"), "eth0").value(), 1u);
    EXPECT_EQ(real_tx_queues(sysroot("rk3588"), "eth9").error().code(), ErrorCode::kNotFound);
}

TEST(CheckSysfs, TellsAnotherDeviceOfTheSameName) {
    Interface interface = make("eth0", "");
    interface.ifindex = 2;
    EXPECT_TRUE(check_sysfs(interface, sysroot("rk3588")));
    interface.address_hash = 1;  // of no address
    EXPECT_EQ(check_sysfs(interface, sysroot("rk3588")).error().code(), ErrorCode::kGone);
    interface.address_hash = 0;
    interface.ifindex = 3;
    EXPECT_EQ(check_sysfs(interface, sysroot("rk3588")).error().code(), ErrorCode::kGone);
    interface.name = "eth9";
    EXPECT_EQ(check_sysfs(interface, sysroot("rk3588")).error().code(), ErrorCode::kNotFound);
}

// What a kernel would send, made with the same builder that makes requests.
std::string link_payload(const ifinfomsg& header, NetlinkRequest& request) {
    return request.header(header).bytes(1).substr(sizeof(nlmsghdr));
}

TEST(ParseLink, IgnoresBridgePortMessages) {
    ifinfomsg header = {};
    header.ifi_index = 7;
    header.ifi_family = AF_BRIDGE;
    NetlinkRequest bridge(RTM_DELLINK, 0);
    std::string payload = link_payload(header, bridge);
    payload += NetlinkRequest(0, 0).text(IFLA_IFNAME, "eth0").bytes(0).substr(sizeof(nlmsghdr));
    EXPECT_FALSE(parse_link(payload));
    header.ifi_family = AF_UNSPEC;
    NetlinkRequest plain(RTM_DELLINK, 0);
    payload = link_payload(header, plain);
    EXPECT_FALSE(parse_link(payload)) << "no name";
    payload += NetlinkRequest(0, 0).text(IFLA_IFNAME, "eth0").bytes(0).substr(sizeof(nlmsghdr));
    ASSERT_TRUE(parse_link(payload));
    EXPECT_EQ(parse_link(payload)->name, "eth0");
}

TEST(Netlink, EndsAtALengthThatDoesNotFit) {
    const auto count = [](std::string_view bytes) {
        int attributes = 0;
        for_each_attribute(bytes, [&](std::uint16_t, std::string_view) { ++attributes; });
        return attributes;
    };
    EXPECT_EQ(count(""), 0);
    EXPECT_EQ(count(std::string_view("\x00\x00\x01\x00", 4)), 0);
    EXPECT_EQ(count(std::string_view("\x05\x00\x01\x00", 4)), 0);
    EXPECT_EQ(count(std::string_view("\x04\x00\x01\x00\x05\x00\x01\x00x", 9)), 2);
    EXPECT_EQ(count(std::string_view("\xff\xff\x01\x00", 4)), 0);
    std::mt19937 random(31);
    for (int round = 0; round < 20'011; ++round) {
        std::string bytes(random() % 120, '\0');
        for (char& c : bytes) {
            c = static_cast<char>(random() % 12);
        }
        (void)parse_link(bytes);
        for_each_message(bytes,
                         [&](const NetlinkMessage& message) { (void)parse_link(message.payload); });
    }
}

TEST(Offloads, AreGroupsOfFeatures) {
    const std::vector<Feature> features = {{"tx-scatter-gather", true, false},
                                           {"tx-scatter-gather-fraglist", false, true},
                                           {"tx-tcp-segmentation", false, false},
                                           {"tx-tcp6-segmentation", true, true},
                                           {"tx-gre-segmentation", true, false},
                                           {"rx-gro", false, true},
                                           {"rx-gro-hw", true, false},
                                           {"tx-tcp-accecn-segmentation", true, false}};
    EXPECT_THAT(offload_groups(features),
                ElementsAre(Feature{"scatter-gather", true, false},
                            Feature{"tcp-segmentation-offload", true, false},
                            Feature{"generic-receive-offload", false, true}));
    EXPECT_THAT(offload_groups({}), IsEmpty());
}

TEST(Offloads, DoNotTakeAccecnForTso) {
    const std::vector<Feature> features = {{"tx-tcp-segmentation", false, false},
                                           {"tx-tcp-accecn-segmentation", true, false}};
    EXPECT_THAT(offload_groups(features),
                ElementsAre(Feature{"tcp-segmentation-offload", false, false}));
}

}  // namespace
}  // namespace ringside
