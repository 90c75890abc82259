#include "probes/bpf_object.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "probes/libbpf_log.h"

namespace ringside {

Result<BpfObject> BpfObject::open(const char* name, std::span<const std::byte> elf) {
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
    bpf_object* object = bpf_object__open_mem(elf.data(), elf.size(), &options);
    if (object == nullptr) {
        return fail(refused(errno, "cannot open the BPF programs"));
    }
    return BpfObject(object);
}

BpfObject::~BpfObject() {
    bpf_object__close(object_);
}

void* BpfObject::address_of(const char* section, std::string_view name, std::size_t size,
                            std::span<std::byte> memory) const {
    const btf* types = bpf_object__btf(object_);
    const int id = btf__find_by_name_kind(types, section, BTF_KIND_DATASEC);
    if (id < 0) {
        return nullptr;
    }
    const btf_type* datasec = btf__type_by_id(types, static_cast<__u32>(id));
    const std::span variables(btf_var_secinfos(datasec), btf_vlen(datasec));
    for (const btf_var_secinfo& variable : variables) {
        const btf_type* type = btf__type_by_id(types, variable.type);
        if (name == btf__name_by_offset(types, type->name_off)) {
            const bool fits = variable.size == size && variable.offset + size <= memory.size();
            return fits ? memory.data() + variable.offset : nullptr;
        }
    }
    return nullptr;
}

// libbpf calls the map of a section after the object and the section.
bpf_map* BpfObject::section_map(std::string_view section) const {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_) {
        if (std::string_view(bpf_map__name(map)).ends_with(section)) {
            return map;
        }
    }
    return nullptr;
}

std::size_t BpfObject::bss_bytes() const {
    const bpf_map* map = section_map(".bss");
    return map == nullptr ? 0 : bpf_map__value_size(map);
}

bool BpfObject::set_constant(std::string_view name, std::uint32_t value) {
    bpf_map* map = section_map(".rodata");
    if (map == nullptr) {
        return false;
    }
    std::size_t bytes = 0;
    // Const in libbpf 1.1 only: until the object is loaded this is ours to write.
    auto* memory = static_cast<std::byte*>(
        const_cast<void*>(static_cast<const void*>(bpf_map__initial_value(map, &bytes))));
    void* at = memory == nullptr
                   ? nullptr
                   : address_of(".rodata", name, sizeof value, std::span(memory, bytes));
    if (at == nullptr) {
        return false;
    }
    std::memcpy(at, &value, sizeof value);
    return true;
}

bool BpfObject::set_map_entries(const char* name, std::size_t entries) {
    bpf_map* map = bpf_object__find_map_by_name(object_, name);
    return map != nullptr && bpf_map__set_max_entries(map, static_cast<__u32>(entries)) == 0;
}

bool BpfObject::set_autoload(const char* name, bool load) {
    bpf_program* found = program(name);
    return found != nullptr && bpf_program__set_autoload(found, load) == 0;
}

Status BpfObject::load() {
    if (const int error = bpf_object__load(object_); error != 0) {
        return fail(refused(-error, "the kernel refused the BPF programs"));
    }
    const bpf_map* map = section_map(".bss");
    if (map == nullptr) {
        return {};
    }
    Result<MappedCells> memory = map_memory(bpf_map__name(map), bss_bytes());
    if (!memory) {
        return fail(memory.error());
    }
    bss_ = std::move(*memory);
    return {};
}

bpf_program* BpfObject::program(const char* name) const {
    return bpf_object__find_program_by_name(object_, name);
}

Result<MappedCells> BpfObject::map_memory(const char* name, std::size_t bytes) const {
    const int fd = bpf_object__find_map_fd_by_name(object_, name);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return fail(Error::from_errno(errno, std::string("cannot map ") + name));
    }
    return MappedCells(at, whole);
}

}  // namespace ringside
