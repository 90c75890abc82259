#include <gmock/gmock.h>

#include <random>

#include "probes/host/irqs.h"

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

IrqLine only_line(std::string_view header, std::string_view row) {
    const Interrupts parsed =
        parse_interrupts(std::string(header) + "\n" + std::string(row) + "\n");
    EXPECT_THAT(parsed.lines, SizeIs(1)) << row;
    return parsed.lines.empty() ? IrqLine() : parsed.lines.front();
}

struct Form {
    const char* row;
    const char* chip;
    const char* hwirq;
    const char* trigger;
    std::vector<std::string> names;
};

class ChipForms : public testing::TestWithParam<Form> {};

TEST_P(ChipForms, AreTakenApart) {
    const Form& form = GetParam();
    const IrqLine line = only_line("           CPU0       CPU1", form.row);
    EXPECT_THAT(line.counts, ElementsAre(12, 3456));
    EXPECT_EQ(line.chip, form.chip);
    EXPECT_EQ(line.hwirq, form.hwirq);
    EXPECT_EQ(line.trigger, form.trigger);
    EXPECT_EQ(line.names, form.names);
}

INSTANTIATE_TEST_SUITE_P(
    Interrupts, ChipForms,
    testing::Values(
        Form{"  93: 12 3456   ITS-MSI 524288 Edge      eth0-0",
             "ITS-MSI",
             "524288",
             "Edge",
             {"eth0-0"}},
        Form{"  32: 12 3456     GICv3  59 Level     eth0", "GICv3", "59", "Level", {"eth0"}},
        Form{"  32: 12 3456 GICv3 59 Level eth0", "GICv3", "59", "Level", {"eth0"}},
        Form{" 42: 12 3456 PCI-MSIX-0000:00:04.0   2-edge      virtio3-tx",
             "PCI-MSIX-0000:00:04.0",
             "2",
             "edge",
             {"virtio3-tx"}},
        Form{" 25: 12 3456  IO-APIC   5-edge      ACPI:Ged", "IO-APIC", "5", "edge", {"ACPI:Ged"}},
        Form{" 14: 12 3456  MIPS GIC  14  eth0", "MIPS GIC", "14", "", {"eth0"}},
        Form{"  7: 12 3456      MIPS   7  timer", "MIPS", "7", "", {"timer"}},
        Form{" 60: 12 3456  xen-pirq    -msi-x     eth0-q0-tx",
             "xen-pirq",
             "",
             "msi-x",
             {"eth0-q0-tx"}},
        Form{" 61: 12 3456  xen-pirq -msi-x eth0-TxRx-0", "xen-pirq", "", "msi-x", {"eth0-TxRx-0"}},
        Form{" 40: 12 3456  PCI-MSI-edge      eth0-rx-0", "PCI-MSI-edge", "", "", {"eth0-rx-0"}},
        Form{" 32: 12 3456  GICv2  59 Level    -fasteoi   end0",
             "GICv2",
             "59",
             "Level-fasteoi",
             {"end0"}},
        Form{" 95: 12 3456 rockchip_gpio_irq   7 Edge      gpio-keys, power button",
             "rockchip_gpio_irq",
             "7",
             "Edge",
             {"gpio-keys", "power button"}},
        Form{" 16: 12 3456  None", "None", "", "", {}},
        Form{" 16: 12 3456         -   0 Edge      dummy", "-", "0", "Edge", {"dummy"}},
        Form{" 17: 12 3456     GICv3  40 Level     ", "GICv3", "40", "Level", {}},
        Form{" 18: 12 3456     GICv3  41 Level     , ,eth0,, x",
             "GICv3",
             "41",
             "Level",
             {",eth0,", "x"}},
        Form{" 19: 12 3456     GICv3  42 Level     eth0.100@if2",
             "GICv3",
             "42",
             "Level",
             {"eth0.100@if2"}},
        Form{" 20: 12 3456     GICv3  43 Level     abcdefghijklmno",
             "GICv3",
             "43",
             "Level",
             {"abcdefghijklmno"}}));

