// The server side of vfio-user, as QEMU speaks it (docs/interop/vfio-user.rst, protocol 0.0):
// `-device vfio-user-pci`. One client, one PCI function. Guest memory comes as descriptors to map,
// interrupts as eventfds to write to; the server asks the client for nothing.
//
// A message is foreign bytes. One whose size cannot be believed ends the connection, because what
// follows it has no beginning; anything else that is wrong is answered with an errno.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/unique_fd.h"
#include "tests/lab/models/guest_memory.h"
#include "tests/lab/models/interrupts.h"
#include "tests/lab/models/pci_device.h"

namespace ringside::lab {

enum class VfioCommand : std::uint16_t {
    kVersion = 1,
    kDmaMap = 2,
    kDmaUnmap = 3,
    kDeviceGetInfo = 4,
    kDeviceGetRegionInfo = 5,
    kDeviceGetIrqInfo = 7,
    kDeviceSetIrqs = 8,
    kRegionRead = 9,
    kRegionWrite = 10,
    kDeviceReset = 13,
};

struct VfioHeader {
    std::uint16_t id = 0;
    std::uint16_t command = 0;
    std::uint32_t size = 0;  // header included
    std::uint32_t flags = 0;
    std::uint32_t error = 0;
};
static_assert(sizeof(VfioHeader) == 16);

constexpr std::uint32_t kVfioFlagReply = 1;
constexpr std::uint32_t kVfioFlagNoReply = 1U << 4;
constexpr std::uint32_t kVfioFlagError = 1U << 5;
// QEMU refuses a server that takes more descriptors in a message than it can send (16).
constexpr std::size_t kVfioMaxFds = 16;
constexpr std::uint32_t kVfioMaxTransfer = 1U << 20;
constexpr std::uint32_t kVfioMaxMessage = kVfioMaxTransfer + 4096;

// Errors: kBadInput, if the header is short, not a command, or tells an impossible size.
Result<VfioHeader> parse_vfio_header(std::span<const std::byte> bytes);

struct VfioMessage {
    VfioHeader header;
    std::vector<std::byte> body;  // header.size - sizeof(VfioHeader) bytes
    std::vector<UniqueFd> fds;
};

// What the messages mean; knows no socket.
class VfioServer {
  public:
    using Clock = std::function<std::uint64_t()>;
    // Called for every register access, with its direction: the "trace" knob.
    using Trace = std::function<void(bool write, unsigned bar, std::uint64_t offset, unsigned size,
                                     std::uint64_t value)>;

    VfioServer(PciDevice& device, GuestMemory& memory, Interrupts& interrupts, Clock clock)
        : device_(device), memory_(memory), interrupts_(interrupts), clock_(std::move(clock)) {}

    void set_trace(Trace trace) { trace_ = std::move(trace); }

    // The bytes of the reply; empty if the client wants none.
    std::vector<std::byte> handle(VfioMessage message);

  private:
    using Body = std::vector<std::byte>;
    // The body of a reply, or the errno of an error reply.
    struct Answer {
        Body body;
        int error = 0;
    };
    using Handler = Answer (VfioServer::*)(VfioMessage&);
    static Handler handler_of(VfioCommand command);

    Answer version(VfioMessage& message);
    Answer dma_map(VfioMessage& message);
    Answer dma_unmap(VfioMessage& message);
    Answer device_info(VfioMessage& message);
    Answer region_info(VfioMessage& message);
    Answer irq_info(VfioMessage& message);
    Answer set_irqs(VfioMessage& message);
    Answer region_read(VfioMessage& message);
    Answer region_write(VfioMessage& message);
    Answer device_reset(VfioMessage& message);

    [[nodiscard]] std::uint64_t region_size(std::uint32_t region) const;
    std::uint64_t read_register(unsigned bar, std::uint64_t offset, unsigned size);
    void write_register(unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value);

    PciDevice& device_;
    GuestMemory& memory_;
    Interrupts& interrupts_;
    Clock clock_;
    Trace trace_;
};

// One accepted connection.
class VfioConnection {
  public:
    // How long a message may stop half way: it must not stop the model for ever.
    static constexpr std::chrono::milliseconds kPatience{5000};

    VfioConnection(UniqueFd socket, VfioServer& server,
                   std::chrono::milliseconds patience = kPatience);

    // Reads one message and answers it. False: the client has gone, between two messages.
    // Errors: kBadInput (a size that cannot be), kIo (cut short, or the patience is over).
    Result<bool> serve_one();
    [[nodiscard]] int fd() const { return socket_.get(); }

  private:
    // Fills all of `bytes`; the number read is less only at the end of the stream.
    Result<std::size_t> read_all(std::span<std::byte> bytes, std::vector<UniqueFd>& fds);

    UniqueFd socket_;
    VfioServer& server_;
};

// Listens on a Unix socket; replaces a socket file left by an earlier run, and nothing else.
Result<UniqueFd> listen_unix(const std::string& path);

}  // namespace ringside::lab
