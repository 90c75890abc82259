// What lies under the chips: guest memory, interrupts, configuration space, log, knobs, FIFO.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <filesystem>
#include <fstream>

#include "tests/lab/models/control_fifo.h"
#include "tests/models/guest.h"

namespace ringside::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kPage = 4096;

UniqueFd memory_file(std::uint64_t size) {
    UniqueFd fd(::memfd_create("guest", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    return fd;
}

TEST(GuestMemory, GivesOutNothingBeyondWhatIsMapped) {
    GuestMemory memory;
    std::vector<std::byte> bytes(kPage);
    ASSERT_TRUE(memory.add(0x1000, bytes));
    EXPECT_EQ(memory.readable(0x1000, kPage), bytes.data());
    EXPECT_EQ(memory.readable(0x1fff, 1), bytes.data() + 0xfff);
    EXPECT_EQ(memory.readable(0xfff, 1), nullptr);
    EXPECT_EQ(memory.readable(0x1fff, 2), nullptr);
    EXPECT_EQ(memory.readable(0x1001, kPage), nullptr);
    EXPECT_EQ(memory.readable(0x1001, ~std::uint64_t{0}), nullptr);
    EXPECT_EQ(memory.writable(~std::uint64_t{0}, 2), nullptr);
    EXPECT_EQ(memory.load32(0x1ffd), std::nullopt);
    EXPECT_EQ(memory.load32(0x1002), std::nullopt);  // not aligned
    EXPECT_FALSE(memory.store32(0x2000, 1));
}

TEST(GuestMemory, RefusesARangeThatWrapsIsEmptyOrOverlaps) {
    GuestMemory memory;
    std::vector<std::byte> bytes(2 * kPage);
    ASSERT_TRUE(memory.add(0x1000, std::span(bytes).first(kPage)));
    EXPECT_FALSE(memory.add(0x1800, std::span(bytes).last(kPage)));
    EXPECT_FALSE(memory.add(~std::uint64_t{0} - 10, std::span(bytes).last(kPage)));
    EXPECT_FALSE(memory.add(0x9000, {}));
    EXPECT_TRUE(memory.add(0x2000, std::span(bytes).last(kPage)));
}

TEST(GuestMemory, MapsAFileAndRefusesToMapBeyondItsEnd) {
    const UniqueFd fd = memory_file(2 * kPage);
    GuestMemory memory;
    EXPECT_FALSE(memory.map(0, 2 * kPage, fd.get(), kPage, true));
    EXPECT_FALSE(memory.map(0, kPage, fd.get(), ~std::uint64_t{0} - kPage + 1, true));
    EXPECT_EQ(memory.regions(), 0U);
    ASSERT_TRUE(memory.map(0, kPage, fd.get(), kPage, true));
    ASSERT_TRUE(memory.store32(4, 0x12345678));
    std::uint32_t seen = 0;
    ASSERT_EQ(::pread(fd.get(), &seen, sizeof seen, kPage + 4), 4);
    EXPECT_EQ(seen, 0x12345678U);
    memory.unmap(0, kPage);
    EXPECT_EQ(memory.load32(4), std::nullopt);
}

TEST(GuestMemory, DoesNotWriteWhatIsMappedForReadingOnly) {
    const UniqueFd fd = memory_file(kPage);
    GuestMemory memory;
    ASSERT_TRUE(memory.map(0, kPage, fd.get(), 0, false));
    EXPECT_EQ(memory.load32(0), 0U);
    EXPECT_EQ(memory.writable(0, 4), nullptr);
    EXPECT_FALSE(memory.store32(0, 1));
}

TEST(GuestMemory, UnmapsOnlyWhatLiesWithinTheRange) {
    GuestMemory memory;
    std::vector<std::byte> bytes(2 * kPage);
    ASSERT_TRUE(memory.add(0x1000, std::span(bytes).first(kPage)));
    ASSERT_TRUE(memory.add(0x3000, std::span(bytes).last(kPage)));
    memory.unmap(0x1000, 0x2800);
    EXPECT_EQ(memory.load32(0x1000), std::nullopt);
    EXPECT_EQ(memory.load32(0x3000), 0U);
}

TEST(Interrupts, MsiHasOneMessageForAllAndMsixOneForEach) {
    Interrupts interrupts;
    const int msi = ::eventfd(0, EFD_NONBLOCK);
    const int msix = ::eventfd(0, EFD_NONBLOCK);
    const auto give = [&](std::uint32_t kind, std::uint32_t vector, int fd) {
        std::vector<UniqueFd> fds;
        fds.emplace_back(fd);
        return interrupts.set(kind, vector, 1, std::move(fds));
    };
    const auto count = [](int fd) {
        std::uint64_t value = 0;
        return ::read(fd, &value, sizeof value) == sizeof value ? value : 0;
    };
    EXPECT_FALSE(interrupts.send(3));
    ASSERT_TRUE(give(VFIO_PCI_MSI_IRQ_INDEX, 0, msi));
    EXPECT_TRUE(interrupts.send(3));
    EXPECT_EQ(count(msi), 1U);
    ASSERT_TRUE(give(VFIO_PCI_MSIX_IRQ_INDEX, 3, msix));
    EXPECT_TRUE(interrupts.send(3));
    EXPECT_FALSE(interrupts.send(4));
    EXPECT_FALSE(interrupts.send(~0U));
    EXPECT_EQ(count(msix), 1U);
    EXPECT_EQ(count(msi), 0U);
}

TEST(Interrupts, RefusesVectorsThatDoNotExist) {
    Interrupts interrupts;
    EXPECT_FALSE(interrupts.set(VFIO_PCI_MSIX_IRQ_INDEX, kMaxVectors, 1, {}));
    EXPECT_FALSE(interrupts.set(VFIO_PCI_MSIX_IRQ_INDEX, 1, ~0U, {}));
    EXPECT_FALSE(interrupts.set(kIrqKinds, 0, 1, {}));
}

TEST(PciConfig, ChainsItsCapabilitiesAndKeepsItsIdentity) {
    PciIdentity identity{.vendor = 0x10ec, .device = 0x8125, .msix_vectors = 32};
    PciConfig config(identity);
    const auto byte = [&config](std::size_t offset) {
        std::byte value{};
        config.read(offset, std::span(&value, 1));
        return std::to_integer<unsigned>(value);
    };
    std::vector<unsigned> ids;
    for (unsigned at = byte(PCI_CAPABILITY_LIST); at != 0; at = byte(at + PCI_CAP_LIST_NEXT)) {
        ids.push_back(byte(at));
    }
    EXPECT_THAT(ids, ElementsAre(PCI_CAP_ID_PM, PCI_CAP_ID_MSI, PCI_CAP_ID_EXP, PCI_CAP_ID_MSIX));
    const Bytes noise(kConfigSize, std::byte{0xff});
    config.write(0, noise);
    EXPECT_EQ(byte(PCI_VENDOR_ID), 0xecU);
    EXPECT_EQ(byte(PCI_CLASS_DEVICE + 1), 0x02U);
    EXPECT_EQ(byte(PCI_COMMAND), 0xffU);
}

TEST(TruthLog, QuotesWhatAGuestMayWrite) {
    TruthLog log;
    const std::string text = "a \"quote\" \\ \n \x01 \xff";
    log.write(7, "mark", {{"text", text}, {"n", 5U}});
    const nlohmann::json line = nlohmann::json::parse(log.buffered());
    EXPECT_EQ(line.at("text"), "a \"quote\" \\ \n \x01 \u00ff");
    EXPECT_EQ(line.at("t"), 7);
    EXPECT_EQ(line.at("n"), 5);
}

TEST(TruthLog, WritesItsFileWhenFlushedAndWhenItEnds) {
    const std::filesystem::path path = testing::TempDir() + "/truth.jsonl";
    {
        Result<TruthLog> log = TruthLog::create(path);
        ASSERT_TRUE(log);
        log->write(1, "mark", {});
        EXPECT_EQ(std::filesystem::file_size(path), 0U);
        log->flush();
        EXPECT_EQ(std::filesystem::file_size(path), 19U);
        log->write(2, "mark", {});
    }
    EXPECT_EQ(std::filesystem::file_size(path), 38U);
    EXPECT_FALSE(TruthLog::create(testing::TempDir() + "/no/such/folder/truth.jsonl"));
}

TEST(Knobs, TakeAValueAndAQueue) {
    Faults faults;
    faults.apply(*parse_command("delay 250 3"));
    EXPECT_EQ(faults.queue(3).delay_ns, 250 * kUs);
    EXPECT_EQ(faults.queue(2).delay_ns, 0U);
    faults.apply(*parse_command("  stall\t1\r"));
    EXPECT_TRUE(faults.queue(0).stalled && faults.queue(7).stalled);
    faults.apply(*parse_command("sched 3"));
    EXPECT_EQ(faults.scheduler(), 3U);
    faults.apply(*parse_command("sched -1"));
    EXPECT_EQ(faults.scheduler(), std::nullopt);
    EXPECT_EQ(parse_command("mark  two words ")->text, "two words ");
    faults.apply(*parse_command("dropirq 2"));
    EXPECT_TRUE(faults.take_event_drop(0) && faults.take_event_drop(0));
    EXPECT_FALSE(faults.take_event_drop(0));
    EXPECT_TRUE(faults.take_event_drop(1));
}

TEST(Knobs, AreRefusedWithTheReason) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "empty"},
        {"   ", "empty"},
        {"dealy 5", "no knob 'dealy' (knobs: delay, rate,"},
        {"delay", "takes one value and a queue"},
        {"delay x", "'delay x': not from 0 to"},
        {"delay 5x", "'delay 5x'"},
        {"delay -1", "'delay -1'"},
        {"delay 99999999999999999999", "not from"},
        {"delay 5 8", "no queue '8'"},
        {"delay 5 -1", "no queue '-1'"},
        {"delay 5 1 1", "takes one value and a queue"},
        {"rate 5 1", "takes one value"},
        {"stall 2", "not from 0 to 1"},
        {"stat 1", "takes no value"},
    };
    for (const auto& [line, reason] : cases) {
        const Result<Command> command = parse_command(line);
        ASSERT_FALSE(command) << line;
        EXPECT_THAT(command.error().line(), HasSubstr(reason)) << line;
    }
}

