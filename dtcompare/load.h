// Where a tree comes from: a file, a live folder, source text, or an image that carries one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dtcompare/tree.h"

namespace ringside::dt {

enum class SourceKind {
    kBlob,           // .dtb, .dtbo, /sys/firmware/fdt
    kSource,         // .dts, through dtc
    kLiveFolder,     // /proc/device-tree and folders like it
    kResourceImage,  // Rockchip "RSCE"
    kFit,            // U-Boot flattened image tree
    kAndroidBoot,    // Android boot or vendor_boot image
};
std::string_view source_kind_name(SourceKind kind);

struct LoadedTree {
    Tree tree;
    SourceKind kind = SourceKind::kBlob;
    std::string name;                   // as given
    std::string part;                   // inside an image: the entry's name
    std::string kernel_release;         // of the running kernel, for the live tree only
    std::vector<std::string> overlays;  // applied, in order
    std::vector<std::string> notes;     // what could not be read, which entry was taken
};

// Loads the tree at `path` and applies the overlays in order. Inputs are bounded in size and depth
// and dtc in time and output. Errors: kNotFound, kNoRights, kIo; kBadInput for damaged bytes and
// for an overlay that does not apply; kUnsupported when dtc is missing.
Result<LoadedTree> load_tree(const std::filesystem::path& path,
                             const std::vector<std::filesystem::path>& overlays = {});

// The same for bytes that are already in memory (a bundle's member, a fuzzer's input).
// `name` is only for messages. Text is not accepted here: dtc needs a file.
Result<LoadedTree> load_bytes(std::vector<std::uint8_t> bytes, const std::string& name);

// `base` with `overlay` applied by libfdt. Errors: kBadInput.
Result<std::vector<std::uint8_t>> apply_overlay(const std::vector<std::uint8_t>& base,
                                                std::vector<std::uint8_t> overlay);

}  // namespace ringside::dt
