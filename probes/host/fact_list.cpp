#include "probes/host/fact_list.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace ringside {

namespace {

constexpr std::size_t kMaxText = 256;

}  // namespace

std::string clean_text(std::string_view text) {
    std::string clean(text.substr(0, kMaxText));
    std::replace_if(
        clean.begin(), clean.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return clean;
}

std::string reason(const Error& error) {
    switch (error.error_number()) {
        case ENOENT:
            return "no such file";
        case EOPNOTSUPP:
            return "the driver or the kernel does not support it";
        case ENODEV:
            return "the interface is gone";
        case 0:
            return error.code() == ErrorCode::kBadInput ? "the source does not hold what it should"
                                                        : clean_text(error.message());
        default:
            return std::generic_category().message(error.error_number());
    }
}

void FactList::add(std::string name, FactValue value, std::string_view source,
                   std::string_view if_none) {
    if (auto* text = std::get_if<std::string>(&value)) {
        *text = clean_text(*text);
        if (text->empty()) {
            value = std::monostate();
        }
    }
    const bool none = std::holds_alternative<std::monostate>(value);
    facts_.push_back({std::move(name), std::move(value), std::string(source),
                      none ? clean_text(if_none) : std::string()});
}

void FactList::absent(std::string name, std::string_view source, std::string_view why) {
    add(std::move(name), FactValue(), source, why);
}

void FactList::number(std::string name, const Sysroot& root, const std::string& path) {
    const auto value = root.read_int(path);
    add(std::move(name), value ? FactValue(*value) : FactValue(), path,
        value ? std::string() : reason(value.error()));
}

void FactList::line(std::string name, const Sysroot& root, const std::string& path) {
    const auto value = root.read_line(path);
    add(std::move(name), value ? FactValue(*value) : FactValue(), path,
        value ? "the file is empty" : reason(value.error()));
}

}  // namespace ringside
