// The ifb driver stops its queue when its backlog reaches txqueuelen and wakes it when it has
// drained: stops that can be counted beforehand, and a sampling timer that measures their time
// another way.
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_packet.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
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

// Reads the state of the queue at 10 kHz on every CPU.
class Sampler {
  public:
    explicit Sampler(unsigned ifindex) : skeleton_(sampler::open_and_load()) {
        if (skeleton_ == nullptr) {
            ADD_FAILURE() << "cannot load the sampler";
            return;
        }
        skeleton_->bss->ifindex = ifindex;
        links_.push_back(bpf_program__attach(skeleton_->progs.find_queue));
        for (int cpu = 0; cpu < libbpf_num_possible_cpus(); ++cpu) {
            perf_event_attr attr{};
            attr.type = PERF_TYPE_SOFTWARE;
            attr.size = sizeof attr;
            attr.config = PERF_COUNT_SW_CPU_CLOCK;
            attr.sample_period = 100'000;  // ns
            const int fd = static_cast<int>(
                ::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
            EXPECT_GE(fd, 0) << "perf_event_open: " << std::strerror(errno);
            bpf_link* link = bpf_program__attach_perf_event(skeleton_->progs.sample, fd);
            EXPECT_NE(link, nullptr);
            links_.push_back(link);
        }
    }
    ~Sampler() {
        for (bpf_link* link : links_) {
            bpf_link__destroy(link);
        }
        sampler::destroy(skeleton_);
    }
    [[nodiscard]] std::uint64_t samples() const { return skeleton_->bss->samples; }
    [[nodiscard]] std::uint64_t stopped() const { return skeleton_->bss->stopped; }

  private:
    sampler* skeleton_;
    std::vector<bpf_link*> links_;
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
    constexpr unsigned kPackets = 4001;
    BackgroundRecording recording({.interface = "ifb9", .output = file()});
    ASSERT_TRUE(recording.wait_until_attached()) << recording.result().error().line();
    const Sampler sampler(::if_nametoindex("ifb9"));
    GsoSender sender("va");
    sender.send();  // lets the sampler find the queue
    ::usleep(10'000);
    const std::uint64_t begin_ns = boottime_now_ns();
    const std::uint64_t samples_before = sampler.samples();
    const std::uint64_t stopped_before = sampler.stopped();
    for (unsigned i = 0; i < kPackets; ++i) {
        sender.send();
    }
    const std::uint64_t samples = sampler.samples() - samples_before;
    const std::uint64_t stopped = sampler.stopped() - stopped_before;
    const std::uint64_t end_ns = boottime_now_ns();
    ::usleep(200'000);
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

    const double sampled_share = static_cast<double>(stopped) / static_cast<double>(samples);
    const double sampled_ns = sampled_share * static_cast<double>(end_ns - begin_ns);
    std::printf(
        "stops %llu (expected %u); stopped %.1f ms traced, %.1f ms sampled (%llu of %llu "
        "samples)\n",
        static_cast<unsigned long long>(stops.count), 2 * (kPackets + 1),
        static_cast<double>(stops.stopped_ns) / 1e6, sampled_ns / 1e6,
        static_cast<unsigned long long>(stopped), static_cast<unsigned long long>(samples));
    ASSERT_GT(stopped, 200U);
    // 15 %: three standard deviations of a share known from this many samples, and a sampling timer
    // that a busy host delays.
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
