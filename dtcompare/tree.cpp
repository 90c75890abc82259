#include "dtcompare/tree.h"

#include <libfdt.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace ringside::dt {

namespace {

constexpr std::uint32_t kOldestVersion = 16;  // 2004; older ones align values differently

tl::unexpected<Error> bad(std::string what) {
    return fail(Error(ErrorCode::kBadInput, std::move(what))
                    .hint("the file is damaged, cut short or not a device tree"));
}

Status check_header(const std::vector<std::uint8_t>& blob) {
    if (blob.size() > kMaxBlobBytes) {
        return bad("device tree of " + std::to_string(blob.size()) + " bytes: the limit is " +
                   std::to_string(kMaxBlobBytes));
    }
    const std::string fault = structure_fault(blob);
    return fault.empty() ? Status() : Status(bad("device tree " + fault));
}

// The structure block from left to right, each step forward and inside the block. libfdt's own
// calls check every step from the header on, which is most of the time of loading a tree, and those
// of 1.6.1 run in circles when a property's length wraps the offset (found by fuzzing).
class Walker {
  public:
    // The offsets are those of a header that blocks_fault() found nothing wrong with.
    explicit Walker(Bytes blob)
        : blob_(blob),
          at_(fdt_off_dt_struct(blob.data())),
          end_(fdt_version(blob.data()) >= 17 ? at_ + fdt_size_dt_struct(blob.data())
                                              : fdt_totalsize(blob.data())),
          strings_(fdt_off_dt_strings(blob.data())),
          strings_end_(strings_ + fdt_size_dt_strings(blob.data())) {}

    // The next tag that is no padding; nothing when the block ends without one.
    std::optional<std::uint32_t> tag() {
        while (end_ - at_ >= 4) {
            const std::uint32_t tag = cell();
            if (tag != FDT_NOP) {
                return tag;
            }
        }
        return std::nullopt;
    }
    std::optional<std::string_view> node_name() {
        const auto name = text(at_, end_);
        if (!name || !skip(name->size() + 1)) {
            return std::nullopt;
        }
        return name;
    }
    std::optional<Property> property() {
        if (end_ - at_ < 8) {
            return std::nullopt;
        }
        const std::size_t size = cell();
        const auto name = text(strings_ + std::size_t{cell()}, strings_end_);
        const std::size_t value = at_;
        if (!name || !skip(size)) {
            return std::nullopt;
        }
        return Property{*name, blob_.subspan(value, size)};
    }

  private:
    std::uint32_t cell() {
        const std::uint32_t value = read_cell(blob_.subspan(at_, 4), 0);
        at_ += 4;
        return value;
    }
    // Moves behind `size` bytes and their padding.
    bool skip(std::size_t size) {
        const std::size_t padded = (size + 3) / 4 * 4;
        if (padded > end_ - at_) {
            return false;
        }
        at_ += padded;
        return true;
    }
    [[nodiscard]] std::optional<std::string_view> text(std::size_t at, std::size_t end) const {
        if (at >= end) {
            return std::nullopt;
        }
        const char* start = reinterpret_cast<const char*>(blob_.data()) + at;
        const std::size_t size = ::strnlen(start, end - at);
        return size == end - at ? std::nullopt : std::optional<std::string_view>({start, size});
    }

