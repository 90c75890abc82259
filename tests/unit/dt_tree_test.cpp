// Foreign bytes: what is wrong gives one clear error, never a crash and never a tree.
#include <gmock/gmock.h>
#include <libfdt.h>

#include <cstring>

#include "dtcompare/load.h"
#include "dtcompare/resolve.h"
#include "tests/unit/dt_fixtures.h"

namespace ringside::dt {
namespace {

using ::testing::HasSubstr;

using Blob = std::vector<std::uint8_t>;

// Builds a flattened tree call by call.
class Writer {
  public:
    explicit Writer(std::size_t size = 1U << 20U) : blob_(size) {
        fdt_create(blob_.data(), static_cast<int>(size));
        fdt_finish_reservemap(blob_.data());
    }
    Writer& open(const char* name) {
        EXPECT_EQ(fdt_begin_node(blob_.data(), name), 0);
        return *this;
    }
    Writer& close() {
        EXPECT_EQ(fdt_end_node(blob_.data()), 0);
        return *this;
    }
    Writer& cells(const char* name, std::vector<std::uint32_t> values) {
        for (std::uint32_t& value : values) {
            value = cpu_to_fdt32(value);
        }
        return bytes(name, values.data(), values.size() * 4);
    }
    Writer& bytes(const char* name, const void* data, std::size_t size) {
        EXPECT_EQ(fdt_property(blob_.data(), name, data, static_cast<int>(size)), 0);
        return *this;
    }
    Writer& text(const char* name, const std::string& value) {
        return bytes(name, value.c_str(), value.size() + 1);
    }
    Blob finish() {
        EXPECT_EQ(fdt_finish(blob_.data()), 0);
        blob_.resize(fdt_totalsize(blob_.data()));
        return blob_;
    }

