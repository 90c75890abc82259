#include "tools/demo_nic.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <memory>

#include "analyzers/base/output_file.h"

namespace ringside {

namespace {

// An EtherType for local experiments (IEEE 802): nothing on the system answers or interprets it.
constexpr std::uint16_t kEtherType = 0x88B5;

struct [[gnu::packed]] DemoFrame {
    std::array<std::uint8_t, 6> destination{0x02, 0, 0, 0, 0, 2};
    std::array<std::uint8_t, 6> source{0x02, 0, 0, 0, 0, 1};
    std::uint16_t ether_type = 0;
    std::uint64_t sequence = 0;
    std::uint64_t sent_ns = 0;
};

ifreq request_for(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
}

Status control(int socket, unsigned long what, ifreq& request, const std::string& doing) {
    if (::ioctl(socket, what, &request) != 0) {
        return fail(Error::from_errno(errno, doing));
    }
    return {};
}

Result<UniqueFd> open_packet_socket(unsigned ifindex, bool bypass) {
    UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot open a packet socket"));
    }
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(ifindex);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return fail(Error::from_errno(errno, "cannot bind a packet socket"));
    }
    const int on = bypass ? 1 : 0;
    if (::setsockopt(fd.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0) {
        return fail(Error::from_errno(errno, "cannot set PACKET_QDISC_BYPASS"));
    }
    return fd;
}

// A quiet device: the kernel must send nothing of its own on it (IPv6 neighbour discovery).
void disable_ipv6(const std::string& name) {
    const std::string path = "/proc/sys/net/ipv6/conf/" + name + "/disable_ipv6";
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (fd) {
        [[maybe_unused]] const Status ignored = write_all(fd.get(), "1", path);
    }
}

void sleep_until(std::uint64_t boottime_ns) {
    const timespec when{.tv_sec = static_cast<time_t>(boottime_ns / 1'000'000'000U),
                        .tv_nsec = static_cast<long>(boottime_ns % 1'000'000'000U)};
    while (::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &when, nullptr) == EINTR) {
    }
}

}  // namespace

std::uint64_t boottime_now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec);
}

Status enter_private_network() {
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) {
        return fail(
            Error::from_errno(errno, "cannot make a network namespace").hint("run as root"));
    }
    // Nothing mounted here may show up outside. In a chroot "/" is no mount, but /sys is.
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 &&
        ::mount("none", "/sys", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return fail(Error::from_errno(errno, "cannot make the mounts private")
                        .hint("in a chroot, mount /proc and /sys first"));
    }
    // A mount of sysfs shows the network devices of the namespace in which it was made.
    if (::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
        return fail(Error::from_errno(errno, "cannot mount /sys for the network namespace"));
    }
    return {};
}

Result<DemoNic> DemoNic::create(const std::string& name, unsigned queue_len) {
    DemoNic nic;
    nic.tap_ = UniqueFd(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!nic.tap_) {
        return fail(Error::from_errno(errno, "cannot open /dev/net/tun")
                        .hint("the kernel needs TUN/TAP devices (CONFIG_TUN)"));
    }
    ifreq request = request_for(name);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (Status ok =
            control(nic.tap_.get(), TUNSETIFF, request, "cannot create the TAP device " + name);
        !ok) {
        return fail(ok.error());
    }
    nic.name_ = name;
    nic.ifindex_ = ::if_nametoindex(name.c_str());
    disable_ipv6(name);

    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    request = request_for(name);
    request.ifr_qlen = static_cast<int>(queue_len);
    if (Status ok = control(socket.get(), SIOCSIFTXQLEN, request, "cannot set the queue length");
        !ok) {
        return fail(ok.error());
    }
    request = request_for(name);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (Status ok = control(socket.get(), SIOCSIFFLAGS, request, "cannot bring up " + name); !ok) {
        return fail(ok.error());
    }
    Result<UniqueFd> packet = open_packet_socket(nic.ifindex_, false);
    Result<UniqueFd> bypass = open_packet_socket(nic.ifindex_, true);
    if (!packet || !bypass) {
        return fail(packet ? bypass.error() : packet.error());
    }
    nic.packet_ = std::move(*packet);
    nic.packet_bypass_ = std::move(*bypass);
    return nic;
}