TEST(Interrupts, KeepsRowsWithoutANumberApart) {
    const Interrupts parsed = parse_interrupts(
        "           CPU0       CPU1       CPU2\n"
        "NMI:          1          2          3   Non-maskable interrupts\n"
        "IPI0:         4          5          6       Rescheduling interrupts\n"
        " Err:          7\n"
        "MIS:          0\n");
    ASSERT_THAT(parsed.lines, SizeIs(4));
    EXPECT_EQ(parsed.lines[0].number, std::nullopt);
    EXPECT_EQ(parsed.lines[0].description, "Non-maskable interrupts");
    EXPECT_EQ(parsed.lines[0].total(), 6u);
    EXPECT_EQ(parsed.lines[1].label, "IPI0");
    EXPECT_THAT(parsed.lines[2].counts, ElementsAre(7));
    EXPECT_EQ(parsed.lines[3].label, "MIS");
}

TEST(Interrupts, TakesCpuIdsFromTheHeader) {
    const Interrupts parsed =
        parse_interrupts("  CPU0 CPU3 CPU511\n 5: 1 2 3 GICv3 59 Level eth0\n");
    EXPECT_THAT(parsed.cpus, ElementsAre(0, 3, 511));
    EXPECT_THAT(parsed.lines.at(0).counts, ElementsAre(1, 2, 3));
}

TEST(Interrupts, TakesOneAndFiveHundredTwelveCpus) {
    EXPECT_THAT(only_line("CPU0", "5: 9 GICv3 59 Level eth0").counts, ElementsAre(9));
    std::string header;
    std::string row = "5:";
    for (int cpu = 0; cpu < 512; ++cpu) {
        header += " CPU" + std::to_string(cpu);
        row += " " + std::to_string(cpu);
    }
    const IrqLine line = only_line(header, row + " GICv3 59 Level eth0");
    EXPECT_THAT(line.counts, SizeIs(512));
    EXPECT_EQ(line.total(), 511u * 512u / 2);
    EXPECT_THAT(line.names, ElementsAre("eth0"));
}

TEST(Interrupts, TakesRowsWithFewerOrMoreCountsThanCpus) {
    EXPECT_THAT(only_line("CPU0 CPU1 CPU2", "5: 1 2 GICv3 59 Level eth0").counts,
                ElementsAre(1, 2));
    const IrqLine more = only_line("CPU0 CPU1", "5: 1 2 3 GICv3 59 Level eth0");
    EXPECT_THAT(more.counts, ElementsAre(1, 2));
    EXPECT_EQ(more.chip, "GICv3");
}

TEST(Interrupts, TakesRowsWithoutAHeader) {
    const Interrupts parsed = parse_interrupts("5: 1 2 3 GICv3 59 Level eth0\n");
    EXPECT_THAT(parsed.cpus, IsEmpty());
    EXPECT_THAT(parsed.lines.at(0).counts, ElementsAre(1, 2, 3));
}

TEST(Interrupts, CutsOffKernelLogPrefixesAndCarriageReturns) {
    const Interrupts parsed = parse_interrupts(
        "[   12.345678]            CPU0       CPU1\r\n"
        "[   12.345679][ T123]  32:  1  2  GICv3 59 Level  eth0\r\n"
        "<6>[   12.345680] NMI:  0  0  Non-maskable interrupts\r\n");
    EXPECT_THAT(parsed.cpus, ElementsAre(0, 1));
    ASSERT_THAT(parsed.lines, SizeIs(2));
    EXPECT_THAT(parsed.lines[0].names, ElementsAre("eth0"));
    EXPECT_EQ(parsed.lines[1].label, "NMI");
}

