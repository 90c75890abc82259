// Builds the flat list of facts: each has a value or says why not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analyzers/base/result.h"
#include "analyzers/base/sysroot.h"
#include "analyzers/capture/records.h"

namespace ringside {

using FactValue = decltype(Fact::value);

inline FactValue on_off(bool on) {
    return std::string(on ? "on" : "off");
}

// Foreign text as a fact may hold it: printable ASCII, at most 256 characters.
std::string clean_text(std::string_view text);

// An Error as a reason, without paths and the interface's name: two hosts' reasons read the same.
std::string reason(const Error& error);

// One fact made from a value of type T: a row of a table.
template <class T>
struct FactRow {
    std::string_view name;
    FactValue (*get)(const T&);
    std::string_view if_none;  // the reason when get() gives nothing
};

class FactList {
  public:
    // An empty text or no value is absent, for the reason given.
    void add(std::string name, FactValue value, std::string_view source,
             std::string_view if_none = "the source is empty");
    void absent(std::string name, std::string_view source, std::string_view why);

    // A number or a line of text from a file.
    void number(std::string name, const Sysroot& root, const std::string& path);
    void line(std::string name, const Sysroot& root, const std::string& path);

    // Every row of a table, from one value or from the reason why there is none.
    template <class T, std::size_t N>
    void table(const Result<T>& value, std::string_view source, const FactRow<T> (&rows)[N]) {
        for (const FactRow<T>& row : rows) {
            if (value) {
                add(std::string(row.name), row.get(*value), source, row.if_none);
            } else {
                absent(std::string(row.name), source, reason(value.error()));
            }
        }
    }

    [[nodiscard]] std::vector<Fact> take() { return std::move(facts_); }

  private:
    std::vector<Fact> facts_;
};

}  // namespace ringside
