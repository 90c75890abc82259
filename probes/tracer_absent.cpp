// The tracer of a build without clang or bpftool: every other command works.
#include "probes/tracer.h"

namespace ringside {

struct Tracer::Impl {};

namespace {

Error absent() {
    return Error(ErrorCode::kUnsupported,
                 "this build has no live tracing: " RINGSIDE_LIVE_WHY " when it was built")
        .hint("install clang, llvm and bpftool and build again");
}

}  // namespace

bool Tracer::built_in() {
    return false;
}
Tracer::Tracer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

Result<Tracer> Tracer::start(const TracerOptions& /*options*/) {
    return fail(absent());
}
Result<RingLayout> Tracer::try_ring(const std::string& /*driver*/) {
    return fail(absent());
}
Result<std::vector<Hook>> Tracer::try_hooks(const std::string& /*driver*/) {
    return fail(absent());
}

// No Tracer can exist in this build, so the rest is never reached.
const std::vector<Hook>& Tracer::hooks() const {
    static const std::vector<Hook> none;
    return none;
}
const std::string& Tracer::tier() const {
    static const std::string none;
    return none;
}
const std::string& Tracer::tier_why() const {
    return tier();
}
std::uint64_t Tracer::start_ns() const {
    return 0;
}
void Tracer::watch_irqs(std::span<const unsigned> /*irqs*/) {}
void Tracer::retarget(unsigned /*ifindex*/) {}
RawWindow Tracer::end_window(bool /*look*/) {
    return {};
}
TracerEnd Tracer::finish() {
    return {};
}

}  // namespace ringside
