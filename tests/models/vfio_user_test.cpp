// The transport: a conversation as QEMU has it, and everything that is not one.
#include "tests/lab/models/vfio_user.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <random>
#include <thread>

#include "tests/lab/models/event_loop.h"
#include "tests/lab/models/rtl8125.h"
#include "tests/lab/models/rtl8125_regs.h"
#include "tests/models/guest.h"

namespace ringside::lab {
namespace {

using testing::HasSubstr;

template <class T>
void add(Bytes& out, T value) {
    append(out, std::as_bytes(std::span(&value, 1)));
}
template <class... T>
Bytes body_of(T... values) {
    Bytes out;
    (add(out, values), ...);
    return out;
}
template <class T>
T at(BytesView bytes, std::size_t offset) {
    T value{};
    if (offset + sizeof value <= bytes.size()) {
        std::memcpy(&value, bytes.data() + offset, sizeof value);
    }
    return value;
}

constexpr std::size_t kHeader = sizeof(VfioHeader);
using u32 = std::uint32_t;
using u64 = std::uint64_t;

VfioMessage message(VfioCommand command, Bytes body, u32 flags = 0) {
    VfioMessage out;
    out.header = {.id = 7,
                  .command = static_cast<std::uint16_t>(command),
                  .size = static_cast<u32>(kHeader + body.size()),
                  .flags = flags,
                  .error = 0};
    out.body = std::move(body);
    return out;
}

class VfioTest : public testing::Test {
  protected:
    Bytes send(VfioCommand command, Bytes body, u32 flags = 0) {
        return server_.handle(message(command, std::move(body), flags));
    }
    // The errno of the reply, 0 if it is none.
    static u32 error_of(const Bytes& reply) {
        EXPECT_GE(reply.size(), kHeader);
        EXPECT_EQ(at<u32>(reply, 4), reply.size());
        const auto header = at<VfioHeader>(reply, 0);
        EXPECT_EQ(header.id, 7);
        EXPECT_EQ((header.flags & kVfioFlagError) != 0, header.error != 0);
        return header.error;
    }
    u64 read_register(u64 offset, u32 size) {
        const Bytes reply = send(VfioCommand::kRegionRead, body_of(offset, u32{2}, size));
        EXPECT_EQ(error_of(reply), 0U);
        u64 value = 0;
        std::memcpy(&value, reply.data() + kHeader + 16, size);
        return value;
    }

