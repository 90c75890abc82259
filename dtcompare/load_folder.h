// A folder in the form of /proc/device-tree, flattened so that it goes through the same checks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "dtcompare/tree.h"

namespace ringside::dt {

struct FolderTree {
    std::vector<std::uint8_t> blob;
    std::vector<std::string> notes;  // properties the kernel keeps from this user
};

// Reads the folder without following links below its top. Errors: kNotFound, kNoRights, kIo,
// kBadInput (not such a folder, too large, too deep).
Result<FolderTree> flatten_folder(const std::filesystem::path& folder);

}  // namespace ringside::dt
