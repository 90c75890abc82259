// What every subcommand shares: the global options, how it is registered, and the only place where
// errors and notes reach the user.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "analyzers/base/result.h"

namespace ringside {

struct GlobalOptions {
    bool json = false;   // stdout is one JSON document, all else goes to stderr
    bool color = false;  // decided once: terminal, --no-color, NO_COLOR
    bool quiet = false;
    int verbose = 0;
};

// A subcommand adds its options to `app` and sets `run` when it was chosen on the command line.
struct CommandLine {
    GlobalOptions global;
    std::function<Result<ExitCode>()> run;
};

// Table of subcommands in main.cpp; one function and one file each.
using RegisterCommand = void (*)(CLI::App& app, CommandLine& line);

void register_analyze(CLI::App& app, CommandLine& line);
void register_demo(CLI::App& app, CommandLine& line);
void register_doctor(CLI::App& app, CommandLine& line);
void register_dtdiff(CLI::App& app, CommandLine& line);
void register_trace(CLI::App& app, CommandLine& line);

// Prints "ringside: <message>" and the hint on the next line, to stderr.
void print_error(const Error& error);
// A remark for the reader, to stderr; nothing with -q.
void print_note(const GlobalOptions& global, std::string_view text);
// Writes a command's result to stdout. Errors: kIo (a closed pipe, a full disk).
Status print_result(std::string_view text);

}  // namespace ringside
