// ringside-lab-model: one network chip as a process, for QEMU's vfio-user-pci. See README.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <string>

#include "tests/lab/models/dwmac5.h"
#include "tests/lab/models/event_loop.h"
#include "tests/lab/models/rtl8125.h"

namespace ringside::lab {
namespace {

struct Options {
    std::string chip;
    std::string socket;
    std::string log;
    std::string control;
    unsigned queues = 2;
    bool msix = false;
};

std::unique_ptr<Nic> make_chip(const Options& options, const Machine& machine) {
    if (options.chip == "rtl8125") {
        return std::make_unique<Rtl8125>(machine);
    }
    return std::make_unique<Dwmac5>(machine,
                                    Dwmac5Options{.queues = options.queues, .msix = options.msix});
}

Status serve(const Options& options) {
    Result<TruthLog> log = TruthLog::create(options.log);
    if (!log) {
        return fail(std::move(log).error());
    }
    GuestMemory memory;
    Interrupts interrupts;
    Faults faults;
    const std::unique_ptr<Nic> nic = make_chip(
        options, {.memory = memory, .interrupts = interrupts, .faults = faults, .log = *log});
    log->write(boot_time_ns(), "start", {{"model", options.chip}, {"queues", nic->queues()}});

    std::optional<ControlFifo> control;
    if (!options.control.empty()) {
        Result<ControlFifo> opened = ControlFifo::open(options.control);
        if (!opened) {
            return fail(std::move(opened).error());
        }
        control.emplace(std::move(*opened));
    }
    VfioServer server(*nic, memory, interrupts, boot_time_ns);
    server.set_trace(
        [&](bool write, unsigned bar, std::uint64_t offset, unsigned size, std::uint64_t value) {
            if (faults.trace()) {
                log->write(boot_time_ns(), "reg",
                           {{"op", write ? "w" : "r"},
                            {"bar", bar},
                            {"o", offset},
                            {"s", size},
                            {"val", value}});
            }
        });
    Result<EventLoop> loop = EventLoop::create(*nic, *log);
    if (!loop) {
        return fail(std::move(loop).error());
    }
    Result<UniqueFd> listener = listen_unix(options.socket);
    if (!listener) {
        return fail(std::move(listener).error());
    }
    return loop->run(*listener, server, control ? &*control : nullptr);
}

int run(int argc, char** argv) {
    CLI::App app("A network chip for QEMU's vfio-user-pci; serves one client, then ends.",
                 "ringside-lab-model");
    Options options;
    app.add_option("chip", options.chip, "rtl8125 or dwmac5")
        ->required()
        ->check(CLI::IsMember({"rtl8125", "dwmac5"}));
    app.add_option("--socket", options.socket, "Unix socket to listen on")->required();
    app.add_option("--log", options.log, "truth log to write (JSON lines)")->required();
    app.add_option("--control", options.control, "FIFO for fault commands, made if absent");
    app.add_option("--queues", options.queues, "TX and RX queues that dwmac5 shows")
        ->check(CLI::Range(1U, kMaxQueues));
    app.add_flag("--msix", options.msix, "dwmac5: a vector for each queue instead of one MSI");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
    }
    if (const Status served = serve(options); !served) {
        fmt::print(stderr, "ringside-lab-model: {}\n", served.error().line());
        return static_cast<int>(served.error().exit_code());
    }
    return 0;
}

}  // namespace
}  // namespace ringside::lab

int main(int argc, char** argv) {
    try {
        return ringside::lab::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ringside-lab-model: internal error: %s\n", error.what());
        return static_cast<int>(ringside::ExitCode::kCannotRun);
    }
}
