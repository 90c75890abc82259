#include "dtcompare/image.h"

#include <libfdt.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ringside::dt {

namespace {

constexpr int kMaxNesting = 3;

tl::unexpected<Error> bad(std::string what) {
    return fail(Error(ErrorCode::kBadInput, std::move(what))
                    .hint("the image is damaged or cut short, or of a format not known here"));
}

bool starts_with(Bytes bytes, std::string_view magic) {
    return bytes.size() >= magic.size() &&
           std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

// Little-endian fields of images; the caller has checked the header's length.
std::uint32_t le32(Bytes bytes, std::size_t at) {
    if (at + 4 > bytes.size()) {
        return 0;
    }
    return bytes[at] | (std::uint32_t{bytes[at + 1]} << 8U) |
           (std::uint32_t{bytes[at + 2]} << 16U) | (std::uint32_t{bytes[at + 3]} << 24U);
}

std::optional<Bytes> slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes.size() || size > bytes.size() - offset) {
        return std::nullopt;
    }
    return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

bool is_blob(Bytes bytes) {
    return bytes.size() >= 4 && read_cell(bytes, 0) == FDT_MAGIC;
}

// The blob at the front of `bytes`, as long as its header says.
std::optional<Bytes> blob_at_front(Bytes bytes) {
    if (!is_blob(bytes)) {
        return std::nullopt;
    }
    return slice(bytes, 0, read_cell(bytes, 1));
}

// Rockchip resource image: little-endian, everything counted in blocks of 512 bytes; a header block
// with the place, size and number of the entries, an entry each with tag, name, hash, place, size.
constexpr std::size_t kBlock = 512;

Result<ImagePart> from_resource(Bytes image) {
    constexpr std::uint32_t kMaxEntries = 4096;
    if (image.size() < kBlock) {
        return bad("resource image shorter than its header");
    }
    const std::size_t table = std::size_t{image[9]} * kBlock;
    const std::size_t stride = std::size_t{image[10]} * kBlock;
    const std::uint32_t count = le32(image, 12);
    if (stride == 0 || count > kMaxEntries) {
        return bad("resource image with an impossible entry table");
    }
    ImagePart part;
    part.kind = SourceKind::kResourceImage;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::optional<Bytes> entry = slice(image, table + i * stride, 268);
        if (!entry || !starts_with(*entry, "ENTR")) {
            return bad("resource image: entry " + std::to_string(i) + " is missing or has no tag");
        }
        std::string name(first_string(entry->subspan(4, 220)));
        const std::uint64_t start = std::uint64_t{le32(*entry, 260)} * kBlock;
        const std::optional<Bytes> bytes = slice(image, start, le32(*entry, 264));
        if (!bytes) {
            return bad("resource image: entry " + name + " lies outside of the image");
        }
        if (!is_blob(*bytes)) {
            continue;  // pictures of the boot logo
        }
        if (part.bytes.empty()) {
            part.bytes = *bytes;
            part.name = std::move(name);
        } else {
            part.others.push_back(std::move(name));
        }
    }
    if (part.bytes.empty()) {
        return bad("resource image without a device tree");
    }
    return part;
}

// One of the sections that follow an Android header, each padded to whole pages.
struct Section {
    const char* name;
    std::uint64_t size;
};

Result<ImagePart> from_sections(Bytes image, std::uint64_t header, std::uint64_t page,
                                const std::vector<Section>& sections, int nesting) {
    if (page < 512 || page > (1U << 20U)) {
        return bad("Android image with a page size of " + std::to_string(page));
    }
    const auto pad = [page](std::uint64_t size) { return (size + page - 1) / page * page; };
    std::uint64_t offset = pad(header);
    for (const Section& section : sections) {
        const std::optional<Bytes> bytes = slice(image, offset, section.size);
        if (!bytes) {
            return bad(std::string("Android image: the section ") + section.name +
                       " lies outside of the image");
        }
        offset += pad(section.size);
        Result<ImagePart> found = bad("empty");
        if (const std::optional<Bytes> blob = blob_at_front(*bytes)) {
            found = ImagePart{*blob, section.name, SourceKind::kAndroidBoot, {}};
        } else if (is_resource_image(*bytes)) {
            found = find_tree_in_image(*bytes, nesting + 1);
        }
        if (found) {
            found->name = found->kind == SourceKind::kAndroidBoot
                              ? section.name
                              : std::string(section.name) + ": " + found->name;
            found->kind = SourceKind::kAndroidBoot;
            return found;
        }
    }
    return bad("Android image without a device tree in its dtb and second sections");
}

Result<ImagePart> from_android(Bytes image, int nesting) {
    if (starts_with(image, "VNDRBOOT")) {
        if (image.size() < 2112) {
            return bad("vendor boot image shorter than its header");
        }
        return from_sections(image, le32(image, 2096), le32(image, 12),
                             {{"vendor ramdisk", le32(image, 24)}, {"dtb", le32(image, 2100)}},
                             nesting);
    }
    if (image.size() < 1660) {
        return bad("Android boot image shorter than its header");
    }
    const std::uint32_t version = le32(image, 40);
    if (version > 2 && version <= 4) {
        return fail(Error(ErrorCode::kBadInput, "Android boot image of version " +
                                                    std::to_string(version) + " holds no tree")
                        .hint("from version 3 on the tree is in vendor_boot: give that image"));
    }
    // Before version 1 this word counted the bytes of a tree behind the second section.
    const std::uint32_t old_dtb = version > 4 ? version : 0;
    const std::uint32_t recovery = version >= 1 && version <= 2 ? le32(image, 1632) : 0;
    const std::uint32_t dtb = version == 2 ? le32(image, 1648) : old_dtb;
    return from_sections(image, 1, le32(image, 36),
                         {{"kernel", le32(image, 8)},
                          {"ramdisk", le32(image, 16)},
                          {"second", le32(image, 24)},
                          {"recovery dtbo", recovery},
                          {"dtb", dtb}},
                         nesting);
}

