#include "dtcompare/numbers.h"

#include <algorithm>

namespace ringside::dt {

namespace {

// What a consumer's clock-name says about the line, by a part of the table's name.
struct NameEvidence {
    std::string_view clock_name;
    std::string_view part;
};
constexpr NameEvidence kEvidence[] = {
    {"ptp_ref", "PTP_REF"}, {"aclk_mac", "ACLK_GMAC"}, {"pclk_mac", "PCLK_GMAC"},
    {"aclk_mst", "_MSTR"},  {"aclk_slv", "_SLV"},      {"aclk_dbi", "_DBI"},
};

bool is_right(const NumberTable& table, std::uint32_t number, Numbering numbering,
              std::string_view part) {
    const NumberRow* row = number_row(table, number, numbering);
    return row != nullptr && row->name.find(part) != std::string_view::npos;
}

// Votes of one consumer: positive for the vendor's numbering.
int votes(const Tree& tree, NodeId node, const Property& names) {
    const Property* clocks = tree.find(node, "clocks");
    const auto words = read_strings(names.bytes);
    if (clocks == nullptr || !words || cell_count(clocks->bytes) < words->size() * 2) {
        return 0;
    }
    int sum = 0;
    for (std::size_t i = 0; i < words->size(); ++i) {
        const auto* evidence =
            std::find_if(std::begin(kEvidence), std::end(kEvidence),
                         [&](const NameEvidence& e) { return e.clock_name == (*words)[i]; });
        if (evidence == std::end(kEvidence)) {
            continue;
        }
        // Only providers with one cell each come here, so entries are two cells apart.
        const NodeId provider = tree.by_phandle(read_cell(clocks->bytes, i * 2));
        if (provider == kNoNode || tree.cell(provider, "#clock-cells") != 1U) {
            return sum;
        }
        const NumberTable* table = number_table(tree, provider, NumberKind::kClock);
        if (table == nullptr) {
            continue;
        }
        const std::uint32_t number = read_cell(clocks->bytes, i * 2 + 1);
        sum += is_right(*table, number, Numbering::kVendor, evidence->part) ? 1 : 0;
        sum -= is_right(*table, number, Numbering::kMainline, evidence->part) ? 1 : 0;
    }
    return sum;
}

}  // namespace

const NumberTable* number_table(const Tree& tree, NodeId provider, NumberKind kind) {
    const Property* compatible = tree.find(provider, "compatible");
    if (compatible == nullptr) {
        return nullptr;
    }
    const std::string_view first = first_string(compatible->bytes);
    for (const NumberTable& table : number_tables()) {
        if (table.kind == kind && table.provider == first) {
            return &table;
        }
    }
    return nullptr;
}

const NumberRow* number_row(const NumberTable& table, std::uint32_t number, Numbering numbering) {
    if (number == NumberRow::kNone) {
        return nullptr;
    }
    for (const NumberRow& row : table.rows) {
        const bool vendor = row.vendor == number;
        const bool mainline = row.mainline == number;
        const bool hit = numbering == Numbering::kVendor     ? vendor
                         : numbering == Numbering::kMainline ? mainline
                                                             : vendor && mainline;
        if (hit) {
            return &row;
        }
    }
    return nullptr;
}

Numbering guess_numbering(const Tree& tree) {
    int sum = 0;
    for (NodeId id = 0; id < tree.size(); ++id) {
        if (const Property* names = tree.find(id, "clock-names")) {
            sum += votes(tree, id, *names);
        }
    }
    return sum > 0 ? Numbering::kVendor : sum < 0 ? Numbering::kMainline : Numbering::kUnknown;
}

}  // namespace ringside::dt
