#include <gmock/gmock.h>

#include "probes/host/cpus.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Sysroot sysroot(const std::string& name) {
    return Sysroot(std::string(RINGSIDE_TEST_DATA) + "/sysroot/" + name);
}

TEST(CpuList, IsReadAndWritten) {
    EXPECT_THAT(parse_cpu_list("0-3,8").value(), ElementsAre(0, 1, 2, 3, 8));
    EXPECT_THAT(parse_cpu_list("8, 1 ,1\n").value(), ElementsAre(1, 8));
    EXPECT_THAT(parse_cpu_list("").value(), IsEmpty());
    EXPECT_EQ(format_cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
    EXPECT_EQ(format_cpu_list({}), "");
}

TEST(CpuList, RefusesWhatIsNone) {
    for (const char* text :
         {"-", "3-1", "0-4294967295", "0-65536", ",", "1,,2", "a", "1-2-3", "99999999999", "0x1"}) {
        const auto cpus = parse_cpu_list(text);
        ASSERT_FALSE(cpus) << text;
        EXPECT_EQ(cpus.error().code(), ErrorCode::kBadInput);
    }
}

TEST(Cpuinfo, NamesArmPartsBigAndLittle) {
    const auto models = parse_cpuinfo(sysroot("rk3588").read("/proc/cpuinfo").value());
    ASSERT_THAT(models, SizeIs(8));
    EXPECT_EQ(models[3], (CpuModel{3, "Cortex-A55"}));
    EXPECT_EQ(models[4], (CpuModel{4, "Cortex-A76"}));
}

TEST(Cpuinfo, NamesWhatIsNotInTheTableByItsNumbers) {
    const auto models = parse_cpuinfo("processor : 0\nCPU implementer : 0x41\nCPU part : 0xfff\n");
    EXPECT_THAT(models, ElementsAre(CpuModel{0, "implementer 0x41 part 0xfff"}));
}

// There the "model name" is the architecture, and the machine's lines follow the last CPU.
TEST(Cpuinfo, PrefersThePartOn32BitArm) {
    const auto models = parse_cpuinfo(
        "processor\t: 0\nmodel name\t: ARMv7 Processor rev 5 (v7l)\nCPU implementer\t: 0x41\n"
        "CPU part\t: 0xc07\n\nHardware\t: Allwinner sun8i Family\nSerial\t\t: 0000000000000000\n");
    EXPECT_THAT(models, ElementsAre(CpuModel{0, "Cortex-A7"}));
}

TEST(Cpuinfo, TakesOtherArchitectures) {
    EXPECT_THAT(
        parse_cpuinfo(
            "system type : MediaTek MT7621\n\nprocessor : 0\ncpu model : MIPS 1004Kc V2.15\n"),
        ElementsAre(CpuModel{0, "MIPS 1004Kc V2.15"}));
    EXPECT_THAT(parse_cpuinfo("processor : 2\nhart : 1\nuarch : sifive,u74-mc\n"),
                ElementsAre(CpuModel{2, "sifive,u74-mc"}));
    EXPECT_THAT(parse_cpuinfo("processor : 0\ncpu : POWER9\n"), ElementsAre(CpuModel{0, "POWER9"}));
}

TEST(Cpuinfo, SurvivesWhatIsNone) {
    EXPECT_THAT(parse_cpuinfo(sysroot("hostile").read("/proc/cpuinfo").value()), IsEmpty());
    EXPECT_THAT(parse_cpuinfo(""), IsEmpty());
    EXPECT_THAT(parse_cpuinfo(std::string(100'000, ':')), IsEmpty());
}

TEST(OnlineCpus, MayHaveGaps) {
    EXPECT_THAT(online_cpus(sysroot("virtio_vm")).value(), ElementsAre(0, 1, 3));
    EXPECT_THAT(online_cpus(sysroot("rk3588")).value(), SizeIs(8));
}

TEST(OnlineCpus, AreUnknownWithoutFiles) {
    EXPECT_FALSE(online_cpus(sysroot("hostile")));
    EXPECT_FALSE(online_cpus(sysroot("no-such-case")));
}

TEST(CpuFrequencies, ComeByPolicy) {
    const auto policies = cpu_frequencies(sysroot("rk3588"));
    ASSERT_THAT(policies, SizeIs(3));
    EXPECT_EQ(policies[0].cpus, "0-3");
    EXPECT_EQ(policies[1].current_khz, 408'000);
    EXPECT_EQ(policies[1].max_khz, 2'256'000);
    EXPECT_EQ(policies[2].policy, 6u);
    EXPECT_EQ(policies[2].governor, "performance");
    EXPECT_THAT(cpu_frequencies(sysroot("virtio_vm")), IsEmpty());
}

TEST(CpuFrequencies, LeaveOpenWhatIsUnreadable) {
    const auto policies = cpu_frequencies(sysroot("hostile"));
    ASSERT_THAT(policies, SizeIs(1));
    EXPECT_EQ(policies[0].policy, 7u);
    EXPECT_EQ(policies[0].current_khz, std::nullopt);
}

TEST(MachineModel, IsFromTheDeviceTreeOrDmi) {
    EXPECT_EQ(machine_model(sysroot("rk3588")).value().model, "FriendlyElec NanoPi R6S");
    EXPECT_EQ(machine_model(sysroot("virtio_vm")).value().model,
              "QEMU Standard PC (Q35 + ICH9, 2009)");
    EXPECT_FALSE(machine_model(sysroot("hostile")));
}

}  // namespace
}  // namespace ringside