    Bytes blob_;
    std::size_t at_;
    std::size_t end_;
    std::size_t strings_;
    std::size_t strings_end_;
};

// The header's blocks lie inside the file. Empty when they do.
std::string_view blocks_fault(Bytes blob) {
    const std::size_t total = fdt_totalsize(blob.data());
    const auto inside = [total](std::size_t offset, std::size_t size) {
        return offset <= total && size <= total - offset;
    };
    const std::size_t structure = fdt_off_dt_struct(blob.data());
    const std::size_t size = fdt_version(blob.data()) >= 17 ? fdt_size_dt_struct(blob.data()) : 0;
    if (structure % 4 != 0 || !inside(structure, size) ||
        !inside(fdt_off_dt_strings(blob.data()), fdt_size_dt_strings(blob.data())) ||
        fdt_off_mem_rsvmap(blob.data()) % 8 != 0 || !inside(fdt_off_mem_rsvmap(blob.data()), 16)) {
        return "whose header points outside of the file";
    }
    return {};
}

// Every tag can be read and the nodes close. Empty when so.
std::string_view tags_fault(Bytes blob) {
    Walker walker(blob);
    std::size_t depth = 0;
    for (auto tag = walker.tag(); tag; tag = walker.tag()) {
        switch (*tag) {
            case FDT_BEGIN_NODE:
                if (!walker.node_name()) {
                    return "with a node name that does not end";
                }
                ++depth;
                break;
            case FDT_END_NODE:
                if (depth == 0) {
                    return "that closes a node too many";
                }
                --depth;
                break;
            case FDT_PROP:
                if (!walker.property()) {
                    return "with a property that leaves its block";
                }
                break;
            case FDT_END:
                return depth == 0 ? std::string_view() : "that ends inside of a node";
            default:
                return "with an unknown tag";
        }
    }
    return "without an end";
}

bool is_text(std::uint8_t c) {
    return c >= 0x20 && c < 0x7f;
}

}  // namespace

std::string structure_fault(Bytes blob) {
    if (blob.size() < sizeof(fdt_header)) {
        return "of " + std::to_string(blob.size()) + " bytes: shorter than a header";
    }
    if (fdt_magic(blob.data()) != FDT_MAGIC) {
        return "without its magic number: this is something else";
    }
    const std::uint32_t total = fdt_totalsize(blob.data());
    if (total > blob.size()) {
        return "cut short: the header says " + std::to_string(total) + " bytes, there are " +
               std::to_string(blob.size());
    }
    const std::uint32_t version = fdt_version(blob.data());
    if (version < kOldestVersion) {
        return "in format version " + std::to_string(version) + ": older than 16";
    }
    for (const auto check : {blocks_fault, tags_fault}) {
        const std::string_view fault = check(blob);
        if (!fault.empty()) {
            return std::string(fault);
        }
    }
    const int error = fdt_check_full(blob.data(), blob.size());
    return error == 0 ? std::string()
                      : std::string("that fails its structure check: ") + fdt_strerror(error);
}

std::string_view base_name(std::string_view node_name) {
    return node_name.substr(0, node_name.find('@'));
}

std::string_view unit_address(std::string_view node_name) {
    const std::size_t at = node_name.find('@');
    return at == std::string_view::npos ? std::string_view() : node_name.substr(at + 1);
}

std::uint32_t read_cell(Bytes bytes, std::size_t index) {
    if (index >= bytes.size() / 4) {
        return 0;
    }
    const std::uint8_t* p = bytes.data() + index * 4;
    return (std::uint32_t{p[0]} << 24U) | (std::uint32_t{p[1]} << 16U) |
           (std::uint32_t{p[2]} << 8U) | p[3];
}

std::optional<std::vector<std::string_view>> read_strings(Bytes bytes) {
    if (bytes.empty() || bytes.back() != 0) {
        return std::nullopt;
    }
    std::vector<std::string_view> strings;
    std::size_t start = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] == 0) {
            if (i == start) {
                return std::nullopt;  // an empty string is more likely a cell
            }
            strings.emplace_back(reinterpret_cast<const char*>(bytes.data()) + start, i - start);
            start = i + 1;
        } else if (!is_text(bytes[i])) {
            return std::nullopt;
        }
    }
    return strings;
}

std::string_view first_string(Bytes bytes) {
    const auto end = std::find(bytes.begin(), bytes.end(), std::uint8_t{0});
    if (end == bytes.end()) {
        return {};
    }
    return {reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::size_t>(end - bytes.begin())};
}

Result<Tree> Tree::from_blob(std::vector<std::uint8_t> blob) {
    Status header = check_header(blob);
    if (!header) {
        return fail(std::move(header).error());
    }
    Tree tree;
    tree.blob_ = std::move(blob);
    Status indexed = tree.index();
    if (!indexed) {
        return fail(std::move(indexed).error());
    }
    return tree;
}

