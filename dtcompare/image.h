// Images that carry device trees. Each finder takes the whole image and returns the tree's bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtcompare/load.h"

namespace ringside::dt {

struct ImagePart {
    Bytes bytes;
    std::string name;  // entry name, or what section it was
    SourceKind kind = SourceKind::kBlob;
    std::vector<std::string> others;  // further trees in the image, not taken
};

bool is_resource_image(Bytes image);
bool is_android_image(Bytes image);
bool is_fit(Bytes image);

// The tree in any of the images above, through nesting (a resource image inside a boot image).
// Errors: kBadInput when offsets leave the image or it has no tree.
Result<ImagePart> find_tree_in_image(Bytes image, int nesting = 0);

}  // namespace ringside::dt
