// Where trees come from: images, folders, source text, overlays.
#include <gmock/gmock.h>
#include <libfdt.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "dtcompare/image.h"
#include "dtcompare/load.h"
#include "tests/unit/dt_fixtures.h"

namespace ringside::dt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Blob = std::vector<std::uint8_t>;

class TempFolder {
  public:
    TempFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "ringside-dt.XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~TempFolder() { std::filesystem::remove_all(path_); }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
        return path_ / name;
    }
    std::filesystem::path write(const std::string& name, const Blob& bytes) const {
        std::ofstream(path_ / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
        return path_ / name;
    }

  private:
    std::filesystem::path path_;
};

void put32(Blob& image, std::size_t at, std::uint32_t value) {
    image.resize(std::max(image.size(), at + 4));
    for (unsigned i = 0; i < 4; ++i) {
        image[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
}

void put(Blob& image, std::size_t at, const Blob& bytes) {
    image.resize(std::max(image.size(), at + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), image.begin() + static_cast<std::ptrdiff_t>(at));
}

void put(Blob& image, std::size_t at, const char* text) {
    put(image, at, Blob(text, text + std::strlen(text)));
}

// A Rockchip resource image with a picture and a tree, as its format is described in U-Boot.
Blob resource_image(const Blob& tree) {
    Blob image(512 * 3);
    put(image, 0, "RSCE");
    image[8] = 1;   // header, blocks
    image[9] = 1;   // table at block
    image[10] = 1;  // blocks per entry
    put32(image, 12, 2);
    put(image, 512, "ENTR");
    put(image, 516, "logo.bmp");
    put32(image, 512 + 260, 3);
    put32(image, 512 + 264, 16);
    put(image, 1024, "ENTR");
    put(image, 1028, "rk-kernel.dtb");
    put32(image, 1024 + 260, 4);
    put32(image, 1024 + 264, static_cast<std::uint32_t>(tree.size()));
    put(image, 512 * 3, "BM picture bytes");
    put(image, 512 * 4, tree);
    image.resize((image.size() + 511) / 512 * 512);
    return image;
}

std::uint32_t pages(std::size_t bytes) {
    return static_cast<std::uint32_t>((bytes + 2047) / 2048 * 2048);
}

// Version 2 has the tree in a section of its own; Rockchip puts a resource image into "second".
Blob android_image(const Blob& second, const Blob& tree) {
    Blob image(2048);
    put(image, 0, "ANDROID!");
    put32(image, 8, 100);
    put32(image, 16, 50);
    put32(image, 24, static_cast<std::uint32_t>(second.size()));
    put32(image, 36, 2048);
    put32(image, 40, tree.empty() ? 0 : 2);
    put32(image, 1648, static_cast<std::uint32_t>(tree.size()));
    put(image, 4096 + 2048, second);
    put(image, 4096 + 2048 + pages(second.size()), tree);
    image.resize(image.size() + 2048);
    return image;
}

Blob fit_image(const Blob& tree, bool external) {
    Blob fit(tree.size() + 4096);
    const auto string = [&](const char* name, const char* value) {
        fdt_property(fit.data(), name, value, static_cast<int>(std::strlen(value)) + 1);
    };
    fdt_create(fit.data(), static_cast<int>(fit.size()));
    fdt_finish_reservemap(fit.data());
    fdt_begin_node(fit.data(), "");
    fdt_begin_node(fit.data(), "images");
    fdt_begin_node(fit.data(), "kernel");
    fdt_property(fit.data(), "data", "kernel", 6);
    fdt_end_node(fit.data());
    fdt_begin_node(fit.data(), "fdt");
    string("type", "flat_dt");
    if (external) {
        fdt_property_u32(fit.data(), "data-offset", 8);
        fdt_property_u32(fit.data(), "data-size", static_cast<std::uint32_t>(tree.size()));
    } else {
        fdt_property(fit.data(), "data", tree.data(), static_cast<int>(tree.size()));
    }
    fdt_end_node(fit.data());
    fdt_end_node(fit.data());
    fdt_begin_node(fit.data(), "configurations");
    string("default", "conf");
    fdt_begin_node(fit.data(), "conf");
    string("fdt", "fdt");
    fdt_end_node(fit.data());
    fdt_end_node(fit.data());
    fdt_end_node(fit.data());
    fdt_finish(fit.data());
    fit.resize((fdt_totalsize(fit.data()) + 3) / 4 * 4);
    if (external) {
        put(fit, fit.size() + 8, tree);
    }
    return fit;
}

void expect_same_tree(Blob image, SourceKind kind, const std::string& part) {
    const auto loaded = load_bytes(std::move(image), "image");
    ASSERT_TRUE(loaded) << loaded.error().line();
    EXPECT_EQ(loaded->kind, kind);
    EXPECT_EQ(loaded->part, part);
    const auto result = compare(*loaded, fixture("r6s-stock"));
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->equal);
    EXPECT_EQ(result->raw.total, 0U);
}

TEST(DtImage, FindsTheTreeInAResourceImage) {
    expect_same_tree(resource_image(fixture_blob("r6s-stock.dts")), SourceKind::kResourceImage,
                     "rk-kernel.dtb");
}

TEST(DtImage, FindsTheTreeInAnAndroidImage) {
    const Blob tree = fixture_blob("r6s-stock.dts");
    expect_same_tree(android_image({}, tree), SourceKind::kAndroidBoot, "dtb");
    expect_same_tree(android_image(resource_image(tree), {}), SourceKind::kAndroidBoot,
                     "second: rk-kernel.dtb");
}

TEST(DtImage, FindsTheTreeInAFit) {
    const Blob tree = fixture_blob("r6s-stock.dts");
    expect_same_tree(fit_image(tree, false), SourceKind::kFit, "fdt");
    expect_same_tree(fit_image(tree, true), SourceKind::kFit, "fdt");
}

TEST(DtImage, RefusesImagesThatLie) {
    const Blob tree = fixture_blob("r4s.dts");
    Blob outside = resource_image(tree);
    put32(outside, 1024 + 260, 0xffffffffU);
    Blob no_entries = resource_image(tree);
    put32(no_entries, 12, 0);
    Blob many = resource_image(tree);
    put32(many, 12, 0xffffffffU);
    Blob no_tag = resource_image(tree);
    put(no_tag, 512, "ENT_");
    Blob page = android_image({}, tree);
    put32(page, 36, 0);
    Blob section = android_image({}, tree);
    put32(section, 8, 0xfffffff0U);
    Blob version3 = android_image({}, tree);
    put32(version3, 40, 3);
    Blob fit = fit_image(tree, true);
    fit.resize(fit.size() - 100);
    for (const Blob& image : {outside, no_entries, many, no_tag, page, section, version3, fit}) {
        const auto loaded = load_bytes(image, "liar");
        ASSERT_FALSE(loaded);
        EXPECT_EQ(loaded.error().exit_code(), ExitCode::kCannotRun);
        EXPECT_FALSE(loaded.error().hint().empty());
    }
}

TEST(DtImage, RefusesEveryTruncationOfAnImage) {
    const Blob image = android_image(resource_image(fixture_blob("r4s.dts")), {});
    for (std::size_t size = 0; size + 4096 < image.size(); size += 13) {
        EXPECT_FALSE(
            load_bytes({image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)}, "cut"));
    }
}

