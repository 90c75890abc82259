// Network devices of our own in a network namespace of our own, which goes away with the thread
// that runs the test. Needs root. No traffic leaves the namespace.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "analyzers/base/unique_fd.h"
#include "probes/host/netlink.h"

namespace ringside {

enum class SysMount { kOwn, kForeign };

inline void write_file(const char* path, const char* text) {
    const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (fd) {
        (void)!::write(fd.get(), text, std::strlen(text));
    }
}

// Moves the calling thread. Threads may have namespaces of their own; the rest of the process
// stays.
inline void enter_namespace(SysMount sys) {
    ASSERT_EQ(::geteuid(), 0u) << "the live tests create network devices and need root";
    ASSERT_EQ(::unshare(CLONE_NEWNET | CLONE_NEWNS), 0) << std::strerror(errno);
    ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0)
        << std::strerror(errno);
    if (sys == SysMount::kOwn) {
        ASSERT_EQ(::mount("sysfs", "/sys", "sysfs", 0, nullptr), 0) << std::strerror(errno);
    }
    // Without IPv6 nothing is sent that the test did not send.
    write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

inline void in_namespace(const std::function<void()>& body, SysMount sys = SysMount::kOwn) {
    std::thread thread([&] {
        enter_namespace(sys);
        if (!testing::Test::HasFatalFailure()) {
            body();
        }
    });
    thread.join();
}

// A change by rtnetlink; the test is over when the kernel refuses.
inline void change(const NetlinkRequest& request) {
    Result<NetlinkSocket> socket = NetlinkSocket::open();
    ASSERT_TRUE(socket) << socket.error().line();
    const Status status = socket->request(request);
    ASSERT_TRUE(status) << status.error().line();
}

inline NetlinkRequest link_request(std::uint16_t type, unsigned flags, unsigned ifindex = 0) {
    ifinfomsg header = {};
    header.ifi_index = static_cast<int>(ifindex);
    NetlinkRequest request(type, static_cast<std::uint16_t>(flags));
    request.header(header);
    return request;
}

inline std::string attributes(const std::function<void(NetlinkRequest&)>& fill) {
    NetlinkRequest request(0, 0);
    fill(request);
    return request.bytes(0).substr(sizeof(nlmsghdr));
}

inline void create(const std::string& name, const std::string& kind, const std::string& data = {},
                   unsigned lower = 0) {
    NetlinkRequest request = link_request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    request.text(IFLA_IFNAME, name);
    if (lower != 0) {
        request.number(IFLA_LINK, lower);
    }
    request.attribute(IFLA_LINKINFO, attributes([&](NetlinkRequest& info) {
                          info.text(IFLA_INFO_KIND, kind);
                          if (!data.empty()) {
                              info.attribute(IFLA_INFO_DATA, data);
                          }
                      }));
    change(request);
}

inline void create_veth(const std::string& name, const std::string& peer) {
    create(name, "veth", attributes([&](NetlinkRequest& data) {
               const ifinfomsg header = {};
               std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
               bytes += attributes([&](NetlinkRequest& r) { r.text(IFLA_IFNAME, peer); });
               data.attribute(VETH_INFO_PEER, bytes);
           }));
}

inline void remove_link(unsigned ifindex) {
    change(link_request(RTM_DELLINK, 0, ifindex));
}

inline void set_up(unsigned ifindex, bool up) {
    ifinfomsg header = {};
    header.ifi_index = static_cast<int>(ifindex);
    header.ifi_flags = up ? IFF_UP : 0;
    header.ifi_change = IFF_UP;
    change(NetlinkRequest(RTM_NEWLINK, 0).header(header));
}

inline void rename_link(unsigned ifindex, const std::string& name) {
    change(link_request(RTM_NEWLINK, 0, ifindex).text(IFLA_IFNAME, name));
}

inline void set_master(unsigned ifindex, unsigned master) {
    change(link_request(RTM_NEWLINK, 0, ifindex).number(IFLA_MASTER, master));
}

inline UniqueFd open_tap(const std::string& name, short flags = 0) {
    UniqueFd fd(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    EXPECT_TRUE(fd) << "/dev/net/tun: " << std::strerror(errno);
    ifreq request = {};
    name.copy(request.ifr_name, sizeof request.ifr_name - 1);
    request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | flags);
    EXPECT_EQ(::ioctl(fd.get(), TUNSETIFF, &request), 0) << std::strerror(errno);
    return fd;
}

}  // namespace ringside
