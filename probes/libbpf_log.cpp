#include "probes/libbpf_log.h"

#include <bpf/libbpf.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string_view>

namespace ringside {

namespace {

std::string& text() {
    static std::string log;
    return log;
}

int print(libbpf_print_level level, const char* format, va_list args) noexcept {
    if (level != LIBBPF_WARN) {
        return 0;
    }
    std::array<char, 2048> line{};
    const int length = std::vsnprintf(line.data(), line.size(), format, args);
    if (text().size() < 64 * 1024) {
        text().append(line.data());
    }
    return length;
}

}  // namespace

LibbpfLog::LibbpfLog() {
    text().clear();
    libbpf_set_print(print);
}

std::string LibbpfLog::last_reason() {
    // Verifier logs end in statistics; the line before is the verdict.
    std::string_view log = text();
    std::string best;
    while (!log.empty()) {
        const auto end = log.find('\n');
        const std::string_view line = log.substr(0, end);
        log = end == std::string_view::npos ? std::string_view{} : log.substr(end + 1);
        const bool noise = line.empty() || line.starts_with("processed ") ||
                           line.starts_with("-- ") ||
                           line.find("failed to load object") != std::string_view::npos ||
                           line.find("failed to load BPF skeleton") != std::string_view::npos ||
                           line.find("BPF program load failed") != std::string_view::npos;
        if (!noise) {
            best = line;
        }
    }
    constexpr std::string_view kPrefix = "libbpf: ";
    if (best.starts_with(kPrefix)) {
        best.erase(0, kPrefix.size());
    }
    return best;
}

Error refused(int error_number, const std::string& what) {
    const std::string reason = LibbpfLog::last_reason();
    Error error =
        Error::from_errno(error_number, reason.empty() ? what : what + " (" + reason + ")");
    if (error_number == EPERM || error_number == EACCES) {
        if (::geteuid() != 0) {
            return std::move(error).hint("run as root, for example with sudo");
        }
        return std::move(error).hint(
            "root alone is not enough here: a container without CAP_BPF and CAP_PERFMON, or kernel "
            "lockdown");
    }
    return std::move(error).hint("see what this kernel allows with: ringside doctor");
}

}  // namespace ringside