  private:
    Blob blob_;
};

void expect_refused(Blob blob, const std::string& what) {
    const auto loaded = load_bytes(std::move(blob), "hostile");
    ASSERT_FALSE(loaded) << what;
    EXPECT_EQ(loaded.error().exit_code(), ExitCode::kCannotRun);
    EXPECT_THAT(loaded.error().message(), HasSubstr(what));
    EXPECT_THAT(loaded.error().message(), HasSubstr("hostile"));
}

TEST(DtTree, RefusesEveryTruncation) {
    const Blob whole = fixture_blob("r5s-mainline.dts");
    for (std::size_t size = 0; size < whole.size(); size += 7) {
        const auto loaded =
            load_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, "cut");
        ASSERT_FALSE(loaded) << size;
        EXPECT_EQ(loaded.error().exit_code(), ExitCode::kCannotRun);
        EXPECT_FALSE(loaded.error().message().empty());
    }
}

TEST(DtTree, SurvivesEverySingleWrongByte) {
    const Blob whole = fixture_blob("r4s.dts");
    for (std::size_t i = 0; i < whole.size(); ++i) {
        Blob broken = whole;
        broken[i] ^= 0xffU;
        const auto loaded = load_bytes(broken, "flipped");
        if (loaded) {
            const auto result = compare(*loaded, fixture("r4s"));
            EXPECT_TRUE(result);
        }
    }
}

TEST(DtTree, RefusesNoTreeAtAll) {
    expect_refused({}, "empty");
    expect_refused(Blob(4096, 0), "magic");
    expect_refused({'/', 'd', 't'}, "shorter than a header");
    Blob text(100, 'x');
    expect_refused(text, "magic");
}

TEST(DtTree, RefusesATotalSizeBeyondTheFile) {
    Blob blob = fixture_blob("r4s.dts");
    fdt_set_totalsize(blob.data(), static_cast<std::uint32_t>(blob.size() + 1));
    expect_refused(blob, "cut short");
    fdt_set_totalsize(blob.data(), 0xffffffffU);
    expect_refused(blob, "cut short");
}

TEST(DtTree, RefusesAPropertyThatWrapsTheOffset) {
    // libfdt 1.6.1 goes round in circles on such lengths.
    const Blob whole = fixture_blob("r4s.dts");
    const std::size_t begin = fdt_off_dt_struct(whole.data());
    for (std::size_t i = begin; i + 12 < begin + fdt_size_dt_struct(whole.data()); i += 4) {
        if (read_cell({whole.data() + i, 4}, 0) != FDT_PROP) {
            continue;
        }
        for (const std::uint32_t length : {0xffffffffU, 0xfffffff4U, 0x80000000U, 0x7ffffff0U}) {
            Blob blob = whole;
            const std::uint32_t raw = cpu_to_fdt32(length);
            std::memcpy(blob.data() + i + 4, &raw, 4);
            EXPECT_FALSE(load_bytes(blob, "wraps"));
        }
    }
}

TEST(DtTree, ReadsVersion16WithoutBelievingItsMissingField) {
    // The field that version 17 added would ask for gigabytes.
    Blob blob = fixture_blob("r4s.dts");
    fdt_set_version(blob.data(), 16);
    fdt_set_size_dt_struct(blob.data(), 0xfffffff0U);
    const auto loaded = load_bytes(blob, "version 16");
    ASSERT_TRUE(loaded) << loaded.error().line();
    EXPECT_EQ(compare(*loaded, fixture("r4s"))->raw.total, 0U);
}

TEST(DtTree, RefusesOldFormatVersions) {
    // libfdt 1.6.1 crashes on the name of this root node.
    Writer writer;
    Blob blob = writer.open("").open("images").close().close().finish();
    fdt_set_version(blob.data(), 2);
    fdt_set_last_comp_version(blob.data(), 2);
    expect_refused(blob, "format version 2");
    EXPECT_FALSE(apply_overlay(blob, blob));
    EXPECT_FALSE(apply_overlay(fixture_blob("r4s.dts"), blob));
}

TEST(DtTree, RefusesNodesNestedAThousandDeep) {
    Writer writer;
    writer.open("");
    for (int i = 0; i < 1000; ++i) {
        writer.open("n");
    }
    for (int i = 0; i < 1000; ++i) {
        writer.close();
    }
    expect_refused(writer.close().finish(), "nested deeper than 64");
}

TEST(DtTree, RefusesMoreThanABoardHas) {
    Writer children;
    children.open("");
    for (int i = 0; i < 2049; ++i) {
        children.open(("n" + std::to_string(i)).c_str()).close();
    }
    expect_refused(children.close().finish(), "more than 2048 nodes in one node");

    Writer nodes(8U << 20U);
    nodes.open("");
    for (int i = 0; i < 100; ++i) {
        nodes.open(("n" + std::to_string(i)).c_str());
        for (int k = 0; k < 1000; ++k) {
            nodes.open("c").close();
        }
        nodes.close();
    }
    expect_refused(nodes.close().finish(), "more than 100000 nodes");

    Writer properties;
    properties.open("");
    for (int i = 0; i < 8193; ++i) {
        properties.bytes("p", nullptr, 0);
    }
    expect_refused(properties.close().finish(), "8192 in one node");
}

TEST(DtTree, TakesTheFirstOfTwoPropertiesWithOneName) {
    Writer writer;
    writer.open("").cells("a", {1}).cells("a", {2});
    const auto loaded = load_bytes(writer.close().finish(), "twice");
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->tree.cell(0, "a"), 1U);
    EXPECT_EQ(compare(*loaded, *loaded)->raw.total, 0U);
}

TEST(DtTree, RefusesAHugeBlob) {
    const std::vector<std::uint8_t> value(17U << 20U);
    Writer writer(18U << 20U);
    expect_refused(writer.open("").bytes("huge", value.data(), value.size()).close().finish(),
                   "the limit is 16777216");
}

TEST(DtTree, AcceptsAHugePropertyWithinTheLimit) {
    const std::vector<std::uint8_t> value(8U << 20U, 0xa5);
    Writer writer(9U << 20U);
    const auto loaded = load_bytes(
        writer.open("").bytes("clocks", value.data(), value.size()).close().finish(), "huge");
    ASSERT_TRUE(loaded);
    // All its cells look like phandles that belong to no node: one problem, not two million.
    EXPECT_EQ(check_references(loaded->tree).size(), 1U);
}

TEST(DtTree, RefusesTwoNodesWithOnePhandle) {
    Writer writer;
    writer.open("").open("a").cells("phandle", {7}).close();
    expect_refused(writer.open("b").cells("phandle", {7}).close().close().finish(), "phandle 7");
}

TEST(DtTree, RefusesPropertiesBehindChildren) {
    Writer writer;
    writer.open("").open("a").close();
    expect_refused(writer.cells("late", {1}).close().finish(), "after a child");
}