Status Tree::index() {
    Status structure = index_structure();
    if (!structure) {
        return structure;
    }
    phandles_.reserve(nodes_.size());
    for (NodeId id = 0; id < nodes_.size(); ++id) {
        const std::uint32_t phandle = nodes_[id].phandle;
        if (phandle == 0 || phandle == 0xffffffffU) {
            continue;
        }
        const auto [it, fresh] = phandles_.emplace(phandle, id);
        if (!fresh) {
            return bad("two nodes have the phandle " + std::to_string(phandle) + ": " +
                       path(it->second) + " and " + path(id));
        }
    }
    index_labels();
    return {};
}

struct Tree::Open {
    NodeId node;
    NodeId last_child = kNoNode;
    std::uint32_t children = 0;
};

Status Tree::add_property(const Property& property, const std::vector<Open>& open) {
    if (open.empty()) {
        return bad("a property outside of any node");
    }
    Node& node = nodes_[open.back().node];
    if (node.first_child != kNoNode) {
        return bad("property " + std::string(property.name) + " after a child node in " +
                   path(open.back().node));
    }
    if (properties_.size() >= kMaxProperties || node.property_count >= kMaxNodeProperties) {
        return bad("more than " + std::to_string(kMaxProperties) + " properties, or " +
                   std::to_string(kMaxNodeProperties) + " in one node");
    }
    ++node.property_count;
    if (property.bytes.size() == 4 &&
        (property.name == "phandle" || property.name == "linux,phandle")) {
        node.phandle = read_cell(property.bytes, 0);
    }
    properties_.push_back(property);
    return {};
}

Status Tree::open_node(std::string_view name, std::vector<Open>& open) {
    if (open.size() >= kMaxDepth) {
        return bad("nodes nested deeper than " + std::to_string(kMaxDepth));
    }
    if (nodes_.size() >= kMaxNodes) {
        return bad("more than " + std::to_string(kMaxNodes) + " nodes");
    }
    if (open.empty() && !nodes_.empty()) {
        return bad("more than one root node");
    }
    const auto id = static_cast<NodeId>(nodes_.size());
    Node node;
    node.name = name;
    node.first_property = static_cast<std::uint32_t>(properties_.size());
    if (!open.empty()) {
        Open& parent = open.back();
        if (++parent.children > kMaxChildren) {
            return bad("more than " + std::to_string(kMaxChildren) + " nodes in one node");
        }
        node.parent = parent.node;
        NodeId& link = parent.last_child == kNoNode ? nodes_[parent.node].first_child
                                                    : nodes_[parent.last_child].next_sibling;
        link = id;
        parent.last_child = id;
    }
    nodes_.push_back(node);
    open.push_back({id});
    return {};
}

Status Tree::index_structure() {
    // Version 16 has no such field: whatever stands there must not decide how much memory is asked
    // for.
    const std::size_t expected =
        std::min<std::size_t>(fdt_size_dt_struct(blob_.data()), blob_.size()) / 16;
    properties_.reserve(expected);
    nodes_.reserve(expected / 8);
    std::vector<Open> open;  // the path to where we are
    Walker walker(blob_);
    for (auto tag = walker.tag(); tag && *tag != FDT_END; tag = walker.tag()) {
        Status step;
        if (*tag == FDT_PROP) {
            const std::optional<Property> property = walker.property();
            step = property ? add_property(*property, open) : bad("a property leaves its block");
        } else if (*tag == FDT_BEGIN_NODE) {
            const std::optional<std::string_view> name = walker.node_name();
            step = name ? open_node(*name, open) : bad("a node name does not end");
        } else if (!open.empty()) {
            open.pop_back();
        }
        if (!step) {
            return step;
        }
    }
    return nodes_.empty() ? Status(bad("a device tree without a root node")) : Status();
}