DemoNic::~DemoNic() {
    if (shared_ && reader_.joinable()) {
        shared_->stop = true;
        reader_.join();
    }
}

Status DemoNic::send_through(const std::string& interface) {
    Result<UniqueFd> packet = open_packet_socket(::if_nametoindex(interface.c_str()), false);
    if (!packet) {
        return fail(std::move(packet).error().context(interface));
    }
    packet_ = std::move(*packet);
    return {};
}

Status DemoNic::send(std::uint32_t bytes, bool bypass) {
    std::vector<char> buffer(std::max<std::size_t>(bytes, 64));
    DemoFrame frame;
    frame.ether_type = htons(kEtherType);
    frame.sequence = next_sequence_;
    {
        const std::lock_guard lock(shared_->mutex);
        frame.sent_ns = boottime_now_ns();
        shared_->due.push_back(frame.sent_ns);
    }
    std::memcpy(buffer.data(), &frame, sizeof frame);
    const int fd = bypass ? packet_bypass_.get() : packet_.get();
    if (::send(fd, buffer.data(), buffer.size(), 0) < 0) {
        const int error = errno;
        const std::lock_guard lock(shared_->mutex);
        shared_->due.pop_back();
        return fail(Error::from_errno(error, "cannot send on " + name_));
    }
    ++next_sequence_;
    return {};
}

void DemoNic::read_loop(int fd, std::uint64_t delay_ns, Shared& shared) {
    std::array<char, 65536> buffer;
    while (!shared.stop) {
        pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
        if (shared.stalled || ::poll(&waiting, 1, 10) <= 0) {
            if (shared.stalled) {
                ::usleep(200);
            }
            continue;
        }
        std::uint64_t due = 0;
        {
            const std::lock_guard lock(shared.mutex);
            due = shared.due.empty() ? 0 : shared.due.front() + delay_ns;
        }
        sleep_until(due);
        if (shared.stalled) {
            continue;
        }
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        const std::uint64_t now = boottime_now_ns();
        DemoFrame frame;
        if (got < static_cast<ssize_t>(sizeof frame)) {
            continue;
        }
        std::memcpy(&frame, buffer.data(), sizeof frame);
        if (frame.ether_type != htons(kEtherType)) {
            continue;
        }
        const std::lock_guard lock(shared.mutex);
        if (!shared.due.empty()) {
            shared.due.pop_front();
        }
        shared.frames.push_back({.sequence = frame.sequence,
                                 .sent_ns = frame.sent_ns,
                                 .read_ns = now,
                                 .bytes = static_cast<std::uint32_t>(got)});
    }
}

void DemoNic::start_reader(std::uint64_t delay_ns) {
    shared_->stop = false;
    // Signals are for the thread that waits for them.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    reader_ = std::thread(&DemoNic::read_loop, tap_.get(), delay_ns, std::ref(*shared_));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void DemoNic::stop_reader(std::uint64_t limit_ns) {
    const std::uint64_t limit = boottime_now_ns() + limit_ns;
    for (;;) {
        {
            const std::lock_guard lock(shared_->mutex);
            if (shared_->due.empty()) {
                break;
            }
        }
        if (boottime_now_ns() > limit) {
            break;
        }
        ::usleep(1000);
    }
    shared_->stop = true;
    reader_.join();
}

std::vector<FrameTimes> DemoNic::frames() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->frames;
}

void DemoNic::forget_frames() {
    const std::lock_guard lock(shared_->mutex);
    shared_->frames.clear();
}

}  // namespace ringside
