// libFuzzer: whatever the bytes are, loading and comparing them ends in a result or in one error.
//
// Input: a byte that says how to use the rest, then the bytes. 0: one tree, compared with itself
// and with a small known one; 1: two trees, their border given by two more bytes; 2: base and
// overlay.
#include <libfdt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "dtcompare/compare.h"
#include "dtcompare/resolve.h"

namespace {

using ringside::dt::LoadedTree;
using Blob = std::vector<std::uint8_t>;

// Half a controller: enough for every place to have a counterpart.
Blob known_blob() {
    Blob blob(4096);
    void* fdt = blob.data();
    fdt_create(fdt, static_cast<int>(blob.size()));
    fdt_finish_reservemap(fdt);
    fdt_begin_node(fdt, "");
    fdt_property_u32(fdt, "#address-cells", 1);
    fdt_property_u32(fdt, "#size-cells", 1);
    fdt_begin_node(fdt, "ethernet@fe1c0000");
    constexpr char kCompatible[] = "rockchip,rk3588-gmac\0snps,dwmac-4.20a";
    fdt_property(fdt, "compatible", kCompatible, sizeof(kCompatible));
    fdt_property_u32(fdt, "tx_delay", 0x42);
    fdt_property_u32(fdt, "snps,mtl-tx-config", 1);
    fdt_property_u32(fdt, "snps,mtl-rx-config", 2);
    fdt_begin_node(fdt, "tx-queues-config");
    fdt_property_u32(fdt, "phandle", 1);
    fdt_property_u32(fdt, "snps,tx-queues-to-use", 2);
    fdt_end_node(fdt);
    fdt_begin_node(fdt, "rx-queues-config");
    fdt_property_u32(fdt, "phandle", 2);
    fdt_end_node(fdt);
    fdt_end_node(fdt);
    fdt_end_node(fdt);
    fdt_finish(fdt);
    blob.resize(fdt_totalsize(fdt));
    return blob;
}

const LoadedTree& known_tree() {
    static const auto* const kTree =
        new ringside::Result<LoadedTree>(ringside::dt::load_bytes(known_blob(), "known"));
    if (!*kTree) {
        std::abort();
    }
    return **kTree;
}

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_error(const ringside::Error& error) {
    require(!error.message().empty());
    require(error.exit_code() == ringside::ExitCode::kCannotRun);
}

void compare_both_ways(const LoadedTree& a, const LoadedTree& b) {
    ringside::dt::Options options;
    options.all = true;
    const auto forth = ringside::dt::compare(a, b, options);
    const auto back = ringside::dt::compare(b, a, options);
    require(forth && back);
    require(forth->equal == back->equal);
}

void use_one(Blob bytes) {
    const auto tree = ringside::dt::load_bytes(std::move(bytes), "one");
    if (!tree) {
        check_error(tree.error());
        return;
    }
    ringside::dt::check_references(tree->tree);
    const auto same = ringside::dt::compare(*tree, *tree);
    require(same && same->raw.total == 0);
    compare_both_ways(*tree, known_tree());
}

void use_two(Blob first, Blob second) {
    const auto a = ringside::dt::load_bytes(std::move(first), "a");
    const auto b = ringside::dt::load_bytes(std::move(second), "b");
    if (a && b) {
        compare_both_ways(*a, *b);
    }
}

void use_overlay(const Blob& base, Blob overlay) {
    auto merged = ringside::dt::apply_overlay(base, std::move(overlay));
    if (!merged) {
        check_error(merged.error());
        return;
    }
    use_one(std::move(*merged));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) {
        return 0;
    }
    const std::uint8_t how = data[0] % 3;
    if (how == 0) {
        use_one(Blob(data + 1, data + size));
        return 0;
    }
    const std::size_t border = 3 + std::min<std::size_t>(data[1] * 256U + data[2], size - 3);
    Blob first(data + 3, data + border);
    Blob second(data + border, data + size);
    if (how == 1) {
        use_two(std::move(first), std::move(second));
    } else {
        use_overlay(first, std::move(second));
    }
    return 0;
}