// Writes a tree as the kernel shows it below /proc/device-tree.
void write_folder(const Tree& tree, NodeId node, const std::filesystem::path& folder) {
    std::filesystem::create_directory(folder);
    for (const Property& property : tree.properties(node)) {
        std::ofstream(folder / std::string(property.name), std::ios::binary)
            .write(reinterpret_cast<const char*>(property.bytes.data()),
                   static_cast<std::streamsize>(property.bytes.size()));
    }
    const std::string name(base_name(tree.node(node).name));
    std::ofstream(folder / "name") << name << '\0';
    for (NodeId c = tree.node(node).first_child; c != kNoNode; c = tree.node(c).next_sibling) {
        write_folder(tree, c, folder / std::string(tree.node(c).name));
    }
}

TEST(DtFolder, IsEqualToItsBlob) {
    const TempFolder temp;
    const LoadedTree blob = fixture("r6s-stock");
    write_folder(blob.tree, blob.tree.root(), temp / "base");
    const auto loaded = load_tree(temp / "base");
    ASSERT_TRUE(loaded) << loaded.error().line();
    EXPECT_EQ(loaded->kind, SourceKind::kLiveFolder);
    Options options;
    options.all = true;
    const auto result = compare(*loaded, blob, options);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->equal);
    EXPECT_EQ(result->raw.total, 0U);
}

TEST(DtFolder, ShowsWhatTheBootLoaderAdded) {
    const TempFolder temp;
    const LoadedTree blob = fixture("r6s-mainline");
    write_folder(blob.tree, blob.tree.root(), temp / "base");
    std::filesystem::create_directory(temp / "base/memory@200000");
    std::ofstream(temp / "base/memory@200000/device_type") << "memory" << '\0';
    std::ofstream(temp / "base/ethernet@fe1c0000/local-mac-address") << "\x02\x03\x04\x05\x06\x07";
    const auto loaded = load_tree(temp / "base");
    ASSERT_TRUE(loaded);
    const auto result = compare(*loaded, blob);
    ASSERT_TRUE(result);
    EXPECT_THAT(properties(port(*result), FactClass::kTransmit), IsEmpty());
    EXPECT_THAT(properties(port(*result), FactClass::kNeutral), ElementsAre("local-mac-address"));
}

