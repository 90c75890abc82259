#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "probes/host/fact_list.h"
#include "probes/host/facts.h"

namespace ringside {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Sysroot sysroot(const std::string& name) {
    return Sysroot(std::string(RINGSIDE_TEST_DATA) + "/sysroot/" + name);
}

Interface board_interface() {
    Interface interface;
    interface.name = "eth0";
    interface.ifindex = 2;
    interface.num_tx_queues = 2;
    interface.carrier = true;
    interface.up = true;
    interface.mtu = 1500;
    interface.tx_queue_len = 1000;
    interface.qdisc = "mq";
    return interface;
}

tl::unexpected<Error> unsupported() {
    return fail(Error::from_errno(EOPNOTSUPP, "eth0: cannot read it"));
}

DeviceFigures board_figures() {
    return {DriverInfo{"st_gmac", "6.18.38", "", "fe1c0000.ethernet"},
            RingSizes{512, 1024, 512, 1024},
            Coalesce{200, 0, 5000, 25, false, false},
            Channels{2, 2, 0, 2, 2, 0},
            LinkSettings{1000, Duplex::kFull, true},
            Pause{true, true, false},
            unsupported(),
            std::vector<Feature>{{"tx-tcp-segmentation", true, false}, {"rx-gro", true, false}},
            std::map<std::string, unsigned>{{"fq_codel", 2}},
            "aarch64"};
}

DeviceFigures no_figures() {
    return {unsupported(), unsupported(), unsupported(), unsupported(), unsupported(),
            unsupported(), unsupported(), unsupported(), unsupported(), ""};
}

std::map<std::string, Fact> by_name(const std::vector<Fact>& facts) {
    std::map<std::string, Fact> map;
    for (const Fact& fact : facts) {
        EXPECT_TRUE(map.emplace(fact.name, fact).second) << "twice: " << fact.name;
        const bool absent = std::holds_alternative<std::monostate>(fact.value);
        EXPECT_EQ(absent, !fact.absent.empty()) << fact.name;
        EXPECT_FALSE(fact.source.empty()) << fact.name;
    }
    return map;
}

// "absent: <reason>", so that one comparison covers both.
std::string shown(const std::map<std::string, Fact>& facts, const std::string& name) {
    const auto found = facts.find(name);
    if (found == facts.end()) {
        return "not in the list";
    }
    const Fact& fact = found->second;
    if (const auto* number = std::get_if<std::int64_t>(&fact.value)) {
        return std::to_string(*number);
    }
    const auto* text = std::get_if<std::string>(&fact.value);
    return text != nullptr ? *text : "absent: " + fact.absent;
}

TEST(Facts, DescribeABoard) {
    const auto facts = by_name(facts_of(board_interface(), board_figures(), sysroot("rk3588")));
    const std::pair<const char*, const char*> expected[] = {
        {"kernel.release", "6.18.38-current-rockchip64"},
        {"kernel.arch", "aarch64"},
        {"machine.model", "FriendlyElec NanoPi R6S"},
        {"host.cpus", "8"},
        {"host.cpu_list", "0-7"},
        {"cpu.0.model", "Cortex-A55"},
        {"cpu.7.model", "Cortex-A76"},
        {"cpufreq.policies", "3"},
        {"cpufreq.4.cpus", "4-5"},
        {"cpufreq.6.governor", "performance"},
        {"cpufreq.0.cur_khz", "1800000"},
        {"driver.name", "st_gmac"},
        {"driver.firmware", "absent: the driver does not say"},
        {"driver.bus", "fe1c0000.ethernet"},
        {"driver.device", "rk_gmac-dwmac"},
        {"driver.module", "stmmac"},
        {"driver.param.eee_timer", "1000"},
        {"driver.param.macaddr", "absent: not recorded: it looks like an address"},
        {"link.speed_mbps", "1000"},
        {"link.duplex", "full"},
        {"link.carrier", "on"},
        {"mtu", "1500"},
        {"tx_queue_len", "1000"},
        {"qdisc.kind", "mq"},
        {"qdisc.leaves", "fq_codel x2"},
        {"queues.tx.allocated", "2"},
        {"queues.tx.real", "2"},
        {"queues.tx.q0.timeouts", "2"},
        {"bql.q0.limit", "96896"},
        {"bql.q1.limit", "3028"},
        {"bql.q1.limit_max", "1879048192"},
        {"bql.q0.hold_time", "1000"},
        {"ring.tx.size", "512"},
        {"ring.tx.max", "1024"},
        {"coalesce.tx_usecs", "5000"},
        {"coalesce.tx_frames", "25"},
        {"pause.rx", "on"},
        {"pause.tx", "off"},
        {"eee.enabled", "absent: the driver or the kernel does not support it"},
        {"offload.tcp-segmentation-offload", "on"},
        {"offload.scatter-gather", "absent: this kernel has no such feature"},
        {"irq.count", "2"},
        {"irq.0.number", "31"},
        {"irq.0.name", "eth0"},
        {"irq.0.counts", "none"},
        {"irq.1.number", "32"},
        {"irq.1.counts", "cpu0=4812345"},
        {"irq.1.total", "4812345"},
        {"irq.1.affinity", "0-7"},
        {"irq.1.effective_affinity", "0"},
    };
    for (const auto& [name, value] : expected) {
        EXPECT_EQ(shown(facts, name), value) << name;
    }
}

TEST(Facts, DescribeAVirtualMachine) {
    Interface interface = board_interface();
    interface.name = "ens1";
    const auto facts = by_name(facts_of(interface, board_figures(), sysroot("virtio_vm")));
    EXPECT_EQ(shown(facts, "machine.model"), "QEMU Standard PC (Q35 + ICH9, 2009)");
    EXPECT_EQ(shown(facts, "host.cpu_list"), "0-1,3");
    EXPECT_EQ(shown(facts, "cpu.3.model"), "AMD EPYC Processor");
    EXPECT_THAT(shown(facts, "cpufreq.policies"), HasSubstr("absent"));
    EXPECT_EQ(shown(facts, "driver.param.napi_tx"), "Y");
    EXPECT_EQ(shown(facts, "irq.count"), "3");
    EXPECT_EQ(shown(facts, "irq.2.counts"), "cpu0=814 cpu3=5");
    EXPECT_EQ(shown(facts, "irq.0.affinity"), "absent: no such file");
    EXPECT_EQ(shown(facts, "queues.tx.real"), "20");
    EXPECT_EQ(shown(facts, "queues.tx.q15.timeouts"), "0");
    EXPECT_EQ(shown(facts, "queues.tx.q16.timeouts"), "not in the list");
    EXPECT_EQ(shown(facts, "queues.tx.omitted"), "4");
    EXPECT_EQ(shown(facts, "bql.q0.limit"), "absent: no such file");
}

TEST(Facts, SurviveHostileFiles) {
    Interface interface = board_interface();
    const auto facts = by_name(facts_of(interface, no_figures(), sysroot("hostile")));
    EXPECT_EQ(shown(facts, "kernel.release"), "absent: the file is empty");
    EXPECT_THAT(shown(facts, "kernel.version"),
                AllOf(HasSubstr("?[31m#1?? AAA"), Not(HasSubstr("\x1b"))));
    EXPECT_EQ(shown(facts, "kernel.version").size(), 256u);
    EXPECT_THAT(shown(facts, "host.cpus"), HasSubstr("absent"));
    EXPECT_EQ(shown(facts, "bql.q0.limit"), "absent: the source does not hold what it should");
    EXPECT_THAT(shown(facts, "bql.q0.limit_max"), HasSubstr("absent"));
    EXPECT_THAT(shown(facts, "queues.tx.q0.timeouts"), HasSubstr("absent"));
    EXPECT_EQ(shown(facts, "irq.count"), "1");
    EXPECT_THAT(shown(facts, "irq.0.affinity"), HasSubstr("absent"));
}

TEST(Facts, AreAllThereWithoutAnyFile) {
    const auto none = by_name(facts_of(board_interface(), no_figures(), sysroot("no-such-case")));
    for (const char* name :
         {"kernel.release", "machine.model", "host.cpus", "cpufreq.policies", "driver.name",
          "driver.module", "queues.tx.real", "bql.q0.limit", "ring.tx.size", "coalesce.tx_usecs",
          "offload.generic-receive-offload", "irq.count", "qdisc.leaves", "pause.tx", "eee.active",
          "link.speed_mbps"}) {
        EXPECT_THAT(shown(none, name), HasSubstr("absent: ")) << name;
    }
}

TEST(Facts, TakeNothingFromAnotherNamespacesSysfs) {
    Interface interface = board_interface();
    interface.ifindex = 77;
    const auto facts = by_name(facts_of(interface, board_figures(), sysroot("rk3588")));
    for (const char* name : {"queues.tx.real", "bql.q0.limit", "driver.module", "irq.count"}) {
        EXPECT_THAT(shown(facts, name), HasSubstr("another device of the same name")) << name;
    }
    EXPECT_EQ(shown(facts, "ring.tx.size"), "512");
}

TEST(Facts, HoldNoAddressesOrSerials) {
    for (const char* root : {"rk3588", "virtio_vm"}) {
        Interface interface = board_interface();
        interface.name = std::string(root) == "rk3588" ? "eth0" : "ens1";
        for (const Fact& fact : facts_of(interface, board_figures(), sysroot(root))) {
            const auto* text = std::get_if<std::string>(&fact.value);
            if (text == nullptr) {
                continue;
            }
            EXPECT_FALSE(std::regex_search(*text, std::regex("([0-9a-f]{2}:){5}"))) << fact.name;
            EXPECT_THAT(*text, Not(HasSubstr("0123456789abcdef")));
            EXPECT_THAT(*text, Not(HasSubstr("DO-NOT-READ")));
        }
    }
}

// "irq.12.name" -> "irq.N.name", "driver.param.x" -> "driver.param.NAME".
std::string documented_form(const std::string& name) {
    if (name.starts_with("driver.param.") && name != "driver.param.omitted") {
        return "driver.param.NAME";
    }
    return std::regex_replace(name, std::regex("\\.(q?)[0-9]+\\."), ".$1N.");
}

// All names in back quotes; ".rx" goes with the name before it, and "`rx-hashing`" is an offload.
std::set<std::string> documented_names() {
    std::ifstream file(std::string(RINGSIDE_DOCS) + "/host-facts.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::string all = text.str();
    std::set<std::string> names;
    std::string stem;
    const std::regex quoted("`([^`]+)`");
    for (std::sregex_iterator it(all.begin(), all.end(), quoted), end; it != end; ++it) {
        const std::string name = (*it)[1];
        if (name.starts_with('.')) {
            names.insert(stem + name);
            continue;
        }
        stem = name.substr(0, name.rfind('.'));
        names.insert(name);
        names.insert("offload." + name);
    }
    return names;
}

TEST(Facts, AreAllDocumented) {
    const std::set<std::string> documented = documented_names();
    ASSERT_GT(documented.size(), 50u);
    for (const Fact& fact : facts_of(board_interface(), board_figures(), sysroot("rk3588"))) {
        EXPECT_EQ(documented.count(documented_form(fact.name)), 1u)
            << fact.name << " is not in docs/host-facts.md";
    }
}

TEST(CleanText, KeepsPrintableAscii) {
    EXPECT_EQ(clean_text("Intel(R) \xc2\xae\n"), "Intel(R) ???");
    EXPECT_EQ(clean_text(std::string(1000, 'x')).size(), 256u);
}

}  // namespace
}  // namespace ringside
