#include "dtcompare/load.h"

#include <fcntl.h>
#include <libfdt.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>

#include "analyzers/base/unique_fd.h"
#include "dtcompare/image.h"
#include "dtcompare/load_dts.h"
#include "dtcompare/load_folder.h"

namespace ringside::dt {

namespace {

// A boot image holds a kernel; nothing that carries a tree is larger than this.
constexpr std::size_t kMaxFileBytes = 256U << 20U;
constexpr std::string_view kTextMark = "/dts-v1/";

Result<std::vector<std::uint8_t>> read_to_end(int fd, std::size_t expected) {
    std::vector<std::uint8_t> bytes(expected + 1);
    std::size_t used = 0;
    while (true) {
        if (used == bytes.size()) {
            bytes.resize(bytes.size() * 2);
        }
        const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(Error::from_errno(errno, "cannot read it"));
        }
        if (got == 0) {
            break;
        }
        used += static_cast<std::size_t>(got);
        if (used > kMaxFileBytes) {
            return fail(ErrorCode::kBadInput, "larger than 256 MiB");
        }
    }
    bytes.resize(used);
    return bytes;
}

// Non-blocking open, so that a pipe nobody writes to is an empty file and not a hang.
Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot open it"));
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return fail(Error::from_errno(errno, "cannot examine it"));
    }
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) {
        return fail(ErrorCode::kBadInput, "neither a file nor a folder");
    }
    if (S_ISFIFO(status.st_mode)) {
        ::fcntl(fd.get(), F_SETFL, 0);
    }
    if (status.st_size > static_cast<off_t>(kMaxFileBytes)) {
        return fail(ErrorCode::kBadInput, "larger than 256 MiB");
    }
    return read_to_end(fd.get(), static_cast<std::size_t>(status.st_size));
}

bool is_text_source(const std::filesystem::path& path, Bytes bytes) {
    const std::string_view front(reinterpret_cast<const char*>(bytes.data()),
                                 std::min<std::size_t>(bytes.size(), 4096));
    return path.extension() == ".dts" || front.find(kTextMark) != std::string_view::npos;
}

bool is_live(const std::filesystem::path& path) {
    const std::string text = path.lexically_normal().string();
    return text.starts_with("/sys/firmware/") || text.starts_with("/proc/device-tree");
}

// What a path holds, still flattened.
struct Flat {
    std::vector<std::uint8_t> blob;
    SourceKind kind = SourceKind::kBlob;
    std::string part;
    std::vector<std::string> notes;
};

Result<Flat> flat_from_bytes(std::vector<std::uint8_t> bytes) {
    if (bytes.empty()) {
        return fail(ErrorCode::kBadInput, "the file is empty");
    }
    if (!is_resource_image(bytes) && !is_android_image(bytes) && !is_fit(bytes)) {
        return Flat{std::move(bytes), SourceKind::kBlob, {}, {}};
    }
    Result<ImagePart> part = find_tree_in_image(bytes);
    if (!part) {
        return fail(std::move(part).error());
    }
    Flat flat{{part->bytes.begin(), part->bytes.end()}, part->kind, part->name, {}};
    if (!part->others.empty()) {
        std::string others;
        for (const std::string& name : part->others) {
            others += (others.empty() ? "" : ", ") + name;
        }
        flat.notes.push_back("the image has more trees, not read: " + others);
    }
    return flat;
}

Result<Flat> flat_from_path(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        Result<FolderTree> folder = flatten_folder(path);
        if (!folder) {
            return fail(std::move(folder).error());
        }
        return Flat{std::move(folder->blob), SourceKind::kLiveFolder, {}, std::move(folder->notes)};
    }
    Result<std::vector<std::uint8_t>> bytes = read_file(path);
    if (!bytes) {
        return fail(std::move(bytes).error());
    }
    if (is_text_source(path, *bytes)) {
        Result<std::vector<std::uint8_t>> blob = compile_dts(path);
        if (!blob) {
            return fail(std::move(blob).error());
        }
        return Flat{std::move(*blob), SourceKind::kSource, {}, {}};
    }
    return flat_from_bytes(std::move(*bytes));
}

Result<LoadedTree> make_tree(Flat flat, std::string name) {
    Result<Tree> tree = Tree::from_blob(std::move(flat.blob));
    if (!tree) {
        return fail(std::move(tree).error());
    }
    if (tree->is_overlay()) {
        return fail(Error(ErrorCode::kBadInput, "this is an overlay, not a whole tree")
                        .hint("give the base tree, and this file with --overlay-a or --overlay-b"));
    }
    return LoadedTree{std::move(*tree),     flat.kind, std::move(name),
                      std::move(flat.part), {},        {},
                      std::move(flat.notes)};
}

