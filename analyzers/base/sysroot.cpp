#include "analyzers/base/sysroot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "analyzers/base/unique_fd.h"

namespace ringside {

namespace fs = std::filesystem;

namespace {

std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlank(" \t\r\n\0", 5);
    const auto first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

fs::path Sysroot::resolve(std::string_view path) const {
    while (!path.empty() && path.front() == '/') {
        path.remove_prefix(1);
    }
    return root_ / path;
}

Result<std::string> Sysroot::read(std::string_view path, std::size_t limit) const {
    const fs::path full = resolve(path);
    const UniqueFd fd(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot open " + full.string()));
    }
    std::string text;
    char buffer[4096];
    for (;;) {
        const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(Error::from_errno(errno, "cannot read " + full.string()));
        }
        if (got == 0) {
            return text;
        }
        text.append(buffer, static_cast<std::size_t>(got));
        if (text.size() > limit) {
            return fail(ErrorCode::kBadInput, full.string() + " is larger than expected");
        }
    }
}

Result<std::string> Sysroot::read_line(std::string_view path) const {
    Result<std::string> text = read(path);
    if (!text) {
        return text;
    }
    const std::string_view all = *text;
    return std::string(trim(all.substr(0, all.find('\n'))));
}

Result<std::int64_t> Sysroot::read_int(std::string_view path) const {
    const Result<std::string> line = read_line(path);
    if (!line) {
        return fail(line.error());
    }
    std::int64_t value = 0;
    const char* end = line->data() + line->size();
    const auto [at, error] = std::from_chars(line->data(), end, value);
    if (error != std::errc() || at != end) {
        return fail(ErrorCode::kBadInput,
                    resolve(path).string() + " is not a number: " + line->substr(0, 40));
    }
    return value;
}

std::vector<std::string> Sysroot::list(std::string_view path) const {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(resolve(path), error), end; !error && it != end;
         it.increment(error)) {
        names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool Sysroot::exists(std::string_view path) const {
    std::error_code error;
    return fs::exists(resolve(path), error);
}

Result<std::string> Sysroot::link_name(std::string_view path) const {
    std::error_code error;
    const fs::path target = fs::read_symlink(resolve(path), error);
    if (error) {
        return fail(
            Error::from_errno(error.value(), "cannot read the link " + resolve(path).string()));
    }
    return target.filename().string();
}

}  // namespace ringside
