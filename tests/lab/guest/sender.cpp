// lab_sender: sends an exact number of UDP datagrams, each as one packet of the port.
//
//   lab_sender ADDRESS COUNT LENGTH [--port PORT] [--gap-us US] [--sndbuf BYTES]
//
// Blocks while the socket buffer is full, so that no datagram is lost on the way to the driver;
// with
// --sndbuf the buffer, and so the number of packets in flight, is small. Prints one JSON object.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace {

struct Plan {
    sockaddr_in to{};
    unsigned count = 0;
    unsigned length = 0;
    std::uint16_t port = 9;  // discard
    unsigned gap_us = 0;
    int sndbuf = 0;
};

template <typename Number>
bool parse(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

bool parse_plan(const std::vector<std::string_view>& words, Plan& plan) {
    constexpr unsigned kMaxLength = 1472;  // one frame of 1500 bytes
    if (words.size() < 3 || ::inet_pton(AF_INET, words[0].data(), &plan.to.sin_addr) != 1 ||
        !parse(words[1], plan.count) || !parse(words[2], plan.length) || plan.length > kMaxLength) {
        return false;
    }
    plan.to.sin_family = AF_INET;
    for (std::size_t i = 3; i < words.size(); i += 2) {
        if (i + 1 == words.size()) {
            return false;
        }
        const bool known = words[i] == "--port"     ? parse(words[i + 1], plan.port)
                           : words[i] == "--gap-us" ? parse(words[i + 1], plan.gap_us)
                           : words[i] == "--sndbuf" ? parse(words[i + 1], plan.sndbuf)
                                                    : false;
        if (!known) {
            return false;
        }
    }
    plan.to.sin_port = htons(plan.port);
    return true;
}

int failed(const char* what) {
    std::fprintf(stderr, "lab_sender: %s: %s\n", what, std::strerror(errno));
    return 1;
}

int send_all(const Plan& plan) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return failed("socket");
    }
    if (plan.sndbuf > 0 &&
        ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &plan.sndbuf, sizeof plan.sndbuf) != 0) {
        return failed("SO_SNDBUF");
    }
    // The kernel reports a full device queue only to a socket that asks for it.
    const int on = 1;
    if (::setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof on) != 0 ||
        ::connect(fd, reinterpret_cast<const sockaddr*>(&plan.to), sizeof plan.to) != 0) {
        return failed("connect");
    }
    const std::vector<char> payload(plan.length);
    unsigned sent = 0;
    unsigned refused = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (sent < plan.count) {
        if (::send(fd, payload.data(), payload.size(), 0) >= 0) {
            ++sent;
        } else if (errno == ENOBUFS || errno == ENETUNREACH || errno == ENETDOWN ||
                   errno == EHOSTUNREACH) {
            // Dropped by a full qdisc, or the driver is resetting the port: this datagram goes
            // again.
            ++refused;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            continue;
        } else {
            return failed("send");
        }
        if (plan.gap_us != 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(plan.gap_us));
        }
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    ::close(fd);
    std::printf("{\"sent\": %u, \"refused\": %u, \"seconds\": %.6f}\n", sent, refused,
                took.count());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Plan plan;
    if (!parse_plan({argv + 1, argv + argc}, plan)) {
        std::fputs(
            "usage: lab_sender ADDRESS COUNT LENGTH [--port PORT] [--gap-us US] [--sndbuf BYTES]\n",
            stderr);
        return 2;
    }
    return send_all(plan);
}