void Tree::index_labels() {
    const NodeId symbols = child(root(), "__symbols__");
    if (symbols == kNoNode) {
        return;
    }
    for (const Property& symbol : properties(symbols)) {
        const NodeId id = by_path(first_string(symbol.bytes));
        if (id != kNoNode) {
            labels_.emplace(id, symbol.name);
        }
    }
}

const Property* Tree::find(NodeId id, std::string_view name) const {
    for (const Property& property : properties(id)) {
        if (property.name == name) {
            return &property;
        }
    }
    return nullptr;
}

NodeId Tree::child(NodeId id, std::string_view name) const {
    for (NodeId c = nodes_[id].first_child; c != kNoNode; c = nodes_[c].next_sibling) {
        if (nodes_[c].name == name) {
            return c;
        }
    }
    return kNoNode;
}

NodeId Tree::by_path(std::string_view path) const {
    if (path.empty() || path.front() != '/') {
        return kNoNode;
    }
    NodeId id = root();
    std::size_t start = 1;
    while (start < path.size() && id != kNoNode) {
        const std::size_t end = std::min(path.find('/', start), path.size());
        id = child(id, path.substr(start, end - start));
        start = end + 1;
    }
    return id;
}

NodeId Tree::by_phandle(std::uint32_t phandle) const {
    const auto it = phandles_.find(phandle);
    return it == phandles_.end() ? kNoNode : it->second;
}

std::string_view Tree::label(NodeId id) const {
    const auto it = labels_.find(id);
    return it == labels_.end() ? std::string_view() : it->second;
}

std::string Tree::path(NodeId id) const {
    if (id == root()) {
        return "/";
    }
    std::vector<std::string_view> parts;
    for (NodeId n = id; n != root() && n != kNoNode; n = nodes_[n].parent) {
        parts.push_back(nodes_[n].name);
    }
    std::string path;
    for (auto it = parts.rbegin(); it != parts.rend(); ++it) {
        path += '/';
        path += *it;
    }
    return path;
}

std::optional<std::uint32_t> Tree::cell(NodeId id, std::string_view name) const {
    const Property* property = find(id, name);
    if (property == nullptr || property->bytes.size() != 4) {
        return std::nullopt;
    }
    return read_cell(property->bytes, 0);
}

std::string_view Tree::text(NodeId id, std::string_view name) const {
    const Property* property = find(id, name);
    return property == nullptr ? std::string_view() : first_string(property->bytes);
}

bool Tree::compatible_with(NodeId id, std::string_view what) const {
    const Property* property = find(id, "compatible");
    if (property == nullptr) {
        return false;
    }
    const std::string_view all(reinterpret_cast<const char*>(property->bytes.data()),
                               property->bytes.size());
    for (std::size_t start = 0; start < all.size();) {
        const std::size_t end = std::min(all.find('\0', start), all.size());
        if (all.substr(start, end - start) == what) {
            return true;
        }
        start = end + 1;
    }
    return false;
}

bool Tree::enabled(NodeId id) const {
    for (NodeId n = id; n != kNoNode; n = nodes_[n].parent) {
        const Property* status = find(n, "status");
        if (status != nullptr) {
            const std::string_view value = first_string(status->bytes);
            if (value != "okay" && value != "ok") {
                return false;
            }
        }
    }
    return true;
}

std::uint32_t Tree::address_cells(NodeId id) const {
    return cell(id, "#address-cells").value_or(2);
}

std::uint32_t Tree::size_cells(NodeId id) const {
    return cell(id, "#size-cells").value_or(1);
}

bool Tree::is_overlay() const {
    for (NodeId c = nodes_[root()].first_child; c != kNoNode; c = nodes_[c].next_sibling) {
        if (child(c, "__overlay__") != kNoNode) {
            return true;
        }
    }
    return false;
}

bool Tree::is_bookkeeping(NodeId id) const {
    while (id != root() && nodes_[id].parent != root()) {
        id = nodes_[id].parent;
    }
    const std::string_view name = nodes_[id].name;
    return name == "__symbols__" || name == "__fixups__" || name == "__local_fixups__";
}

}  // namespace ringside::dt
