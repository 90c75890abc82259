#include "probes/host/link_monitor.h"

#include <sys/socket.h>

#include <cerrno>
#include <set>

namespace ringside {

Result<LinkMonitor> LinkMonitor::open(Options options) {
    Result<NetlinkSocket> socket = NetlinkSocket::open(RTMGRP_LINK, true);
    if (!socket) {
        return fail(std::move(socket).error());
    }
    if (options.receive_buffer > 0) {
        ::setsockopt(socket->fd(), SOL_SOCKET, SO_RCVBUF, &options.receive_buffer,
                     sizeof options.receive_buffer);
    }
    Result<LinkQuery> query = LinkQuery::open();
    if (!query) {
        return fail(std::move(query).error());
    }
    LinkMonitor monitor(std::move(*socket), std::move(*query), std::move(options));
    // Listening began above, so nothing is missed between this list and the first event.
    std::vector<LinkEvent> state_at_start;
    if (Status status = monitor.resync(state_at_start); !status) {
        return fail(std::move(status).error());
    }
    monitor.check_queues(state_at_start);
    return monitor;
}

void LinkMonitor::take_new(const Interface& link, std::vector<LinkEvent>& events) {
    const Link now{link.name, link.carrier, link.address_hash};
    const auto [at, inserted] = links_.try_emplace(link.ifindex, now);
    Link& known = at->second;
    if (inserted) {
        events.push_back({LinkEventKind::kNew, link.ifindex, link.name, {}, 0});
        return;
    }
    if (known.name != link.name) {
        events.push_back({LinkEventKind::kRenamed, link.ifindex, link.name, known.name, 0});
    }
    if (known.carrier != link.carrier) {
        const auto kind = link.carrier ? LinkEventKind::kCarrierUp : LinkEventKind::kCarrierDown;
        events.push_back({kind, link.ifindex, link.name, {}, 0});
    }
    known = now;
}

void LinkMonitor::take_gone(unsigned ifindex, std::vector<LinkEvent>& events) {
    const auto known = links_.find(ifindex);
    if (known != links_.end()) {
        events.push_back({LinkEventKind::kGone, ifindex, known->second.name, {}, 0});
        links_.erase(known);
    }
}

void LinkMonitor::take_message(const NetlinkMessage& message, std::vector<LinkEvent>& events) {
    if (message.type != RTM_NEWLINK && message.type != RTM_DELLINK) {
        return;
    }
    const auto link = parse_link(message.payload);
    if (!link) {
        return;
    }
    if (message.type == RTM_NEWLINK) {
        take_new(*link, events);
    } else {
        take_gone(link->ifindex, events);
    }
}

Result<bool> LinkMonitor::drain(std::vector<LinkEvent>& events) {
    bool whole = true;
    for (;;) {
        const Result<std::string_view> datagram = socket_.receive();
        if (datagram) {
            for_each_message(*datagram,
                             [&](const NetlinkMessage& message) { take_message(message, events); });
            continue;
        }
        const int reason = datagram.error().error_number();
        if (reason == EAGAIN) {
            return whole;
        }
        if (reason != ENOBUFS) {
            return fail(Error(datagram.error()).context("watching the interfaces"));
        }
        whole = false;  // reported once; what is still queued can be read
    }
}

Status LinkMonitor::resync(std::vector<LinkEvent>& events) {
    const Result<std::vector<Interface>> all = query_.all();
    if (!all) {
        return fail(all.error());
    }
    std::set<unsigned> present;
    for (const Interface& link : *all) {
        present.insert(link.ifindex);
    }
    std::vector<unsigned> gone;
    for (const auto& [ifindex, link] : links_) {
        if (present.count(ifindex) == 0) {
            gone.push_back(ifindex);
        }
    }
    for (const unsigned ifindex : gone) {
        take_gone(ifindex, events);
    }
    for (const Interface& link : *all) {
        take_new(link, events);
    }
    return {};
}

void LinkMonitor::check_queues(std::vector<LinkEvent>& events) {
    const auto watched = links_.find(options_.watch_ifindex);
    if (watched == links_.end()) {
        return;
    }
    Interface link;
    link.name = watched->second.name;
    link.ifindex = options_.watch_ifindex;
    link.address_hash = watched->second.address_hash;
    if (!check_sysfs(link, options_.root)) {
        return;  // renamed again since, or sysfs of another namespace
    }
    const unsigned queues = real_tx_queues(options_.root, link.name).value_or(0);
    if (queues == queues_ || queues == 0) {
        return;
    }
    if (queues_ != 0) {
        events.push_back({LinkEventKind::kQueuesChanged, link.ifindex, link.name, {}, queues});
    }
    queues_ = queues;
}

Result<std::vector<LinkEvent>> LinkMonitor::read_events() {
    std::vector<LinkEvent> events;
    const Result<bool> whole = drain(events);
    if (!whole) {
        return fail(whole.error());
    }
    if (!*whole) {
        ++resyncs_;
        if (Status status = resync(events); !status) {
            return fail(std::move(status).error());
        }
    }
    check_queues(events);
    return events;
}

}  // namespace ringside
