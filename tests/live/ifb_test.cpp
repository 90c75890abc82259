// The ifb driver stops its queue when its backlog reaches txqueuelen and wakes it when it has
// drained: stops that can be counted beforehand, and a second CPU that measures their time by
// looking on.
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>

#include "sampler.skel.h"
#include "tests/live/live.h"

namespace ringside::live {
namespace {

constexpr unsigned kQueueLen = 16;
constexpr unsigned kSegments = 44;  // frames of one GSO packet: stops after 16 and after 32
constexpr unsigned kPayload = 1000;
constexpr unsigned kHeaders = 14 + 20 + 20;

// struct virtio_net_hdr of <linux/virtio_net.h>, which is not C++.
struct VnetHeader {
    std::uint8_t flags = 1;     // VIRTIO_NET_HDR_F_NEEDS_CSUM
    std::uint8_t gso_type = 1;  // VIRTIO_NET_HDR_GSO_TCPV4
    std::uint16_t hdr_len = kHeaders;
    std::uint16_t gso_size = kPayload;
    std::uint16_t csum_start = 34;
    std::uint16_t csum_offset = 16;
};
static_assert(sizeof(VnetHeader) == 10);

// Gives the calling thread a CPU of its own: other programs of a busy host would stop the sender
// and the sampler at different times, and a share of samples would be no share of time.
void take_cpu(std::size_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    EXPECT_EQ(::sched_setaffinity(0, sizeof set, &set), 0) << std::strerror(errno);
    const sched_param first{.sched_priority = 1};
    EXPECT_EQ(::sched_setscheduler(0, SCHED_FIFO, &first), 0) << std::strerror(errno);
}

// Reads the state of the queue from a CPU that does not send, so that looking does not change what
// is looked at: a timer interrupt on the sending CPU would cost more than the stop that it samples.
class Sampler {
  public:
    Sampler(unsigned ifindex, std::size_t cpu) : skeleton_(sampler::open_and_load()) {
        if (skeleton_ == nullptr) {
            ADD_FAILURE() << "cannot load the sampler";
            return;
        }
        skeleton_->bss->ifindex = ifindex;
        find_queue_ = bpf_program__attach(skeleton_->progs.find_queue);
        EXPECT_NE(find_queue_, nullptr);
        thread_ = std::thread([this, cpu] {
            take_cpu(cpu);
            const int program = bpf_program__fd(skeleton_->progs.sample);
            while (!ended_) {
                LIBBPF_OPTS(bpf_test_run_opts, options);
                if (bpf_prog_test_run_opts(program, &options) != 0) {
                    ADD_FAILURE() << "BPF_PROG_TEST_RUN: " << std::strerror(errno);
                    return;
                }
            }
        });
    }
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;
    ~Sampler() {
        ended_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
        bpf_link__destroy(find_queue_);
        sampler::destroy(skeleton_);
    }
    [[nodiscard]] std::uint64_t samples() const { return skeleton_->bss->samples; }
    [[nodiscard]] std::uint64_t stopped() const { return skeleton_->bss->stopped; }

  private:
    sampler* skeleton_;
    bpf_link* find_queue_ = nullptr;
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

// TCP segments in one GSO packet, as a socket would hand them to the stack.
class GsoSender {
  public:
    explicit GsoSender(const char* interface)
        : fd_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
        const int on = 1;
        EXPECT_EQ(::setsockopt(fd_.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on), 0);
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_protocol = htons(0x0800);
        address.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                  0);

        const VnetHeader header;
        packet_.resize(sizeof header + kHeaders + kSegments * kPayload);
        std::memcpy(packet_.data(), &header, sizeof header);
        unsigned char* frame = packet_.data() + sizeof header;
        frame[0] = frame[6] = 2;
        frame[12] = 8;  // IPv4
        unsigned char* ip = frame + 14;
        const auto length = static_cast<std::uint16_t>(kHeaders - 14 + kSegments * kPayload);
        ip[0] = 0x45;
        ip[2] = static_cast<unsigned char>(length >> 8);
        ip[3] = static_cast<unsigned char>(length & 0xff);
        ip[8] = 64;
        ip[9] = 6;  // TCP
        ip[12] = ip[16] = 192;
        ip[14] = ip[18] = 2;  // 192.0.2.x
        ip[15] = 1;
        ip[19] = 2;
        ip[20 + 12] = 0x50;  // TCP header of five words
    }
    void send() {
        ASSERT_EQ(::send(fd_.get(), packet_.data(), packet_.size(), 0),
                  static_cast<ssize_t>(packet_.size()));
    }

  private:
    UniqueFd fd_;
    std::vector<unsigned char> packet_;
};

// Waits until a device has sent `packets`, by the device's own counter.
void wait_until_sent(const std::string& device, std::uint64_t packets) {
    std::uint64_t sent = 0;
    for (int tries = 0; sent < packets && tries < 100'000; ++tries) {
        std::ifstream counters("/proc/thread-self/net/dev");
        for (std::string line; std::getline(counters, line);) {
            if (const std::size_t colon = line.find(':');
                colon != std::string::npos && line.substr(0, colon).ends_with(device)) {
                std::istringstream values(line.substr(colon + 1));
                for (int column = 0; column < 10; ++column) {  // the tenth is tx packets
                    values >> sent;
                }
            }
        }
    }
    ASSERT_EQ(sent, packets) << device;
}

class Ifb : public LiveTest {
  protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        // Packets that arrive at vb are sent out through ifb9, whose driver segments nothing
        // itself.
        must_run("ip link add va type veth peer name vb");
        must_run("ip link add ifb9 type ifb");
        must_run("ip link set ifb9 txqueuelen 16");
        must_run("ethtool -K ifb9 tso off gso off tx-gso-list off");
        for (const char* device : {"va", "vb", "ifb9"}) {
            must_run(std::string("ip link set ") + device + " up");
        }
        must_run("tc qdisc add dev ifb9 root pfifo limit 10000");
        must_run("tc qdisc add dev vb ingress");
        must_run(
            "tc filter add dev vb parent ffff: protocol ip u32 match u32 0 0 action mirred egress "
            "redirect dev ifb9");
    }
};