Result<LoadedTree> load_with_overlays(const std::filesystem::path& path,
                                      const std::vector<std::filesystem::path>& overlays) {
    Result<Flat> flat = flat_from_path(path);
    if (!flat) {
        return fail(std::move(flat).error());
    }
    for (const std::filesystem::path& overlay : overlays) {
        Result<Flat> extra = flat_from_path(overlay);
        if (!extra) {
            return fail(std::move(extra).error().context("overlay " + overlay.string()));
        }
        Result<std::vector<std::uint8_t>> merged =
            apply_overlay(flat->blob, std::move(extra->blob));
        if (!merged) {
            return fail(std::move(merged).error().context("overlay " + overlay.string()));
        }
        flat->blob = std::move(*merged);
    }
    Result<LoadedTree> loaded = make_tree(std::move(*flat), path.string());
    if (loaded) {
        for (const std::filesystem::path& overlay : overlays) {
            loaded->overlays.push_back(overlay.string());
        }
        utsname system{};
        if (is_live(path) && ::uname(&system) == 0) {
            loaded->kernel_release = system.release;
        }
    }
    return loaded;
}

std::string overlay_hint(int error) {
    switch (error) {
        case -FDT_ERR_NOTFOUND:
        case -FDT_ERR_BADPATH:
            return "its targets are not in the base tree: was the base compiled with dtc -@?";
        case -FDT_ERR_BADOVERLAY:
            return "the overlay does not fit this base tree";
        default:
            return "the overlay is damaged or made for another board";
    }
}

Status check_blob(const std::vector<std::uint8_t>& blob, const char* what) {
    const std::string fault = blob.size() > kMaxBlobBytes ? "is too large" : structure_fault(blob);
    return fault.empty() ? Status() : Status(fail(ErrorCode::kBadInput, what + (" " + fault)));
}

}  // namespace

std::string_view source_kind_name(SourceKind kind) {
    switch (kind) {
        case SourceKind::kBlob:
            return "dtb";
        case SourceKind::kSource:
            return "dts";
        case SourceKind::kLiveFolder:
            return "live folder";
        case SourceKind::kResourceImage:
            return "Rockchip resource image";
        case SourceKind::kFit:
            return "FIT image";
        case SourceKind::kAndroidBoot:
            return "Android image";
    }
    return "dtb";
}

Result<std::vector<std::uint8_t>> apply_overlay(const std::vector<std::uint8_t>& base,
                                                std::vector<std::uint8_t> overlay) {
    for (const auto& [blob, what] :
         {std::pair{&base, "the base tree"}, std::pair{&std::as_const(overlay), "the overlay"}}) {
        Status checked = check_blob(*blob, what);
        if (!checked) {
            return fail(std::move(checked).error());
        }
    }
    std::vector<std::uint8_t> merged(base.size() + 2 * overlay.size() + 65536);
    int error = fdt_open_into(base.data(), merged.data(), static_cast<int>(merged.size()));
    if (error == 0) {
        error = fdt_overlay_apply(merged.data(), overlay.data());
    }
    if (error == 0) {
        error = fdt_pack(merged.data());
    }
    if (error != 0) {
        return fail(Error(ErrorCode::kBadInput,
                          std::string("the overlay does not apply: ") + fdt_strerror(error))
                        .hint(overlay_hint(error)));
    }
    merged.resize(fdt_totalsize(merged.data()));
    return merged;
}

Result<LoadedTree> load_tree(const std::filesystem::path& path,
                             const std::vector<std::filesystem::path>& overlays) {
    Result<LoadedTree> loaded = load_with_overlays(path, overlays);
    if (!loaded) {
        return fail(std::move(loaded).error().context("device tree " + path.string()));
    }
    return loaded;
}

Result<LoadedTree> load_bytes(std::vector<std::uint8_t> bytes, const std::string& name) {
    Result<Flat> flat = flat_from_bytes(std::move(bytes));
    if (!flat) {
        return fail(std::move(flat).error().context("device tree " + name));
    }
    Result<LoadedTree> loaded = make_tree(std::move(*flat), name);
    if (!loaded) {
        return fail(std::move(loaded).error().context("device tree " + name));
    }
    return loaded;
}

}  // namespace ringside::dt
