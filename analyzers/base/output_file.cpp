#include "analyzers/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ringside {

namespace fs = std::filesystem;

Status write_all(int fd, std::string_view bytes, const fs::path& name) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return fail(Error::from_errno(errno, "cannot write " + name.string()));
        }
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

Result<OutputFile> OutputFile::create(fs::path path) {
    std::error_code ignored;
    if (path.empty() || !path.has_filename() || fs::is_directory(path, ignored)) {
        return fail(Error(ErrorCode::kUsage, "'" + path.string() + "' is a folder, not a file name")
                        .hint("name a file, for example with -o"));
    }
    // Renaming onto /dev/null or a socket would destroy it.
    const fs::file_status there = fs::symlink_status(path, ignored);
    if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_symlink(there)) {
        return fail(Error(ErrorCode::kUsage, "'" + path.string() + "' is not a regular file")
                        .hint("name a new file, for example with -o"));
    }
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (!fs::is_directory(folder, ignored)) {
        return fail(Error(ErrorCode::kNotFound, "the folder " + folder.string() + " does not exist")
                        .hint("create it, or choose another with -o"));
    }
    fs::path part = path;
    part += ".part";

    // No O_TRUNC before the lock: the part may be the live recording of another process.
    UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd) {
        return fail(Error::from_errno(errno, "cannot create " + part.string()));
    }
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return fail(ErrorCode::kIo, part.string() + " is not a regular file");
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        return fail(Error(ErrorCode::kIo, part.string() + " is being written by another process")
                        .hint("choose another name with -o"));
    }
    if (::ftruncate(fd.get(), 0) != 0) {
        return fail(Error::from_errno(errno, "cannot empty " + part.string()));
    }
    return OutputFile(std::move(path), std::move(part), std::move(fd));
}

OutputFile::~OutputFile() {
    if (fd_ && remove_part_) {
        ::unlink(part_.c_str());
    }
}

Status OutputFile::write(std::string_view bytes) {
    return write_all(fd_.get(), bytes, part_);
}

Status OutputFile::commit() {
    // fdatasync before the rename: after a power cut the name must not stand on an empty file.
    if (::fdatasync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) {
        return fail(Error::from_errno(errno, "cannot write " + part_.string()));
    }
    if (::rename(part_.c_str(), path_.c_str()) != 0) {
        return fail(
            Error::from_errno(errno, "cannot rename " + part_.string() + " to " + path_.string()));
    }
    remove_part_ = false;
    fd_.reset();
    return {};
}

}  // namespace ringside
