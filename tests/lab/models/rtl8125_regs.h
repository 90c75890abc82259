// Registers and descriptors of RTL8125B, named as in r8169_main.c ("r8169") and in Realtek's
// r8125.h ("r8125"), where they are described. Only what the two drivers touch and the model acts
// on.
#pragma once

#include <cstdint>

namespace ringside::lab::rtl {

// enum rtl_registers, rtl8125_registers (r8169); enum RTL8125_registers (r8125)
constexpr std::uint32_t kMac0 = 0x00;
constexpr std::uint32_t kCounterAddrLow = 0x10;
constexpr std::uint32_t kTxDescStartAddrLow = 0x20;
constexpr std::uint32_t kIntCfg0 = 0x34;  // INT_CFG0_8125
constexpr std::uint32_t kChipCmd = 0x37;
constexpr std::uint32_t kIntrMask = 0x38;    // IntrMask_8125
constexpr std::uint32_t kIntrStatus = 0x3c;  // IntrStatus_8125
constexpr std::uint32_t kTxConfig = 0x40;
constexpr std::uint32_t kCsiar = 0x68;
constexpr std::uint32_t kPhyStatus = 0x6c;
constexpr std::uint32_t kEphyar = 0x80;
constexpr std::uint32_t kTxPoll = 0x90;   // TxPoll_8125, TPPOLL_8125
constexpr std::uint32_t kOcpdr = 0xb0;    // MAC OCP
constexpr std::uint32_t kGphyOcp = 0xb8;  // GPHY_OCP, PHYOCP
constexpr std::uint32_t kMcu = 0xd3;
constexpr std::uint32_t kIntrMitigate = 0xe2;
constexpr std::uint32_t kRxDescAddrLow = 0xe4;
constexpr std::uint32_t kImrV2Clear = 0xd00;   // IMR_V2_CLEAR_REG_8125
constexpr std::uint32_t kIsrV2 = 0xd04;        // ISR_V2_8125
constexpr std::uint32_t kImrV2Set = 0xd0c;     // IMR_V2_SET_REG_8125
constexpr std::uint32_t kMac0Backup = 0x19e0;  // MAC0_BKP
constexpr std::uint32_t kTnpdsQ1Low = 0x2100;  // TNPDS_Q1_LOW_8125: ring of the second queue
constexpr std::uint32_t kSwTailPtr = 0x2800;   // SW_TAIL_PTR0_8125, every queue 4 bytes on
constexpr std::uint32_t kHwCloPtr = 0x2802;    // HW_CLO_PTR0_8125, likewise

// ChipCmd
constexpr std::uint8_t kStopReq = 0x80;
constexpr std::uint8_t kCmdReset = 0x10;
constexpr std::uint8_t kCmdRxEnb = 0x08;
constexpr std::uint8_t kCmdTxEnb = 0x04;
// IntrStatus
constexpr std::uint32_t kLinkChg = 0x0020;
constexpr std::uint32_t kTxOk = 0x0004;
constexpr std::uint32_t kRxOk = 0x0001;
// ISR_V2: one bit and one MSI-X vector for each source (ISRIMR_V2_ROK_Q0, _TOK_Q0, _LINKCHG)
constexpr unsigned kV2RxQ0 = 0;
constexpr unsigned kV2TxQ0 = 16;
constexpr unsigned kV2TxStep = 2;  // TOK_Q1 is bit 18
constexpr unsigned kV2Link = 21;
constexpr std::uint8_t kIntCfg0EnableV2 = 0x01;

constexpr std::uint32_t kOcpFlag = 0x8000'0000;  // OCPAR_FLAG: a write, or done
constexpr std::uint32_t kCounterDump = 0x8;
constexpr std::uint32_t kCounterReset = 0x1;
constexpr std::uint32_t kTxConfigNoClose = 1U << 6;
// TxConfig bits that identify the chip (rtl8169_get_mac_version: 0x641 is RTL8125B).
constexpr std::uint32_t kXidMask = 0x7cf0'0000;
constexpr std::uint32_t kXidRtl8125b = 0x641U << 20;
// MCU: LINK_LIST_RDY, TX_EMPTY, RX_EMPTY
constexpr std::uint8_t kMcuIdle = 0x32;
// IntrMitigate as rtl_rxtx_empty_cond_2 reads it on these chips
constexpr std::uint16_t kRxTxEmpty = 0x0103;
// PHYstatus: full duplex, link, 2500 Mb/s
constexpr std::uint32_t kPhyStatusUp = 0x403;

// MAC OCP register that selects 32-byte TX descriptors (rtl_hw_start_8125_common: "disable new tx
// descriptor format"; the vendor's driver enables it)
constexpr std::uint16_t kMacTxDescFormat = 0xeb58;

// Descriptors: enum rtl_desc_bit, rtl_tx_desc_bit_1, rtl_rx_desc_bit
constexpr std::uint32_t kDescOwn = 1U << 31;
constexpr std::uint32_t kRingEnd = 1U << 30;
constexpr std::uint32_t kFirstFrag = 1U << 29;
constexpr std::uint32_t kLastFrag = 1U << 28;
constexpr std::uint32_t kGiantSendV4 = 1U << 26;  // TD1_GTSENV4
constexpr std::uint32_t kGiantSendV6 = 1U << 25;
constexpr unsigned kTransportShift = 18;  // GTTCPHO_SHIFT, opts1
constexpr std::uint32_t kTransportMask = 0x7f;
constexpr unsigned kMssShift = 18;  // TD1_MSS_SHIFT, opts2
constexpr std::uint32_t kMssMask = 0x7ff;
constexpr std::uint32_t kTxLengthMask = 0xffff;
constexpr std::uint32_t kRxLengthMask = 0x3fff;
constexpr std::uint32_t kRxProtoTcp = 1U << 17;  // PID0

constexpr std::uint64_t kRingAlign = 256;
constexpr std::uint32_t kRxDescBytes = 16;

}  // namespace ringside::lab::rtl
