// What tracing adds to each transmitted packet: ringside against a bpftrace script that keeps the
// same figure (a completion-latency histogram of one device), both against no tracer at all.
//
// A raw socket sends minimal frames to an ifb device as fast as it can, in a network namespace of
// its own. Every round measures the untraced sender before and after each tracer, so that a drift
// of the machine's speed cancels; medians of the rounds are printed. Needs root; exits 3 when it
// cannot run.
//
//   trace_cost RINGSIDE BPFTRACE_SCRIPT [ROUNDS] [PACKETS]
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "analyzers/base/unique_fd.h"
#include "tools/demo_nic.h"

namespace {

using ringside::boottime_now_ns;
using ringside::UniqueFd;

constexpr const char* kDevice = "cost0";

[[noreturn]] void give_up(const std::string& why) {
    fmt::print(stderr, "trace_cost: {}\n", why);
    std::exit(3);
}

// A child whose output is read by us.
struct Tracer {
    pid_t pid = -1;
    UniqueFd output;
};

Tracer start(const std::vector<std::string>& argv) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        give_up("pipe");
    }
    Tracer tracer;
    tracer.output = UniqueFd(ends[0]);
    const UniqueFd write_end(ends[1]);
    tracer.pid = ::fork();
    if (tracer.pid == 0) {
        ::dup2(write_end.get(), STDOUT_FILENO);
        ::dup2(write_end.get(), STDERR_FILENO);
        // The tracer's own work belongs to the other CPU; what it adds to a packet stays here.
        std::vector<char*> raw;
        for (const std::string& word : argv) {
            raw.push_back(const_cast<char*>(word.c_str()));
        }
        raw.push_back(nullptr);
        ::execvp(raw[0], raw.data());
        ::_exit(127);
    }
    return tracer;
}

// Reads what the tracer prints until `mark` shows up.
std::string wait_for(const Tracer& tracer, const std::string& mark) {
    std::string text;
    std::array<char, 512> buffer{};
    while (text.find(mark) == std::string::npos) {
        pollfd ready{.fd = tracer.output.get(), .events = POLLIN, .revents = 0};
        if (::poll(&ready, 1, 30'000) <= 0) {
            give_up("the tracer did not start: " + text);
        }
        const ssize_t got = ::read(tracer.output.get(), buffer.data(), buffer.size());
        if (got <= 0) {
            give_up("the tracer ended: " + text);
        }
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

std::string stop(Tracer& tracer) {
    ::kill(tracer.pid, SIGINT);
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(tracer.output.get(), buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    int status = 0;
    ::waitpid(tracer.pid, &status, 0);
    return text;
}

class Sender {
  public:
    Sender() : fd_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_ifindex = static_cast<int>(::if_nametoindex(kDevice));
        if (!fd_ ||
            ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            give_up("cannot open a packet socket: run as root");
        }
        frame_[0] = frame_[6] = 2;  // locally administered addresses
        frame_[12] = static_cast<char>(0x88);
        frame_[13] = static_cast<char>(0xB5);
    }
    // ns for each of `packets` frames.
    double burst(int packets) {
        const std::uint64_t begin = boottime_now_ns();
        for (int i = 0; i < packets; ++i) {
            if (::send(fd_.get(), frame_.data(), frame_.size(), 0) < 0 && errno != ENOBUFS) {
                give_up("cannot send");
            }
        }
        return static_cast<double>(boottime_now_ns() - begin) / packets;
    }

  private:
    UniqueFd fd_;
    std::array<char, 64> frame_{};
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Series {
    std::vector<double> base, added, start_ms;
};

void measure(Sender& sender, int packets, const std::vector<std::string>& argv,
             const std::string& mark, Series& series) {
    const double before = sender.burst(packets);
    const std::uint64_t begin = boottime_now_ns();
    Tracer tracer = start(argv);
    wait_for(tracer, mark);
    series.start_ms.push_back(static_cast<double>(boottime_now_ns() - begin) / 1e6);
    ::usleep(50'000);
    const double traced = sender.burst(packets);
    stop(tracer);
    ::usleep(50'000);
    const double after = sender.burst(packets);
    series.base.push_back((before + after) / 2);
    series.added.push_back(traced - (before + after) / 2);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr, "usage: trace_cost RINGSIDE BPFTRACE_SCRIPT [ROUNDS] [PACKETS]\n");
        return 2;
    }
    const int rounds = argc > 3 ? std::atoi(argv[3]) : 9;
    const int packets = argc > 4 ? std::atoi(argv[4]) : 100'000;
    if (const ringside::Status ok = ringside::enter_private_network(); !ok) {
        give_up(ok.error().line());
    }
    // bpftrace finds tracepoints below debugfs, which the new /sys does not have yet.
    ::mount("debugfs", "/sys/kernel/debug", "debugfs", 0, nullptr);
    ::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr);
    const std::string make = fmt::format("ip link add {0} type ifb && ip link set {0} up", kDevice);
    if (std::system(make.c_str()) != 0) {
        give_up("cannot make an ifb device");
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)) - 1, &one);
    // Children inherit this, so they are let go again before exec by taskset in their command line.
    ::sched_setaffinity(0, sizeof one, &one);

    Sender sender;
    sender.burst(packets);
    const std::vector<std::string> ours{"taskset", "-c",    "0",  argv[1],
                                        "trace",   kDevice, "-o", "/tmp/trace_cost.rsc"};
    const std::vector<std::string> theirs{"taskset", "-c", "0", "bpftrace", "-B", "none", argv[2]};
    Series ringside_series, bpftrace_series;
    for (int round = 0; round < rounds; ++round) {
        measure(sender, packets, ours, "time", ringside_series);
        measure(sender, packets, theirs, "ready", bpftrace_series);
        fmt::print(stderr, "round {} of {}: ringside +{:.0f} ns, bpftrace +{:.0f} ns\n", round + 1,
                   rounds, ringside_series.added.back(), bpftrace_series.added.back());
    }
    ::unlink("/tmp/trace_cost.rsc");
    const double added_ringside = median(ringside_series.added);
    const double added_bpftrace = median(bpftrace_series.added);
    fmt::print(
        "untraced {:.0f} ns a packet; ringside adds {:.0f}, bpftrace adds {:.0f}: ratio {:.2f} "
        "(goal 0.40)\n",
        median(ringside_series.base), added_ringside, added_bpftrace,
        added_ringside / added_bpftrace);
    fmt::print(
        "start to attached: ringside {:.0f} ms, bpftrace {:.0f} ms: ratio {:.2f} (goal 0.33)\n",
        median(ringside_series.start_ms), median(bpftrace_series.start_ms),
        median(ringside_series.start_ms) / median(bpftrace_series.start_ms));
    return 0;
}