// An image node's payload: inside the tree, behind it, or at a place in the file.
std::optional<Bytes> fit_payload(Bytes image, int node) {
    const void* fit = image.data();
    int length = 0;
    if (const void* data = fdt_getprop(fit, node, "data", &length)) {
        return Bytes(static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(length));
    }
    const auto number = [&](const char* name) -> std::optional<std::uint32_t> {
        int size = 0;
        const void* value = fdt_getprop(fit, node, name, &size);
        if (value == nullptr || size != 4) {
            return std::nullopt;
        }
        return read_cell({static_cast<const std::uint8_t*>(value), 4}, 0);
    };
    const std::optional<std::uint32_t> size = number("data-size");
    if (!size) {
        return std::nullopt;
    }
    if (const auto position = number("data-position")) {
        return slice(image, *position, *size);
    }
    if (const auto offset = number("data-offset")) {
        const std::uint64_t behind = (std::uint64_t{fdt_totalsize(fit)} + 3) / 4 * 4;
        return slice(image, behind + *offset, *size);
    }
    return std::nullopt;
}

std::string fit_string(const void* fit, int node, const char* name) {
    int length = 0;
    const auto* value = static_cast<const std::uint8_t*>(fdt_getprop(fit, node, name, &length));
    if (value == nullptr || length <= 0) {
        return {};
    }
    return std::string(first_string({value, static_cast<std::size_t>(length)}));
}

// The name of the tree in the default configuration; empty without one.
std::string fit_default_tree(const void* fit) {
    const int configurations = fdt_path_offset(fit, "/configurations");
    if (configurations < 0) {
        return {};
    }
    const std::string chosen = fit_string(fit, configurations, "default");
    const int node = fdt_subnode_offset(fit, configurations, chosen.c_str());
    return node < 0 ? std::string() : fit_string(fit, node, "fdt");
}

Result<ImagePart> from_fit(Bytes image, int nesting) {
    const std::string fault = structure_fault(image);
    if (!fault.empty()) {
        return bad("FIT image " + fault);
    }
    const int images = fdt_path_offset(image.data(), "/images");
    const std::string wanted = fit_default_tree(image.data());
    ImagePart part;
    int node = 0;
    fdt_for_each_subnode(node, image.data(), images) {
        const char* name = fdt_get_name(image.data(), node, nullptr);
        const std::optional<Bytes> payload = fit_payload(image, node);
        if (name == nullptr || !payload) {
            continue;
        }
        Result<ImagePart> inner = bad("empty");
        if (const auto blob = blob_at_front(*payload)) {
            inner = ImagePart{*blob, name, SourceKind::kFit, {}};
        } else if (is_resource_image(*payload)) {
            inner = find_tree_in_image(*payload, nesting + 1);
        }
        if (!inner) {
            continue;
        }
        if (part.bytes.empty() || name == wanted) {
            if (!part.bytes.empty()) {
                part.others.push_back(part.name);
            }
            part.bytes = inner->bytes;
            part.name = inner->name == name ? inner->name : std::string(name) + ": " + inner->name;
        } else {
            part.others.emplace_back(name);
        }
    }
    if (part.bytes.empty()) {
        return bad("FIT image without a device tree");
    }
    part.kind = SourceKind::kFit;
    return part;
}

}  // namespace

bool is_resource_image(Bytes image) {
    return starts_with(image, "RSCE");
}

bool is_android_image(Bytes image) {
    return starts_with(image, "ANDROID!") || starts_with(image, "VNDRBOOT");
}

bool is_fit(Bytes image) {
    // The walk through the whole tree is only for blobs that have a node of that name at all.
    constexpr std::string_view kImagesNode{"\0\0\0\1images\0", 11};
    if (!is_blob(image) ||
        ::memmem(image.data(), image.size(), kImagesNode.data(), kImagesNode.size()) == nullptr ||
        !structure_fault(image).empty()) {
        return false;
    }
    const int images = fdt_path_offset(image.data(), "/images");
    if (images < 0) {
        return false;
    }
    const int first = fdt_first_subnode(image.data(), images);
    return first >= 0 && fit_payload(image, first).has_value();
}

Result<ImagePart> find_tree_in_image(Bytes image, int nesting) {
    if (nesting > kMaxNesting) {
        return bad("images nested too deeply");
    }
    if (is_resource_image(image)) {
        return from_resource(image);
    }
    if (is_android_image(image)) {
        return from_android(image, nesting);
    }
    if (is_fit(image)) {
        return from_fit(image, nesting);
    }
    return bad("neither a device tree nor an image that is known to carry one");
}

}  // namespace ringside::dt
