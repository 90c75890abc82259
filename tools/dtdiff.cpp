// ringside dtdiff A B: what two device trees tell an Ethernet controller.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dtcompare/compare.h"
#include "tools/command.h"
#include "tools/render/dtdiff_json.h"
#include "tools/render/dtdiff_knowledge.h"
#include "tools/render/dtdiff_text.h"
#include "tools/render/text.h"

namespace ringside {

namespace {

struct DtdiffOptions {
    std::string a;
    std::string b;
    std::vector<std::filesystem::path> overlays_a;
    std::vector<std::filesystem::path> overlays_b;
    std::string driver_a;
    std::string driver_b;
    std::string node;
    bool all = false;
    bool list_knowledge = false;
    std::string explain;
};

Result<ExitCode> print(Result<std::string> text, ExitCode code = ExitCode::kOk) {
    if (!text) {
        return fail(std::move(text).error());
    }
    Status printed = print_result(*text);
    if (!printed) {
        return fail(std::move(printed).error());
    }
    return code;
}

Result<ExitCode> show_knowledge(const DtdiffOptions& options, const GlobalOptions& global) {
    if (global.json) {
        return print(knowledge_json(options.explain));
    }
    const TextStyle style = text_style(global);
    return print(options.explain.empty() ? Result<std::string>(knowledge_list(style))
                                         : knowledge_of(options.explain, style));
}

Status choose_driver(const std::string& text, const char* option,
                     std::optional<dt::DriverChoice>& choice) {
    if (text.empty()) {
        return {};
    }
    Result<dt::DriverChoice> parsed = dt::parse_driver(text);
    if (!parsed) {
        return fail(std::move(parsed).error().context(option));
    }
    choice = std::move(*parsed);
    choice->how = option;
    return {};
}

Result<dt::Options> compare_options(const DtdiffOptions& options) {
    dt::Options result;
    result.node = options.node;
    result.all = options.all;
    Status a = choose_driver(options.driver_a, "--driver-a", result.driver_a);
    if (!a) {
        return fail(std::move(a).error());
    }
    Status b = choose_driver(options.driver_b, "--driver-b", result.driver_b);
    if (!b) {
        return fail(std::move(b).error());
    }
    return result;
}

Result<ExitCode> run(const DtdiffOptions& options, const GlobalOptions& global) {
    if (options.list_knowledge || !options.explain.empty()) {
        return show_knowledge(options, global);
    }
    if (options.a.empty() || options.b.empty()) {
        return fail(
            Error(ErrorCode::kUsage, "two device trees are needed")
                .hint("ringside dtdiff A B; A and B are .dtb or .dts files, /proc/device-tree "
                      "or images that hold a tree"));
    }
    Result<dt::Options> how = compare_options(options);
    if (!how) {
        return fail(std::move(how).error());
    }
    Result<dt::LoadedTree> a = dt::load_tree(options.a, options.overlays_a);
    if (!a) {
        return fail(std::move(a).error());
    }
    Result<dt::LoadedTree> b = dt::load_tree(options.b, options.overlays_b);
    if (!b) {
        return fail(std::move(b).error());
    }
    Result<dt::Comparison> comparison = dt::compare(*a, *b, *how);
    if (!comparison) {
        return fail(std::move(comparison).error());
    }
    const ExitCode code = comparison->equal ? ExitCode::kOk : ExitCode::kFindings;
    if (global.json) {
        return print(dtdiff_json(*comparison), code);
    }
    return print(dtdiff_text(*comparison, {.details = global.verbose > 0}, text_style(global)),
                 code);
}

}  // namespace

void register_dtdiff(CLI::App& app, CommandLine& line) {
    auto options = std::make_shared<DtdiffOptions>();
    CLI::App* command =
        app.add_subcommand("dtdiff", "compare what two device trees tell an Ethernet controller");
    command->footer(
        "A and B: .dtb, .dts (through dtc), /sys/firmware/fdt, /proc/device-tree or a folder like "
        "it,\n"
        "Rockchip resource image, FIT or Android boot image.\n"
        "Exit code: 0 equal in effect, 1 differences, 2 wrong usage, 3 could not read.");
    command->add_option("A", options->a, "device tree");
    command->add_option("B", options->b, "device tree to compare with");
    command->add_option("--overlay-a", options->overlays_a, "overlay to apply to A (repeatable)")
        ->allow_extra_args(false);
    command->add_option("--overlay-b", options->overlays_b, "overlay to apply to B (repeatable)")
        ->allow_extra_args(false);
    command->add_option("--driver-a", options->driver_a,
                        "kernel that reads A: vendor-6.1, mainline-6.18, ...");
    command->add_option("--driver-b", options->driver_b, "kernel that reads B");
    command->add_option("--node", options->node,
                        "this node (path or label) instead of the controllers");
    command->add_flag("--all", options->all, "list the differences outside of the controllers too");
    command->add_flag("--list-knowledge", options->list_knowledge,
                      "list the properties and rules that are known");
    command->add_option("--explain", options->explain,
                        "all that is known about a property or rule");
    command->callback(
        [options, &line] { line.run = [options, &line] { return run(*options, line.global); }; });
}

}  // namespace ringside
