#include "tools/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "analyzers/base/output_file.h"

namespace ringside {

void print_error(const Error& error) {
    fmt::print(stderr, "ringside: {}\n", error.line());
}

void print_note(const GlobalOptions& global, std::string_view text) {
    if (!global.quiet) {
        fmt::print(stderr, "ringside: {}\n", text);
    }
}

// Straight to the descriptor: a full disk or a closed pipe is seen here and not in a destructor.
Status print_result(std::string_view text) {
    return write_all(STDOUT_FILENO, text, "standard output");
}

}  // namespace ringside