TEST(Knobs, AWireTakesTheTimeOfPaddingAndOverheadToo) {
    Faults faults;
    faults.set_rate_kbps(1'000'000);
    EXPECT_EQ(faults.wire_ns(1476, 1), 12'000U);
    EXPECT_EQ(faults.wire_ns(1, 1), (60 + 24) * 8U);
    EXPECT_EQ(faults.wire_ns(3 * 1476, 3), 36'000U);
    faults.set_rate_kbps(0);
    EXPECT_EQ(faults.wire_ns(1476, 1), 0U);
}

TEST(ControlFifo, PutsLinesTogetherAndDropsOneThatIsTooLong) {
    LineSplitter splitter;
    EXPECT_THAT(splitter.add("sta"), IsEmpty());
    EXPECT_THAT(splitter.add("t\n\ndelay 5\nra"), ElementsAre("stat", "delay 5"));
    EXPECT_THAT(splitter.add("te 1\n"), ElementsAre("rate 1"));
    EXPECT_THAT(splitter.add(std::string(2 * LineSplitter::kLongest, 'x')), IsEmpty());
    EXPECT_THAT(splitter.add("x\nstat\n"), ElementsAre("stat"));
}

TEST(ControlFifo, ReadsWhatOthersWriteAndRefusesAFile) {
    const std::string path = testing::TempDir() + "/control." + std::to_string(::getpid());
    Result<ControlFifo> fifo = ControlFifo::open(path);
    ASSERT_TRUE(fifo);
    EXPECT_THAT(fifo->read_lines(), IsEmpty());
    std::ofstream(path) << "stat\n";
    EXPECT_THAT(fifo->read_lines(), ElementsAre("stat"));
    std::ofstream(path) << "delay 5\n";  // the first writer has left
    EXPECT_THAT(fifo->read_lines(), ElementsAre("delay 5"));
    std::filesystem::remove(path);
    std::ofstream(path + ".file") << "text";
    const Result<ControlFifo> refused = ControlFifo::open(path + ".file");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    std::filesystem::remove(path + ".file");
}

}  // namespace
}  // namespace ringside::lab