    GuestMemory memory_;
    Interrupts interrupts_;
    Faults faults_;
    TruthLog log_;
    Rtl8125 chip_{{.memory = memory_, .interrupts = interrupts_, .faults = faults_, .log = log_}};
    VfioServer server_{chip_, memory_, interrupts_, [] { return u64{0}; }};
};

TEST(VfioHeaderTest, RefusesAHeaderThatIsShortOrTellsAnImpossibleSize) {
    const auto parse = [](VfioHeader header, std::size_t bytes = kHeader) {
        return parse_vfio_header(std::as_bytes(std::span(&header, 1)).first(bytes));
    };
    EXPECT_TRUE(parse({.id = 1, .command = 1, .size = kHeader}));
    EXPECT_TRUE(parse({.id = 1, .command = 1, .size = kVfioMaxMessage}));
    EXPECT_FALSE(parse({.id = 1, .command = 1, .size = kHeader}, kHeader - 1));
    EXPECT_FALSE(parse({.id = 1, .command = 1, .size = kHeader - 1}));
    EXPECT_FALSE(parse({.id = 1, .command = 1, .size = 0}));
    EXPECT_FALSE(parse({.id = 1, .command = 1, .size = kVfioMaxMessage + 1}));
    EXPECT_FALSE(parse({.id = 1, .command = 1, .size = ~0U}));
    EXPECT_FALSE(parse({.id = 1, .command = 1, .size = kHeader, .flags = kVfioFlagReply}));
}

TEST_F(VfioTest, TellsItsVersionItsRegionsAndItsInterrupts) {
    const Bytes version = send(VfioCommand::kVersion, body_of(u32{0x0001'0000}));
    EXPECT_EQ(error_of(version), 0U);
    EXPECT_THAT(std::string(reinterpret_cast<const char*>(version.data()) + kHeader + 4),
                HasSubstr(R"("max_msg_fds":16)"));
    EXPECT_EQ(error_of(send(VfioCommand::kVersion, body_of(u32{1}))), u32{EINVAL});

    const Bytes info = send(VfioCommand::kDeviceGetInfo, body_of(u32{16}, u32{0}, u32{0}, u32{0}));
    EXPECT_EQ(at<u32>(info, kHeader + 8), u32{VFIO_PCI_NUM_REGIONS});
    const auto region = [this](u32 index) {
        const Bytes reply = send(VfioCommand::kDeviceGetRegionInfo,
                                 body_of(u32{32}, u32{0}, index, u32{0}, u64{0}, u64{0}));
        EXPECT_EQ(error_of(reply), 0U);
        return at<u64>(reply, kHeader + 16);
    };
    EXPECT_EQ(region(0), 256U);
    EXPECT_EQ(region(1), 0U);
    EXPECT_EQ(region(2), 65536U);
    EXPECT_EQ(region(kMsixBar), kMsixBarSize);
    EXPECT_EQ(region(VFIO_PCI_CONFIG_REGION_INDEX), kConfigSize);
    const Bytes irqs = send(VfioCommand::kDeviceGetIrqInfo,
                            body_of(u32{16}, u32{0}, u32{VFIO_PCI_MSIX_IRQ_INDEX}, u32{0}));
    EXPECT_EQ(at<u32>(irqs, kHeader + 12), kMaxVectors);
}

TEST_F(VfioTest, ReadsTheIdentityFromConfigurationSpace) {
    const Bytes reply =
        send(VfioCommand::kRegionRead, body_of(u64{0}, u32{VFIO_PCI_CONFIG_REGION_INDEX}, u32{4}));
    EXPECT_EQ(at<u32>(reply, kHeader + 16), 0x8125'10ecU);
}

TEST_F(VfioTest, WritesAndReadsRegisters) {
    EXPECT_EQ(error_of(send(VfioCommand::kRegionWrite,
                            body_of(u64{rtl::kIntrMask}, u32{2}, u32{4}, u32{0x25}))),
              0U);
    EXPECT_EQ(read_register(rtl::kIntrMask, 4), 0x25U);
    EXPECT_EQ(read_register(rtl::kIntrMask, 2), 0x25U);
}

TEST_F(VfioTest, AMessageThatWantsNoReplyGetsNoneAndIsDone) {
    EXPECT_TRUE(send(VfioCommand::kRegionWrite,
                     body_of(u64{rtl::kIntrMask}, u32{2}, u32{4}, u32{0x21}), kVfioFlagNoReply)
                    .empty());
    EXPECT_EQ(read_register(rtl::kIntrMask, 4), 0x21U);
}

TEST_F(VfioTest, TracesRegisterAccessesInBothDirections) {
    std::vector<std::string> seen;
    server_.set_trace([&](bool write, unsigned bar, u64 offset, unsigned size, u64 value) {
        seen.push_back((write ? "w" : "r") + std::to_string(bar) + " " + std::to_string(offset) +
                       " " + std::to_string(size) + " " + std::to_string(value));
    });
    send(VfioCommand::kRegionWrite, body_of(u64{rtl::kIntrMask}, u32{2}, u32{4}, u32{5}));
    read_register(rtl::kIntrMask, 4);
    EXPECT_THAT(seen, testing::ElementsAre("w2 56 4 5", "r2 56 4 5"));
}

struct Malformed {
    const char* name;
    VfioCommand command;
    Bytes body;
    int error = EINVAL;
};
class VfioMalformed : public VfioTest, public testing::WithParamInterface<Malformed> {};

TEST_P(VfioMalformed, IsAnsweredWithAnErrno) {
    EXPECT_EQ(error_of(send(GetParam().command, GetParam().body)),
              static_cast<u32>(GetParam().error));
}

constexpr u64 kLast = ~u64{0};
INSTANTIATE_TEST_SUITE_P(
    All, VfioMalformed,
    testing::Values(
        Malformed{"UnknownCommand", static_cast<VfioCommand>(99), {}, ENOTSUP},
        Malformed{"CommandZero", static_cast<VfioCommand>(0), {}, ENOTSUP},
        Malformed{"ShortVersion", VfioCommand::kVersion, body_of(std::uint16_t{0})},
        Malformed{"ShortMap", VfioCommand::kDmaMap, body_of(u32{32}, u32{3}, u64{0})},
        Malformed{"ShortUnmap", VfioCommand::kDmaUnmap, body_of(u32{24})},
        Malformed{"ShortRegionInfo", VfioCommand::kDeviceGetRegionInfo, body_of(u32{32})},
        Malformed{"NoSuchRegion", VfioCommand::kDeviceGetRegionInfo,
                  body_of(u32{32}, u32{0}, u32{99}, u32{0}, u64{0}, u64{0})},
        Malformed{"NoSuchIrq", VfioCommand::kDeviceGetIrqInfo,
                  body_of(u32{16}, u32{0}, u32{5}, u32{0})},
        Malformed{"ShortSetIrqs", VfioCommand::kDeviceSetIrqs, body_of(u32{20}, u32{36})},
        Malformed{"TooManyIrqs", VfioCommand::kDeviceSetIrqs,
                  body_of(u32{20}, u32{36}, u32{2}, u32{1}, ~u32{0})},
        Malformed{"ClearNoSuchIrq", VfioCommand::kDeviceSetIrqs,
                  body_of(u32{20}, u32{33}, u32{77}, u32{0}, u32{0})},
        Malformed{"ShortRead", VfioCommand::kRegionRead, body_of(u64{0}, u32{2})},
        Malformed{"ReadBeyond", VfioCommand::kRegionRead, body_of(u64{65535}, u32{2}, u32{2})},
        Malformed{"ReadWraps", VfioCommand::kRegionRead, body_of(kLast, u32{2}, u32{4})},
        Malformed{"ReadHuge", VfioCommand::kRegionRead, body_of(u64{0}, u32{2}, ~u32{0})},
        Malformed{"ReadOddSize", VfioCommand::kRegionRead, body_of(u64{0}, u32{2}, u32{3})},
        Malformed{"ReadNoRegion", VfioCommand::kRegionRead, body_of(u64{0}, u32{1}, u32{4})},
        Malformed{"ReadNoSuchRegion", VfioCommand::kRegionRead, body_of(u64{0}, ~u32{0}, u32{4})},
        Malformed{"ReadConfigBeyond", VfioCommand::kRegionRead,
                  body_of(u64{kConfigSize - 2}, u32{7}, u32{4})},
        Malformed{"WriteWithoutData", VfioCommand::kRegionWrite, body_of(u64{0}, u32{2}, u32{4})},
        Malformed{"WriteWithTooLittle", VfioCommand::kRegionWrite,
                  body_of(u64{0}, u32{2}, u32{8}, u32{0})},
        Malformed{"WriteWithTooMuch", VfioCommand::kRegionWrite,
                  body_of(u64{0}, u32{2}, u32{4}, u64{0})},
        Malformed{"WriteBeyond", VfioCommand::kRegionWrite,
                  body_of(u64{65534}, u32{2}, u32{4}, u32{0})},
        Malformed{"WriteConfigBeyond", VfioCommand::kRegionWrite,
                  body_of(u64{kConfigSize}, u32{7}, u32{4}, u32{0})}),
    [](const auto& param) { return std::string(param.param.name); });

TEST_F(VfioTest, MapsMemoryOnlyAsFarAsItsFileGoes) {
    const auto map = [this](u64 size) {
        VfioMessage request =
            message(VfioCommand::kDmaMap, body_of(u32{32}, u32{3}, u64{0}, u64{0x10000}, size));
        request.fds.emplace_back(::memfd_create("guest", MFD_CLOEXEC));
        EXPECT_EQ(::ftruncate(request.fds[0].get(), 8192), 0);
        return error_of(server_.handle(std::move(request)));
    };
    EXPECT_EQ(map(8193), u32{EINVAL});
    EXPECT_EQ(map(kLast), u32{EINVAL});
    EXPECT_EQ(memory_.regions(), 0U);
    EXPECT_EQ(map(8192), 0U);
    EXPECT_NE(memory_.readable(0x10000, 8192), nullptr);
    EXPECT_EQ(map(4096), u32{EINVAL});  // overlaps
    EXPECT_EQ(
        error_of(send(VfioCommand::kDmaUnmap, body_of(u32{24}, u32{0}, u64{0x10000}, u64{8192}))),
        0U);
    EXPECT_EQ(memory_.regions(), 0U);
    // Without a descriptor there is nothing to map, and that is no error of the client.
    EXPECT_EQ(error_of(send(VfioCommand::kDmaMap,
                            body_of(u32{32}, u32{3}, u64{0}, u64{0x10000}, u64{4096}))),
              0U);
    EXPECT_EQ(memory_.regions(), 0U);
}

// Whatever the bytes of a body are, the answer is a whole message. A seed, so that it repeats.
TEST_F(VfioTest, SurvivesBodiesOfRandomBytes) {
    std::mt19937 random(20261201);
    for (int i = 0; i < 20'000; ++i) {
        Bytes body(random() % 48);
        for (std::byte& byte : body) {
            // Mostly small numbers: they get past the first checks.
            byte = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 8);
        }
        const Bytes reply = send(static_cast<VfioCommand>(random() % 16), std::move(body));
        ASSERT_GE(reply.size(), kHeader);
        ASSERT_EQ(at<u32>(reply, 4), reply.size());
        chip_.advance(0);
    }
}

// ---------------------------------------------------------------- the socket

class VfioSocketTest : public VfioTest {
  protected:
    VfioSocketTest() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        client_ = UniqueFd(ends[0]);
        connection_.emplace(UniqueFd(ends[1]), server_);
    }
    void write_bytes(BytesView bytes) {
        ASSERT_EQ(::write(client_.get(), bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
    }
    static Bytes bytes_on_wire(const VfioMessage& message) {
        Bytes out = body_of(message.header);
        append(out, message.body);
        return out;
    }

    UniqueFd client_;
    std::optional<VfioConnection> connection_;
};

TEST_F(VfioSocketTest, ServesAMessageThatComesInPieces) {
    const Bytes bytes =
        bytes_on_wire(message(VfioCommand::kRegionRead, body_of(u64{0}, u32{7}, u32{4})));
    std::thread slow([&] {
        write_bytes(BytesView(bytes).first(5));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        write_bytes(BytesView(bytes).subspan(5));
    });
    const Result<bool> served = connection_->serve_one();
    slow.join();
    ASSERT_TRUE(served && *served);
    Bytes reply(kHeader + 20);
    ASSERT_EQ(::read(client_.get(), reply.data(), reply.size()), kHeader + 20);
    EXPECT_EQ(at<u32>(reply, kHeader + 16), 0x8125'10ecU);
}

TEST_F(VfioSocketTest, EndsWhenTheClientLeavesBetweenMessages) {
    client_.reset();
    const Result<bool> served = connection_->serve_one();
    ASSERT_TRUE(served);
    EXPECT_FALSE(*served);
}

TEST_F(VfioSocketTest, IsAnErrorIfTheClientLeavesWithinAHeader) {
    write_bytes(bytes_of({1, 0, 1}));
    client_.reset();
    const Result<bool> served = connection_->serve_one();
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code(), ErrorCode::kBadInput);
}

TEST_F(VfioSocketTest, IsAnErrorIfTheClientLeavesWithinABody) {
    const Bytes bytes =
        bytes_on_wire(message(VfioCommand::kRegionRead, body_of(u64{0}, u32{7}, u32{4})));
    write_bytes(BytesView(bytes).first(bytes.size() - 1));
    client_.reset();
    const Result<bool> served = connection_->serve_one();
    ASSERT_FALSE(served);
    EXPECT_THAT(served.error().message(), HasSubstr("after 15 of 16 bytes"));
}

TEST_F(VfioSocketTest, LosesPatienceWithAMessageThatStopsHalfWay) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const UniqueFd client(ends[0]);
    VfioConnection hasty(UniqueFd(ends[1]), server_, std::chrono::milliseconds(20));
    ASSERT_EQ(::write(client.get(), "abc", 3), 3);
    const Result<bool> served = hasty.serve_one();
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code(), ErrorCode::kIo);
}

TEST_F(VfioSocketTest, RefusesAHugeMessageBeforeReadingIt) {
    write_bytes(body_of(VfioHeader{.id = 1, .command = 9, .size = 0x7fff'ffff}));
    const Result<bool> served = connection_->serve_one();
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().code(), ErrorCode::kBadInput);
}

// The whole process but its command line: a client over a real socket, with real memory, real
// eventfds and the real clock. A frame with a delay of 50 ms is not done before.
TEST(ModelProcess, CompletesAFrameLateByTheDelayThatWasOrdered) {
    GuestMemory memory;
    Interrupts interrupts;
    Faults faults;
    TruthLog log;
    Rtl8125 chip({.memory = memory, .interrupts = interrupts, .faults = faults, .log = log});
    VfioServer server(chip, memory, interrupts, boot_time_ns);
    Result<EventLoop> loop = EventLoop::create(chip, log);
    ASSERT_TRUE(loop);
    const std::string path = testing::TempDir() + "/model." + std::to_string(::getpid());
    Result<UniqueFd> listener = listen_unix(path);
    ASSERT_TRUE(listener);
    faults.apply(*parse_command("delay 50000"));
    Status end;
    std::thread model([&] { end = loop->run(*listener, server, nullptr); });

    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const UniqueFd ram(::memfd_create("guest", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(ram.get(), 65536), 0);
    const UniqueFd irq(::eventfd(0, EFD_CLOEXEC));

    const auto call = [&](VfioCommand command, Bytes body, int fd = -1) {
        const VfioMessage request = message(command, std::move(body));
        Bytes bytes = body_of(request.header);
        append(bytes, request.body);
        iovec part{bytes.data(), bytes.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
        msghdr out{};
        out.msg_iov = &part;
        out.msg_iovlen = 1;
        if (fd >= 0) {
            out.msg_control = control.data();
            out.msg_controllen = control.size();
            cmsghdr* rights = CMSG_FIRSTHDR(&out);
            rights->cmsg_level = SOL_SOCKET;
            rights->cmsg_type = SCM_RIGHTS;
            rights->cmsg_len = CMSG_LEN(sizeof fd);
            std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
        }
        EXPECT_EQ(::sendmsg(client.get(), &out, 0), static_cast<ssize_t>(bytes.size()));
        Bytes reply(4096);
        reply.resize(static_cast<std::size_t>(
            std::max<ssize_t>(0, ::read(client.get(), reply.data(), reply.size()))));
        EXPECT_EQ(at<VfioHeader>(reply, 0).error, 0U);
        return reply;
    };
    const auto write = [&](u64 offset, u32 value) {
        call(VfioCommand::kRegionWrite, body_of(offset, u32{2}, u32{4}, value));
    };
    call(VfioCommand::kVersion, body_of(u32{0x0001'0000}));
    call(VfioCommand::kDmaMap, body_of(u32{32}, u32{3}, u64{0}, u64{0x10000}, u64{65536}),
         ram.get());
    call(VfioCommand::kDeviceSetIrqs, body_of(u32{20}, u32{36}, u32{2}, u32{0}, u32{1}), irq.get());
    write(rtl::kTxDescStartAddrLow, 0x10000);
    const Bytes descriptor =
        body_of(rtl::kDescOwn | rtl::kFirstFrag | rtl::kLastFrag | 100, u32{0}, u64{0x11000});
    ASSERT_EQ(::pwrite(ram.get(), descriptor.data(), 16, 0), 16);
    write(rtl::kIntrMask, rtl::kTxOk);
    call(VfioCommand::kRegionWrite,
         body_of(u64{rtl::kChipCmd}, u32{2}, u32{1}, std::uint8_t{rtl::kCmdTxEnb}));
    const u64 begin = boot_time_ns();
    write(rtl::kTxPoll, 1);
    u64 fired = 0;
    ASSERT_EQ(::read(irq.get(), &fired, sizeof fired), 8);
    EXPECT_GE(boot_time_ns() - begin, 50 * kMs);
    u32 opts1 = 0;
    ASSERT_EQ(::pread(ram.get(), &opts1, sizeof opts1, 0), 4);
    EXPECT_EQ(opts1 & rtl::kDescOwn, 0U);
    client.reset();
    model.join();
    EXPECT_TRUE(end);
    EXPECT_THAT(log.buffered(), HasSubstr(R"("scope":"q0","doorbells":1,"fetched":1,"frames":1)"));
    ::unlink(path.c_str());
}

}  // namespace
}  // namespace ringside::lab
