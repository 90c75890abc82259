// A BPF object by name: its constants, variables, maps and programs. The objects of all tiers have
// the same names in them, so that one tracer serves all.
#pragma once

#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/base/result.h"
#include "probes/cells.h"

namespace ringside {

class BpfObject {
  public:
    // `elf`: a compiled object, as a generated skeleton carries it.
    static Result<BpfObject> open(const char* name, std::span<const std::byte> elf);
    BpfObject(BpfObject&& other) noexcept
        : object_(std::exchange(other.object_, nullptr)), bss_(std::move(other.bss_)) {}
    BpfObject& operator=(BpfObject&& other) noexcept {
        std::swap(object_, other.object_);
        std::swap(bss_, other.bss_);
        return *this;
    }
    BpfObject(const BpfObject&) = delete;
    BpfObject& operator=(const BpfObject&) = delete;
    ~BpfObject();

    // Before load(). False: the object has no such variable, map or program.
    bool set_constant(std::string_view name, std::uint32_t value);
    bool set_map_entries(const char* name, std::size_t entries);
    bool set_autoload(const char* program, bool load);
    Status load();

    // After load(). Null when the object has none of that name.
    [[nodiscard]] bpf_program* program(const char* name) const;
    template <class T>
    [[nodiscard]] T* variable(std::string_view name) const {
        return static_cast<T*>(
            address_of(".bss", name, sizeof(T), bss_.as<std::byte>(bss_bytes())));
    }
    [[nodiscard]] Result<MappedCells> map_memory(const char* name, std::size_t bytes) const;

  private:
    explicit BpfObject(bpf_object* object) : object_(object) {}
    // Where a global variable lies in `memory`, which holds the whole section.
    [[nodiscard]] void* address_of(const char* section, std::string_view name, std::size_t size,
                                   std::span<std::byte> memory) const;
    [[nodiscard]] bpf_map* section_map(std::string_view section) const;
    [[nodiscard]] std::size_t bss_bytes() const;

    bpf_object* object_ = nullptr;
    MappedCells bss_;  // after load()
};

}  // namespace ringside
