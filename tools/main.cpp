// ringside: one binary, one subcommand per job.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>

#include "probes/tracer.h"
#include "tools/command.h"

namespace ringside {
namespace {

constexpr std::array<RegisterCommand, 5> kCommands{
    register_doctor, register_trace, register_analyze, register_dtdiff, register_demo,
};

constexpr const char* kFooter = R"(Start here:
  ringside demo                            the whole path on this machine, no NIC needed (root)
  ringside doctor eth0                     what this kernel allows to be seen
  ringside trace eth0 -o tx.rsc -- iperf3 -c HOST
  ringside analyze tx.rsc                  on any machine, without root
  ringside dtdiff stock.dtb mainline.dtb   what two trees tell an Ethernet controller

Exit codes: 0 nothing found, 1 findings, 2 wrong usage, 3 could not run.
Each command has its own --help.)";

bool use_color(bool no_color) {
    const char* setting = std::getenv("NO_COLOR");
    return !no_color && (setting == nullptr || *setting == '\0') && ::isatty(STDOUT_FILENO) == 1;
}

std::string version_text() {
    return fmt::format("ringside {} (live tracing: {})", RINGSIDE_VERSION,
                       Tracer::built_in() ? "yes" : "no");
}

// CLI11 reports a misspelt command as a missing one.
Status check_command(const CLI::App& app, int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word.starts_with('-')) {
            continue;
        }
        std::string names;
        for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
            if (command->get_name() == word) {
                return {};
            }
            names += (names.empty() ? "" : ", ") + command->get_name();
        }
        return fail(Error(ErrorCode::kUsage, fmt::format("there is no command '{}'", word))
                        .hint("commands: " + names + "; see: ringside --help"));
    }
    return {};
}

int run(int argc, char** argv) {
    CLI::App app{"ringside finds out why a Linux network port sends slower than it should.",
                 "ringside"};
    CommandLine line;
    bool no_color = false;
    app.add_flag("--json", line.global.json,
                 "Print one JSON document on stdout; all else goes to stderr");
    app.add_flag("--no-color", no_color, "No colour (also with NO_COLOR set)");
    app.add_flag("-q,--quiet", line.global.quiet, "Only results and errors");
    app.add_flag("-v,--verbose", line.global.verbose, "More detail");
    app.set_version_flag("--version", version_text());
    app.footer(kFooter);
    app.require_subcommand(1);
    app.fallthrough();
    for (const RegisterCommand register_command : kCommands) {
        register_command(app, line);
    }

    if (const Status known = check_command(app, argc, argv); !known) {
        print_error(known.error());
        return static_cast<int>(ExitCode::kUsage);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& e) {
        return app.exit(e);
    } catch (const CLI::CallForAllHelp& e) {
        return app.exit(e);
    } catch (const CLI::CallForVersion& e) {
        return app.exit(e);
    } catch (const CLI::ParseError& e) {
        print_error(Error(ErrorCode::kUsage, e.what()).hint("see: ringside --help"));
        return static_cast<int>(ExitCode::kUsage);
    }
    line.global.color = use_color(no_color);

    Result<ExitCode> result = line.run();
    if (!result) {
        print_error(result.error());
        return static_cast<int>(result.error().exit_code());
    }
    return static_cast<int>(*result);
}

}  // namespace
}  // namespace ringside

int main(int argc, char** argv) {
    // A reader that goes away is an error of a write, not a death.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return ringside::run(argc, argv);
    } catch (const std::exception& e) {
        // Only bugs and exhausted memory come here: expected failures are values.
        fmt::print(stderr, "ringside: internal error: {}\n", e.what());
        return static_cast<int>(ringside::ExitCode::kCannotRun);
    }
}