TEST_F(Ifb, CountsStopsAndMeasuresTheirTime) {
    constexpr unsigned kPackets = 10007;
    if (std::thread::hardware_concurrency() < 2) {
        ASSERT_EQ(std::getenv("RINGSIDE_REQUIRE_LIVE"), nullptr) << "needs a second CPU";
        GTEST_SKIP() << "needs a second CPU to look on from";
    }
    BackgroundRecording recording({.interface = "ifb9", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    const Sampler sampler(::if_nametoindex("ifb9"), 1);
    std::uint64_t stopped = 0;
    std::uint64_t samples = 0;
    std::uint64_t elapsed_ns = 0;
    std::thread([&] {
        take_cpu(0);  // with the softirqs that its packets raise
        GsoSender sender("va");
        sender.send();  // lets the sampler find the queue
        wait_until_sent("ifb9", kSegments);
        ::usleep(10'000);
        const std::uint64_t begin_ns = boottime_now_ns();
        samples -= sampler.samples();
        stopped -= sampler.stopped();
        for (unsigned i = 1; i <= kPackets; ++i) {
            sender.send();
            // Into an empty backlog, or the rest of one packet would move the stops of the next.
            wait_until_sent("ifb9", std::uint64_t{i + 1} * kSegments);
        }
        samples += sampler.samples();
        stopped += sampler.stopped();
        elapsed_ns = boottime_now_ns() - begin_ns;
    }).join();
    recording.stop();
    ASSERT_TRUE(recording.result()) << recording.result().error().line();

    const Analysis analysis = analysis_of(file());
    ASSERT_EQ(analysis.queues.size(), 1U);
    const StopSummary& stops = analysis.queues[0].driver_stop;
    EXPECT_EQ(analysis.port.packets, (kPackets + 1) * kSegments);
    EXPECT_EQ(analysis.port.wire_bytes,
              std::uint64_t{kPackets + 1} * kSegments * (kHeaders + kPayload));
    // Counted beforehand: each packet of 44 frames fills a backlog of 16 twice.
    EXPECT_EQ(stops.count, 2 * (kPackets + 1));
    EXPECT_FALSE(stops.open);

    const double sampled_ns = static_cast<double>(stopped) / static_cast<double>(samples) *
                              static_cast<double>(elapsed_ns);
    std::printf(
        "stops %llu (expected %u); stopped %.1f ms traced, %.1f ms sampled (%llu of %llu "
        "samples)\n",
        static_cast<unsigned long long>(stops.count), 2 * (kPackets + 1),
        static_cast<double>(stops.stopped_ns) / 1e6, sampled_ns / 1e6,
        static_cast<unsigned long long>(stopped), static_cast<unsigned long long>(samples));
    ASSERT_GT(stopped, 1000U);
    // 15 %: four standard deviations of what 1000 samples know (3 % each), and 0.1 us of each stop
    // of about 2.5 us, because the tracer notes its begin and its end each a little late.
    EXPECT_NEAR(static_cast<double>(stops.stopped_ns), sampled_ns, 0.15 * sampled_ns);
}

TEST_F(Ifb, ShowsNoStopWhenTheBacklogIsShort) {
    must_run("ip link set ifb9 txqueuelen 1000");
    BackgroundRecording recording({.interface = "ifb9", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    GsoSender sender("va");
    for (unsigned i = 0; i < 211; ++i) {
        sender.send();
    }
    ::usleep(150'000);
    recording.stop();
    const Analysis analysis = analysis_of(file());
    ASSERT_EQ(analysis.queues.size(), 1U);
    EXPECT_EQ(analysis.port.packets, 211U * kSegments);
    EXPECT_EQ(analysis.queues[0].driver_stop.count, 0U);
    EXPECT_EQ(analysis.queues[0].driver_stop.stopped_ns, 0U);
}

TEST_F(Ifb, CountsTheFramesOfAGsoPacket) {
    // With segmentation left to the "hardware" one packet is many frames on the wire.
    must_run("ethtool -K ifb9 tso on gso on");
    must_run("ip link set ifb9 txqueuelen 1000");
    BackgroundRecording recording({.interface = "ifb9", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    GsoSender sender("va");
    for (unsigned i = 0; i < 211; ++i) {
        sender.send();
    }
    ::usleep(150'000);
    recording.stop();
    const Analysis analysis = analysis_of(file());
    EXPECT_EQ(analysis.port.packets, 211U);
    EXPECT_EQ(analysis.port.segments, 211U * kSegments);
    EXPECT_EQ(analysis.port.bytes, 211U * (kHeaders + kSegments * kPayload));
    EXPECT_EQ(analysis.port.wire_bytes, 211ULL * kSegments * (kHeaders + kPayload));
}

}  // namespace
}  // namespace ringside::live
