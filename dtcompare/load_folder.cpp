#include "dtcompare/load_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <libfdt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "analyzers/base/unique_fd.h"

namespace ringside::dt {

namespace {

struct Entry {
    std::string name;
    bool folder = false;
};

class Flattener {
  public:
    Status add_folder(int fd, const char* name, std::uint32_t depth, const std::string& path);
    Status begin();
    Result<FolderTree> finish();

  private:
    Status add_property(int folder, const std::string& name, const std::string& path);
    Status check(int error, const std::string& path);

    // Uninitialised on purpose: most of it is never touched.
    std::unique_ptr<std::uint8_t[]> buffer_{new std::uint8_t[kMaxBlobBytes]};
    std::size_t bytes_ = 0;
    std::uint32_t nodes_ = 0;
    std::vector<std::string> unreadable_;
};

Status Flattener::check(int error, const std::string& path) {
    if (error == 0) {
        return {};
    }
    return fail(ErrorCode::kBadInput,
                "cannot flatten " + path + ": " + std::string(fdt_strerror(error)));
}

Status Flattener::begin() {
    const int error = fdt_create(buffer_.get(), static_cast<int>(kMaxBlobBytes));
    return check(error != 0 ? error : fdt_finish_reservemap(buffer_.get()), "/");
}

Result<std::vector<Entry>> entries_of(int fd, const std::string& path) {
    DIR* raw = ::fdopendir(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (raw == nullptr) {
        return fail(Error::from_errno(errno, "cannot list " + path));
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(raw, ::closedir);
    std::vector<Entry> entries;
    while (const dirent* item = ::readdir(dir.get())) {
        const std::string_view name = item->d_name;
        struct stat status {};
        // "name" repeats the node's name in folders made by older kernels.
        if (name == "." || name == ".." || name == "name" ||
            ::fstatat(fd, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) {
            entries.push_back({std::string(name), S_ISDIR(status.st_mode)});
        }
        if (entries.size() > kMaxNodes) {
            return fail(ErrorCode::kBadInput, "too many entries in " + path);
        }
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.folder != b.folder ? b.folder : a.name < b.name;
    });
    return entries;
}

Status Flattener::add_property(int folder, const std::string& name, const std::string& path) {
    const UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) {
        unreadable_.push_back(path + "/" + name);  // the kernel hides seeds and passwords
        return {};
    }
    std::vector<std::uint8_t> value;
    std::uint8_t chunk[4096];
    ssize_t got = 0;
    while ((got = ::read(fd.get(), chunk, sizeof(chunk))) > 0) {
        value.insert(value.end(), chunk, chunk + got);
        if (bytes_ + value.size() > kMaxBlobBytes) {
            return fail(ErrorCode::kBadInput, "the folder holds more than 16 MiB");
        }
    }
    if (got < 0) {
        return fail(Error::from_errno(errno, "cannot read " + path + "/" + name));
    }
    bytes_ += value.size();
    return check(
        fdt_property(buffer_.get(), name.c_str(), value.data(), static_cast<int>(value.size())),
        path + "/" + name);
}

Status Flattener::add_folder(int fd, const char* name, std::uint32_t depth,
                             const std::string& path) {
    if (depth > kMaxDepth) {
        return fail(ErrorCode::kBadInput,
                    "folders nested deeper than " + std::to_string(kMaxDepth));
    }
    if (++nodes_ > kMaxNodes) {
        return fail(ErrorCode::kBadInput, "more than " + std::to_string(kMaxNodes) + " folders");
    }
    Result<std::vector<Entry>> entries = entries_of(fd, path);
    if (!entries) {
        return fail(std::move(entries).error());
    }
    Status status = check(fdt_begin_node(buffer_.get(), name), path);
    for (const Entry& entry : *entries) {
        if (!status) {
            return status;
        }
        if (!entry.folder) {
            status = add_property(fd, entry.name, path);
            continue;
        }
        const UniqueFd child(
            ::openat(fd, entry.name.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW));
        if (!child) {
            return fail(Error::from_errno(errno, "cannot open " + path + "/" + entry.name));
        }
        status = add_folder(child.get(), entry.name.c_str(), depth + 1, path + "/" + entry.name);
    }
    return status ? check(fdt_end_node(buffer_.get()), path) : status;
}

Result<FolderTree> Flattener::finish() {
    const int error = fdt_finish(buffer_.get());
    if (error != 0) {
        return fail(ErrorCode::kBadInput,
                    std::string("cannot flatten the folder: ") + fdt_strerror(error));
    }
    FolderTree result;
    result.blob.assign(buffer_.get(), buffer_.get() + fdt_totalsize(buffer_.get()));
    if (!unreadable_.empty()) {
        result.notes.push_back(std::to_string(unreadable_.size()) +
                               " properties are not readable for this user, the first is " +
                               unreadable_.front());
    }
    return result;
}

}  // namespace

Result<FolderTree> flatten_folder(const std::filesystem::path& folder) {
    const UniqueFd top(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
    if (!top) {
        return fail(Error::from_errno(errno, "cannot open it"));
    }
    struct stat status {};
    if (::fstatat(top.get(), "compatible", &status, 0) != 0 &&
        ::fstatat(top.get(), "#address-cells", &status, 0) != 0) {
        return fail(Error(ErrorCode::kBadInput, "the folder is not the root of a device tree")
                        .hint("a live tree has \"compatible\" in its top folder, as in "
                              "/proc/device-tree"));
    }
    Flattener flattener;
    Status done = flattener.begin();
    if (done) {
        done = flattener.add_folder(top.get(), "", 1, "");
    }
    if (!done) {
        return fail(std::move(done).error());
    }
    return flattener.finish();
}

}  // namespace ringside::dt