TEST(Interrupts, JoinsWrappedRows) {
    const Interrupts parsed = parse_interrupts(
        "   CPU0 CPU1 CPU2\n"
        "   CPU3\n"
        "  32:  1  2  3\n"
        "  4  GICv3 59\n"
        " Level  eth0\n"
        "  33:  5  6  7  8  GICv3 60 Level  eth1\n");
    EXPECT_THAT(parsed.cpus, ElementsAre(0, 1, 2, 3));
    ASSERT_THAT(parsed.lines, SizeIs(2));
    EXPECT_THAT(parsed.lines[0].counts, ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(parsed.lines[0].hwirq, "59");
    EXPECT_EQ(parsed.lines[0].trigger, "Level");
    EXPECT_THAT(parsed.lines[0].names, ElementsAre("eth0"));
    EXPECT_THAT(parsed.lines[1].names, ElementsAre("eth1"));
}

TEST(Interrupts, PassesOverWhatIsNotARow) {
    const Interrupts parsed = parse_interrupts(
        "root@board:~# cat /proc/interrupts\n"
        "  CPU0\n"
        "  32:  1  GICv3 59 Level  eth0\n"
        "some more text\n"
        "\n"
        "root@board:~# exit\n");
    ASSERT_THAT(parsed.lines, SizeIs(1));
    EXPECT_THAT(parsed.lines[0].names, ElementsAre("eth0"));
}

TEST(Interrupts, ReadsTheFirstOfTwoFilesThatWerePastedTogether) {
    const Interrupts parsed = parse_interrupts(
        "CPU0 CPU1\n32: 1 2 GICv3 59 Level eth0\nCPU0 CPU1 CPU2\n32: 3 4 GICv3 59 Level eth0\n");
    EXPECT_THAT(parsed.cpus, ElementsAre(0, 1));
    EXPECT_THAT(parsed.lines, SizeIs(2));
}

TEST(Interrupts, TakesCountsAndNumbersBeyondTheirTypes) {
    const IrqLine big =
        only_line("CPU0 CPU1", "5: 18446744073709551615 99999999999999999999999 GICv3 1 Edge x");
    EXPECT_THAT(big.counts, ElementsAre(~0ull, ~0ull));
    const IrqLine number = only_line("CPU0", "99999999999999: 5 chip");
    EXPECT_EQ(number.number, std::nullopt);
}

TEST(Interrupts, SurvivesAnyBytes) {
    constexpr std::string_view kAlphabet(
        "CPU0123:, \t\n\r\0<>[]-\xff"
        "eth GICv3Level",
        34);
    std::mt19937 random(20240229);
    for (int round = 0; round < 20'011; ++round) {
        std::string text;
        for (std::size_t n = random() % 200; n > 0; --n) {
            text += kAlphabet[random() % kAlphabet.size()];
        }
        for (const IrqLine& line : parse_interrupts(text).lines) {
            EXPECT_FALSE(line.label.empty());
        }
    }
}

// A row cut into lines of one number must cost its length, not the square of it.
TEST(Interrupts, ReadsAHugeWrappedRow) {
    std::string text = "CPU0\n5:\n";
    for (int i = 0; i < 200'003; ++i) {
        text += "1\n";
    }
    const Interrupts parsed = parse_interrupts(text);
    ASSERT_THAT(parsed.lines, SizeIs(1));
    EXPECT_THAT(parsed.lines[0].counts, ElementsAre(1));
}

TEST(Interrupts, KeepsABoundedNumberOfRows) {
    std::string text = "CPU0\n";
    for (int i = 0; i < 70'001; ++i) {
        text += "5:\n";
    }
    EXPECT_THAT(parse_interrupts(text).lines, SizeIs(65'536));
}

TEST(IrqName, IsAWholeToken) {
    const std::vector<std::string> all = {"eth1", "eth10", "lo"};
    for (const char* own :
         {"eth1", "eth1-TxRx-0", "eth1:tx-0", "eth1_wake", "eth1.q0", "eth1@pci", "eth1 rx"}) {
        EXPECT_TRUE(irq_name_is_of(own, "eth1", all)) << own;
    }
    for (const char* foreign :
         {"eth10", "eth10-TxRx-0", "eth", "xeth1", "my-eth1", "", "virtio1-eth1"}) {
        EXPECT_FALSE(irq_name_is_of(foreign, "eth1", all)) << foreign;
    }
    EXPECT_FALSE(irq_name_is_of("eth1", "", all));
}

TEST(IrqName, MayFollowTheDriversName) {
    EXPECT_TRUE(irq_name_is_of("i40e-eth1-TxRx-0", "eth1", {}, "i40e"));
    EXPECT_FALSE(irq_name_is_of("i40e-eth10-TxRx-0", "eth1", {}, "i40e"));
    EXPECT_FALSE(irq_name_is_of("i40e-", "eth1", {}, "i40e"));
    EXPECT_FALSE(irq_name_is_of("i40e", "eth1", {}, "i40e"));
}

TEST(IrqName, GoesToTheLongerOfTwoInterfaces) {
    const std::vector<std::string> all = {"eth0", "eth0-1"};
    EXPECT_FALSE(irq_name_is_of("eth0-1", "eth0", all));
    EXPECT_TRUE(irq_name_is_of("eth0-1", "eth0-1", all));
    EXPECT_TRUE(irq_name_is_of("eth0-2", "eth0", all));
}

std::vector<unsigned> irqs_of(const char* sysroot, std::string_view interface) {
    const Sysroot root(std::string(RINGSIDE_TEST_DATA) + "/sysroot/" + sysroot);
    const auto interrupts = read_interrupts(root);
    EXPECT_TRUE(interrupts);
    std::vector<unsigned> numbers;
    for (const IrqLine& line : interface_irqs(*interrupts, interface, root)) {
        numbers.push_back(line.number.value_or(0));
    }
    return numbers;
}

TEST(InterfaceIrqs, FindsTwoOfOneName) {
    EXPECT_THAT(irqs_of("rk3588", "eth0"), ElementsAre(31, 32));
}

TEST(InterfaceIrqs, TellsEth1FromEth10) {
    EXPECT_THAT(irqs_of("rk3588", "eth1"), ElementsAre(93));
    EXPECT_THAT(irqs_of("rk3588", "eth10"), ElementsAre(94));
    EXPECT_THAT(irqs_of("rk3588", "lo"), IsEmpty());
    EXPECT_THAT(irqs_of("rk3588", "nosuch"), IsEmpty());
}

// 77 is listed by the device and has no row; 24 belongs to the bridge above; 40 is virtio20.
TEST(InterfaceIrqs, FindsVirtioThroughTheDevice) {
    EXPECT_THAT(irqs_of("virtio_vm", "ens1"), ElementsAre(37, 38, 39));
}

TEST(InterfaceIrqs, LeavesTheOtherPortsVectorsOut) {
    const Sysroot root(std::string(RINGSIDE_TEST_DATA) + "/sysroot/two_ports");
    const auto interrupts = read_interrupts(root);
    ASSERT_TRUE(interrupts);
    const auto first = interface_irqs(*interrupts, "p1", root);
    ASSERT_THAT(first, SizeIs(2));
    EXPECT_THAT(first[0].names, ElementsAre("mlx4-async@pci:0000:01:00.0"));
    EXPECT_THAT(first[1].names, ElementsAre("p1-0"));
}

TEST(InterfaceIrqs, FallsBackToTheLegacyLine) {
    const Sysroot root(std::string(RINGSIDE_TEST_DATA) + "/sysroot/two_ports");
    const auto interrupts = read_interrupts(root);
    ASSERT_TRUE(interrupts);
    const auto legacy = interface_irqs(*interrupts, "old0", root);
    ASSERT_THAT(legacy, SizeIs(1));
    EXPECT_EQ(legacy[0].number, 16u);
}

TEST(IrqAffinity, IsAListOrAReason) {
    const Sysroot root(std::string(RINGSIDE_TEST_DATA) + "/sysroot/virtio_vm");
    EXPECT_EQ(irq_affinity(38, root).allowed.value_or(""), "0-1,3");
    EXPECT_FALSE(irq_affinity(38, root).effective);
    EXPECT_FALSE(irq_affinity(77, root).allowed);
    const Sysroot hostile(std::string(RINGSIDE_TEST_DATA) + "/sysroot/hostile");
    EXPECT_EQ(irq_affinity(9, hostile).allowed.error().code(), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace ringside
