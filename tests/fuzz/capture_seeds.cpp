// Writes the seed corpus of capture_fuzz: capture_seeds FOLDER
// Generated, not committed: the seeds follow the format as it grows.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/capture/encoding.h"
#include "tests/unit/capture_samples.h"

int main(int argc, char** argv) {
    using namespace ringside;
    if (argc != 2) {
        std::fprintf(stderr, "usage: capture_seeds FOLDER\n");
        return 2;
    }
    const std::filesystem::path folder = argv[1];
    std::filesystem::create_directories(folder);
    int count = 0;
    const auto seed = [&](const std::string& bytes) {
        samples::spill(folder / ("seed-" + std::to_string(count++)), bytes);
    };

    const Run full = samples::run(1);
    const std::string whole = samples::capture_bytes({full, samples::run(10'000)});
    seed(whole);
    seed(samples::capture_bytes({Run{}}));
    seed(whole.substr(0, whole.size() * 2 / 3));
    seed(samples::file_header(1, 0));
    seed(samples::file_header(2, 0) + whole.substr(32));

    // The same chunks without compression: mutations of them reach the decoder.
    capture::RecordsBuffer records;
    for (const Window& window : full.windows) {
        records.add(window);
    }
    for (const Event& event : full.events) {
        records.add(event);
    }
    const std::string info = capture::encode(full.info);
    const std::string end = capture::encode(full.end);
    seed(samples::file_header(1, 3) + samples::plain_chunk(1, 0, info) +
         samples::plain_chunk(2, 1, records.payload()) + samples::plain_chunk(9, 2, "unknown") +
         samples::plain_chunk(3, 3, end));
    seed(std::string(1, '\1') + info);
    seed(std::string(1, '\2') + std::string(records.payload()));
    seed(std::string(1, '\3') + end);

    // One small window: short inputs mutate best.
    Window window;
    window.end_ns = 100'000'000;
    window.queues = {QueueWindow{}};
    window.queues[0].latency = {{3, 1}, {400, 2}};
    capture::RecordsBuffer small;
    small.add(window);
    seed(std::string(1, '\2') + std::string(small.payload()));
    std::printf("%d seeds in %s\n", count, folder.c_str());
    return 0;
}
