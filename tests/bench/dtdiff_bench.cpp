// dtdiff against dtc + dtc + diff on the same two trees, process start included, in one run; and
// the library calls by themselves.
//
//   dtdiff_bench A.dtb B.dtb RINGSIDE-BINARY [ROUNDS]
//
// Rounds alternate between the two, so that both see the same machine; medians and the median of
// the paired ratios are printed. Exit code 1 when a goal is missed: at most a quarter of the
// pipeline, and less than 2 ms for comparing two loaded trees.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "dtcompare/compare.h"

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;
namespace dt = ringside::dt;

constexpr double kGoalRatio = 0.25;
constexpr double kGoalCompareUs = 2000;

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "dtdiff_bench: %s\n", why.c_str());
    std::exit(3);
}

// Starts a program with its output in `output` (or nowhere) and returns its process id.
pid_t start(std::vector<std::string> argv, const fs::path& output) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    std::vector<char*> raw;
    for (std::string& word : argv) {
        raw.push_back(word.data());
    }
    raw.push_back(nullptr);
    pid_t pid = 0;
    if (::posix_spawnp(&pid, raw[0], &actions, nullptr, raw.data(), environ) != 0) {
        stop("cannot start " + argv[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

void finish(pid_t pid, int highest_exit) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > highest_exit) {
        stop("a program of the comparison failed");
    }
}

double since_us(Clock::time_point start_time) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start_time).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

struct Files {
    fs::path a;
    fs::path b;
    fs::path ringside;
    fs::path scratch;
};

enum class Order { kOneAfterAnother, kBothAtOnce };

// The two dtc one after another, as commands typed in a row, or at once on two CPUs, as a shell
// with two process substitutions would run them.
double pipeline_us(const Files& files, Order order) {
    const auto begin = Clock::now();
    const fs::path text_a = files.scratch / "a.dts";
    const fs::path text_b = files.scratch / "b.dts";
    const pid_t a = start({"dtc", "-q", "-s", "-I", "dtb", "-O", "dts", files.a}, text_a);
    if (order == Order::kOneAfterAnother) {
        finish(a, 0);
    }
    const pid_t b = start({"dtc", "-q", "-s", "-I", "dtb", "-O", "dts", files.b}, text_b);
    if (order == Order::kBothAtOnce) {
        finish(a, 0);
    }
    finish(b, 0);
    finish(start({"diff", text_a, text_b}, files.scratch / "diff"), 1);
    return since_us(begin);
}

double ringside_us(const Files& files) {
    const auto begin = Clock::now();
    finish(start({files.ringside, "dtdiff", files.a, files.b}, files.scratch / "dtdiff"), 1);
    return since_us(begin);
}

double load_us(const Files& files) {
    const auto begin = Clock::now();
    const auto a = dt::load_tree(files.a);
    const auto b = dt::load_tree(files.b);
    if (!a || !b) {
        stop("a tree does not load");
    }
    return since_us(begin);
}

bool measure_library(const Files& files, int rounds) {
    const auto a = dt::load_tree(files.a);
    const auto b = dt::load_tree(files.b);
    if (!a || !b) {
        stop("a tree does not load");
    }
    std::vector<double> loads;
    std::vector<double> compares;
    for (int i = 0; i < rounds * 5; ++i) {
        loads.push_back(load_us(files));
        const auto begin = Clock::now();
        const auto result = dt::compare(*a, *b);
        compares.push_back(since_us(begin));
        if (!result) {
            stop("the comparison fails");
        }
    }
    const double compare_us = median(compares);
    std::printf("library: load both %.0f us, compare %.0f us (goal: less than %.0f us)\n",
                median(loads), compare_us, kGoalCompareUs);
    return compare_us < kGoalCompareUs;
}

struct Paired {
    std::vector<double> pipelines;
    std::vector<double> ratios;
};

double report(const char* how, const Paired& paired) {
    const double ratio = median(paired.ratios);
    std::printf("dtc, dtc, diff %s %.2f ms: ratio %.3f (median of pairs, %.3f to %.3f)\n", how,
                median(paired.pipelines) / 1000, ratio, *std::ranges::min_element(paired.ratios),
                *std::ranges::max_element(paired.ratios));
    return ratio;
}

bool measure_processes(const Files& files, int rounds) {
    Paired in_a_row;
    Paired at_once;
    std::vector<double> own;
    pipeline_us(files, Order::kBothAtOnce);  // both once, so that neither pays for cold caches
    ringside_us(files);
    for (int i = 0; i < rounds; ++i) {
        in_a_row.pipelines.push_back(pipeline_us(files, Order::kOneAfterAnother));
        own.push_back(ringside_us(files));
        at_once.pipelines.push_back(pipeline_us(files, Order::kBothAtOnce));
        in_a_row.ratios.push_back(own.back() / in_a_row.pipelines.back());
        at_once.ratios.push_back(own.back() / at_once.pipelines.back());
    }
    std::printf(
        "ringside dtdiff %.2f ms (medians of %d rounds; goal: at most %.2f of dtc + dtc + "
        "diff)\n",
        median(own) / 1000, rounds, kGoalRatio);
    const double ratio = report("one after another", in_a_row);
    report("with both dtc at once", at_once);
    return ratio <= kGoalRatio;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4 || argc > 5) {
        std::fprintf(stderr, "usage: dtdiff_bench A.dtb B.dtb RINGSIDE-BINARY [ROUNDS]\n");
        return 2;
    }
    const int rounds = argc == 5 ? std::max(std::atoi(argv[4]), 3) : 41;
    std::string scratch = (fs::temp_directory_path() / "dtdiff-bench.XXXXXX").string();
    if (::mkdtemp(scratch.data()) == nullptr) {
        stop("cannot make a scratch folder");
    }
    const Files files{argv[1], argv[2], fs::absolute(argv[3]), scratch};
    const bool processes = measure_processes(files, rounds);
    const bool library = measure_library(files, rounds);
    fs::remove_all(scratch);
    return processes && library ? 0 : 1;
}