TEST(DtTree, TreatsUnterminatedStringsAsBytes) {
    Writer writer;
    writer.open("").bytes("compatible", "snps,dwmac", 10).bytes("model", "x", 1).open("ethernet@1");
    writer.bytes("compatible", "rockchip,rk3588-gmac", 20).bytes("phy-mode", "rgmii", 5);
    writer.bytes("status", "disabled", 8).bytes("interrupt-names", "macirq", 6);
    const Blob blob = writer.close().close().finish();
    const auto loaded = load_bytes(blob, "unterminated");
    ASSERT_TRUE(loaded);
    EXPECT_FALSE(loaded->tree.compatible_with(0, "snps,dwmac-4.20a"));
    EXPECT_EQ(loaded->tree.text(0, "model"), "");
    const auto result = compare(*loaded, *loaded);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->equal);
}

TEST(DtTree, EndsCyclicReferences) {
    Writer writer;
    writer.open("").cells("interrupt-parent", {1});
    writer.open("ethernet@1").cells("phandle", {1}).text("compatible", "snps,dwmac-4.20a");
    writer.cells("reg", {0, 1, 1}).cells("phy-handle", {1}).cells("snps,axi-config", {1});
    writer.cells("snps,mtl-tx-config", {1}).cells("snps,mtl-rx-config", {1});
    writer.cells("interrupt-parent", {1}).cells("#interrupt-cells", {1}).cells("interrupts", {5});
    writer.cells("clocks", {1}).cells("#clock-cells", {0}).cells("pinctrl-0", {1, 1});
    writer.cells("rockchip,pins", {1, 2, 3, 1}).text("phy-mode", "rgmii");
    const auto loaded = load_bytes(writer.close().close().finish(), "cyclic");
    ASSERT_TRUE(loaded);
    const auto result = compare(*loaded, fixture("r6s-mainline"));
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->equal);
}

TEST(DtTree, EndsPinGroupsThatNameThemselves) {
    Writer writer;
    writer.open("").open("group").cells("phandle", {1}).cells("pinctrl-0", {1, 2}).close();
    writer.open("other").cells("phandle", {2}).cells("pinctrl-0", {1}).close();
    writer.open("user").cells("pinctrl-0", {1}).close();
    const auto loaded = load_bytes(writer.close().finish(), "circle");
    ASSERT_TRUE(loaded);
    EXPECT_EQ(compare(*loaded, *loaded)->raw.total, 0U);
}

TEST(DtTree, ReportsReferencesThatGoNowhere) {
    Writer writer;
    writer.open("").open("a").cells("clocks", {99, 1}).close();
    writer.open("b").cells("phandle", {5}).cells("resets", {5, 1}).close();
    writer.open("c").cells("interrupts", {1, 2, 3}).cells("#clock-cells", {1});
    writer.cells("phandle", {6}).close();
    writer.open("d").cells("clocks", {6}).close();
    const auto loaded = load_bytes(writer.close().finish(), "dangling");
    ASSERT_TRUE(loaded);
    const auto problems = check_references(loaded->tree);
    ASSERT_EQ(problems.size(), 4U);
    EXPECT_EQ(problems[0].what, "phandle 99 belongs to no node");
    EXPECT_THAT(problems[1].what, HasSubstr("#reset-cells"));
    EXPECT_THAT(problems[2].what, HasSubstr("interrupt parent"));
    EXPECT_THAT(problems[3].what, HasSubstr("middle of a specifier"));
}

TEST(DtTree, RefusesSpecifiersOfAbsurdWidth) {
    Writer writer;
    writer.open("").open("p").cells("phandle", {1}).cells("#clock-cells", {0xffffffffU}).close();
    writer.open("c").cells("clocks", {1, 2, 3}).close();
    const auto loaded = load_bytes(writer.close().finish(), "wide");
    ASSERT_TRUE(loaded);
    ASSERT_EQ(check_references(loaded->tree).size(), 1U);
    EXPECT_THAT(check_references(loaded->tree)[0].what, HasSubstr("4294967295 cells"));
}

TEST(DtTree, InheritsCellsAndInterruptParent) {
    const LoadedTree loaded = fixture("pitfall-cells");
    const NodeId adc = loaded.tree.by_path("/bus/adc@fec10000");
    ASSERT_NE(adc, kNoNode);
    EXPECT_EQ(loaded.tree.path(interrupt_parent(loaded.tree, adc)),
              "/interrupt-controller@fe600000");
    EXPECT_EQ(loaded.tree.address_cells(loaded.tree.node(adc).parent), 1U);
}

}  // namespace
}  // namespace ringside::dt
