// A device tree as plain values: nodes and properties that point into one flattened blob.
// It knows the format and the inheritance rules of the specification, not what a property means.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzers/base/result.h"

namespace ringside::dt {

using Bytes = std::span<const std::uint8_t>;
using NodeId = std::uint32_t;
constexpr NodeId kNoNode = ~NodeId{0};

// Bounds on foreign input. The kernel's own unflattener stops at a depth of 64; the largest tree of
// a Debian arm64 kernel has 260 KiB, 1,500 nodes, 269 children and 1,066 properties in one node.
constexpr std::size_t kMaxBlobBytes = 16U << 20U;
constexpr std::uint32_t kMaxDepth = 64;
constexpr std::uint32_t kMaxNodes = 100'000;
constexpr std::uint32_t kMaxProperties = 1'000'000;
// Matching looks at all pairs of siblings and of names, so these bound its time.
constexpr std::uint32_t kMaxChildren = 2048;
constexpr std::uint32_t kMaxNodeProperties = 8192;

struct Property {
    std::string_view name;
    Bytes bytes;
};

struct Node {
    std::string_view name;  // with the unit address; empty for the root
    NodeId parent = kNoNode;
    NodeId first_child = kNoNode;
    NodeId next_sibling = kNoNode;
    std::uint32_t first_property = 0;
    std::uint32_t property_count = 0;
    std::uint32_t phandle = 0;  // 0: none
};

// What is wrong with the structure of a flattened tree; empty when it is sound. Every blob goes
// through this before any other call of libfdt. fdt_check_full has the last word but not the first:
// that of libfdt 1.6.1 follows a null pointer in trees that claim a format version below 16, and
// runs in circles when a property's length wraps the offset (both found by fuzzing).
std::string structure_fault(Bytes blob);

// Parts of "name@unit"; unit is empty without an '@'.
std::string_view base_name(std::string_view node_name);
std::string_view unit_address(std::string_view node_name);

// Views of a property's bytes. They never read past the end: a short or odd value gives less.
std::uint32_t read_cell(Bytes bytes, std::size_t index);  // 0 past the end
inline std::size_t cell_count(Bytes bytes) {
    return bytes.size() / 4;
}
// Printable strings, each ended by a zero byte; nothing when the bytes are something else.
std::optional<std::vector<std::string_view>> read_strings(Bytes bytes);
std::string_view first_string(Bytes bytes);

class Tree {
  public:
    // Takes a flattened tree, checks it (fdt_check_full and the bounds above) and indexes it.
    // Errors: kBadInput with what is wrong and where.
    static Result<Tree> from_blob(std::vector<std::uint8_t> blob);

    Tree(Tree&&) noexcept = default;  // the views stay valid: the blob's bytes do not move
    Tree& operator=(Tree&&) noexcept = default;
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;
    ~Tree() = default;

    [[nodiscard]] NodeId root() const { return 0; }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }
    [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id]; }
    [[nodiscard]] std::span<const Property> properties(NodeId id) const {
        return {properties_.data() + nodes_[id].first_property, nodes_[id].property_count};
    }
    [[nodiscard]] std::size_t property_count() const { return properties_.size(); }
    [[nodiscard]] const std::vector<std::uint8_t>& blob() const { return blob_; }

    [[nodiscard]] const Property* find(NodeId id, std::string_view name) const;
    [[nodiscard]] NodeId child(NodeId id, std::string_view name) const;
    [[nodiscard]] NodeId by_path(std::string_view path) const;
    [[nodiscard]] NodeId by_phandle(std::uint32_t phandle) const;
    // The label that __symbols__ gives the node; empty without one.
    [[nodiscard]] std::string_view label(NodeId id) const;
    [[nodiscard]] std::string path(NodeId id) const;

    [[nodiscard]] std::optional<std::uint32_t> cell(NodeId id, std::string_view name) const;
    [[nodiscard]] std::string_view text(NodeId id, std::string_view name) const;
    [[nodiscard]] bool has(NodeId id, std::string_view name) const { return find(id, name); }
    [[nodiscard]] bool compatible_with(NodeId id, std::string_view what) const;
    // True unless this node or one above it has a status other than "okay" and "ok".
    [[nodiscard]] bool enabled(NodeId id) const;
    // #address-cells and #size-cells that hold for the children of `id`.
    [[nodiscard]] std::uint32_t address_cells(NodeId id) const;
    [[nodiscard]] std::uint32_t size_cells(NodeId id) const;

    [[nodiscard]] bool has_symbols() const { return !labels_.empty(); }
    // Still to be applied to a base tree: has fragments with __overlay__.
    [[nodiscard]] bool is_overlay() const;
    // Nodes made by dtc -@ for overlays, which say nothing about the hardware.
    [[nodiscard]] bool is_bookkeeping(NodeId id) const;

  private:
    Tree() = default;
    Status index();
    Status index_structure();
    struct Open;  // a node that is being read
    Status open_node(std::string_view name, std::vector<Open>& open);
    Status add_property(const Property& property, const std::vector<Open>& open);
    void index_labels();

    std::vector<std::uint8_t> blob_;
    std::vector<Node> nodes_;
    std::vector<Property> properties_;
    std::unordered_map<std::uint32_t, NodeId> phandles_;
    std::unordered_map<NodeId, std::string_view> labels_;
};

}  // namespace ringside::dt