TEST(DtFolder, RefusesOtherFoldersLinksAndDepth) {
    const TempFolder temp;
    std::filesystem::create_directory(temp / "empty");
    const auto empty = load_tree(temp / "empty");
    ASSERT_FALSE(empty);
    EXPECT_THAT(empty.error().message(), HasSubstr("not the root of a device tree"));

    std::filesystem::create_directory(temp / "loop");
    std::ofstream(temp / "loop/compatible") << "x" << '\0';
    std::filesystem::create_directory_symlink(temp / "loop", temp / "loop/again");
    EXPECT_TRUE(load_tree(temp / "loop"));  // the link is not followed

    std::filesystem::path deep = temp / "deep";
    std::filesystem::create_directory(deep);
    std::ofstream(deep / "compatible") << "x" << '\0';
    for (int i = 0; i < 70; ++i) {
        deep /= "n";
        std::filesystem::create_directory(deep);
    }
    const auto nested = load_tree(temp / "deep");
    ASSERT_FALSE(nested);
    EXPECT_EQ(nested.error().exit_code(), ExitCode::kCannotRun);
}

TEST(DtLoad, SaysWhatIsWrongWithAFile) {
    const TempFolder temp;
    const auto missing = load_tree(temp / "missing.dtb");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
    EXPECT_EQ(missing.error().exit_code(), ExitCode::kCannotRun);

    const auto device = load_tree("/dev/zero");
    ASSERT_FALSE(device);
    EXPECT_THAT(device.error().message(), HasSubstr("neither a file nor a folder"));

    ::mkfifo((temp / "pipe").c_str(), 0600);
    EXPECT_FALSE(load_tree(temp / "pipe"));  // nobody writes to it: no hang
}

TEST(DtLoad, ReportsTheFirstMessageOfDtc) {
    const TempFolder temp;
    std::ofstream(temp / "bad.dts") << "/dts-v1/;\n/ { nonsense\n";
    const auto bad = load_tree(temp / "bad.dts");
    ASSERT_FALSE(bad);
    EXPECT_THAT(bad.error().message(), HasSubstr("syntax error"));
    EXPECT_EQ(bad.error().exit_code(), ExitCode::kCannotRun);

    std::ofstream(temp / "-o.dts") << "/dts-v1/;\n/ { compatible = \"x\"; };\n";
    const auto named = load_tree(temp / "-o.dts");
    EXPECT_TRUE(named) << named.error().line();
}

TEST(DtOverlay, AppliesBeforeTheComparison) {
    const TempFolder temp;
    const auto base = temp.write("base.dtb", fixture_blob("r6s-mainline-symbols.dts"));
    const auto changed = load_tree(base, {fixture_path("overlay-label.dts")});
    ASSERT_TRUE(changed) << changed.error().line();
    const auto result = compare(fixture("r6s-mainline-symbols"), *changed);
    ASSERT_TRUE(result);
    EXPECT_THAT(properties(port(*result), FactClass::kTransmit), ElementsAre("max-speed"));

    const auto by_path = load_tree(base, {fixture_path("overlay-queues.dts")});
    ASSERT_TRUE(by_path) << by_path.error().line();
    EXPECT_THAT(properties(port(*compare(fixture("r6s-mainline"), *by_path)), FactClass::kTransmit),
                ElementsAre("snps,tx-queues-to-use"));
}

TEST(DtOverlay, SaysWhyItDoesNotApply) {
    const TempFolder temp;
    const auto base = temp.write("base.dtb", fixture_blob("r6s-mainline.dts"));
    const auto no_symbols = load_tree(base, {fixture_path("overlay-label.dts")});
    ASSERT_FALSE(no_symbols);
    EXPECT_EQ(no_symbols.error().exit_code(), ExitCode::kCannotRun);
    EXPECT_THAT(no_symbols.error().message(), HasSubstr("does not apply"));
    EXPECT_THAT(no_symbols.error().hint(), HasSubstr("-@"));

    const auto alone = load_tree(fixture_path("overlay-label.dts"));
    ASSERT_FALSE(alone);
    EXPECT_THAT(alone.error().hint(), HasSubstr("--overlay-a"));

    const auto garbage = load_tree(base, {temp.write("garbage.dtbo", Blob(64, 7))});
    ASSERT_FALSE(garbage);
    EXPECT_EQ(garbage.error().exit_code(), ExitCode::kCannotRun);
}

TEST(DtDriverGuess, ReadsTheVersionInThePath) {
    const TempFolder temp;
    std::filesystem::create_directory(temp / "linux-image-6.12.117-arm64");
    const auto path = temp / "linux-image-6.12.117-arm64/board.dtb";
    temp.write("linux-image-6.12.117-arm64/board.dtb", fixture_blob("r6s-mainline.dts"));
    const auto loaded = load_tree(path);
    ASSERT_TRUE(loaded);
    const DriverChoice guess = guess_driver(*loaded, Numbering::kMainline);
    EXPECT_EQ(guess.driver, Driver::kMainline612);
    EXPECT_TRUE(guess.guessed);
}

}  // namespace
}  // namespace ringside::dt
