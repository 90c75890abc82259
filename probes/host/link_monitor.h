// Tells what happens to links while something runs: names, carrier, devices coming and going.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/sysroot.h"
#include "probes/host/interface.h"
#include "probes/host/netlink.h"

namespace ringside {

enum class LinkEventKind {
    kNew,   // a link that was not there; a device re-created under its old name is kGone, then kNew
    kGone,  // deleted, or moved to another network namespace
    kRenamed,  // `name` is the new one
    kCarrierUp,
    kCarrierDown,
    kQueuesChanged,  // `queues` TX queues are in use now; only for the watched link
};

struct LinkEvent {
    LinkEventKind kind = LinkEventKind::kNew;
    unsigned ifindex = 0;
    std::string name;      // after the event
    std::string old_name;  // kRenamed
    unsigned queues = 0;   // kQueuesChanged

    bool operator==(const LinkEvent&) const = default;
};

// Reports on every link of the namespace of the thread that opened it; callers filter by ifindex,
// and by name when they wait for a device to come back. Not thread safe.
class LinkMonitor {
  public:
    struct Options {
        // Whose queues to count; 0: none. The count in use has no netlink message and is read from
        // sysfs at each read_events(), so that is called once in a while even when nothing is
        // readable.
        unsigned watch_ifindex = 0;
        Sysroot root = Sysroot();
        // Bytes of the socket's receive buffer; 0: what the system gives.
        int receive_buffer = 0;
    };

    // Errors: kNoRights, kIo.
    static Result<LinkMonitor> open(Options options);

    // Counts the queues of another link from now on.
    void watch(unsigned ifindex) {
        options_.watch_ifindex = ifindex;
        queues_ = 0;
    }

    // Readable when there is something to read; never blocks.
    [[nodiscard]] int fd() const { return socket_.fd(); }

    // What happened since the last call, oldest first; empty when nothing did. When the kernel had
    // to drop messages (ENOBUFS) the links are listed anew and compared: what came and went in
    // between is lost, the state is right again. Errors: kIo.
    Result<std::vector<LinkEvent>> read_events();

    // How often messages were lost and the links listed anew.
    [[nodiscard]] std::uint64_t resyncs() const { return resyncs_; }

  private:
    LinkMonitor(NetlinkSocket socket, LinkQuery query, Options options)
        : socket_(std::move(socket)), query_(std::move(query)), options_(std::move(options)) {}

    struct Link {
        std::string name;
        bool carrier = false;
        std::uint64_t address_hash = 0;
    };

    // Empties the socket. The value is false when messages were lost.
    Result<bool> drain(std::vector<LinkEvent>& events);
    void take_message(const NetlinkMessage& message, std::vector<LinkEvent>& events);
    void take_new(const Interface& link, std::vector<LinkEvent>& events);
    void take_gone(unsigned ifindex, std::vector<LinkEvent>& events);
    Status resync(std::vector<LinkEvent>& events);
    void check_queues(std::vector<LinkEvent>& events);

    NetlinkSocket socket_;
    LinkQuery query_;
    Options options_;
    std::map<unsigned, Link> links_;
    unsigned queues_ = 0;
    std::uint64_t resyncs_ = 0;
};

}  // namespace ringside
