// Registers and descriptors of the Synopsys DWMAC 4/5 cores, named as in the kernel's stmmac
// (dwmac4.h, dwmac4_dma.h, dwmac4_descs.h). Only what the driver touches and the model acts on.
#pragma once

#include <cstdint>

namespace ringside::lab::dwmac {

// MAC (dwmac4.h)
constexpr std::uint32_t kVlanTag = 0x50;      // GMAC_VLAN_TAG: bit 0 is "busy"
constexpr std::uint32_t kVersion = 0x110;     // GMAC4_VERSION
constexpr std::uint32_t kHwFeature0 = 0x11c;  // GMAC_HW_FEATURE0 to 3
constexpr std::uint32_t kHwFeature3 = 0x128;
constexpr std::uint32_t kMdioAddress = 0x200;  // GMAC_MDIO_ADDR
constexpr std::uint32_t kMdioData = 0x204;     // GMAC_MDIO_DATA
// MTL
constexpr std::uint32_t kMtlOperationMode = 0xc00;
constexpr std::uint32_t kMtlTxqWeight = 0xd18;  // MTL_TXQX_WEIGHT_BASE_ADDR
constexpr std::uint32_t kMtlQueueStep = 0x40;
constexpr unsigned kSchedulerShift = 5;  // MTL_OPERATION_SCHALG_MASK
constexpr std::uint32_t kSchedulerMask = 3;
constexpr std::uint32_t kSchedulerStrict = 3;  // MTL_OPERATION_SCHALG_SP
// DMA (dwmac4_dma.h)
constexpr std::uint32_t kDmaBusMode = 0x1000;
constexpr std::uint32_t kSoftwareReset = 1;  // DMA_BUS_MODE_SFT_RESET
constexpr std::uint32_t kDmaStatus = 0x1008;
constexpr std::uint32_t kChannels = 0x1100;  // DMA_CHAN_BASE_ADDR
constexpr std::uint32_t kChannelStep = 0x80;
// within a channel
constexpr std::uint32_t kTxControl = 0x04;
constexpr std::uint32_t kRxControl = 0x08;
constexpr std::uint32_t kTxBaseHigh = 0x10;
constexpr std::uint32_t kTxBase = 0x14;
constexpr std::uint32_t kRxBaseHigh = 0x18;
constexpr std::uint32_t kRxBase = 0x1c;
constexpr std::uint32_t kTxTail = 0x20;  // DMA_CHAN_TX_END_ADDR
constexpr std::uint32_t kTxRingLength = 0x2c;
constexpr std::uint32_t kRxRingLength = 0x30;
constexpr std::uint32_t kInterruptEnable = 0x34;
constexpr std::uint32_t kCurrentTxDesc = 0x44;
constexpr std::uint32_t kStatus = 0x60;
// DMA_CONTROL_*, TX
constexpr std::uint32_t kStartTx = 1;
constexpr std::uint32_t kTso = 1U << 12;   // DMA_CONTROL_TSE
constexpr std::uint32_t kEdse = 1U << 28;  // DMA_CONTROL_EDSE: 32-byte descriptors
constexpr std::uint32_t kStartRx = 1;      // DMA_CONTROL_SR
constexpr std::uint32_t kRingLengthMask = 0x3ff;
// DMA_CHAN_STATUS_* and, at the same places, DMA_CHAN_INTR_ENA_*_4_10
constexpr std::uint32_t kNis = 1U << 15;
constexpr std::uint32_t kAis = 1U << 14;
constexpr std::uint32_t kFbe = 1U << 12;
constexpr std::uint32_t kRbu = 1U << 7;
constexpr std::uint32_t kRi = 1U << 6;
constexpr std::uint32_t kTbu = 1U << 2;
constexpr std::uint32_t kTi = 1;

// GMAC_MDIO_ADDR (stmmac_mdio.c: mii.addr_mask and so on for GMAC4)
constexpr unsigned kMdioPhyShift = 21;
constexpr unsigned kMdioRegShift = 16;
constexpr unsigned kMdioOpShift = 2;
constexpr std::uint32_t kMdioRead = 3;      // MII_GMAC4_READ
constexpr std::uint32_t kMdioWrite = 1;     // MII_GMAC4_WRITE
constexpr std::uint32_t kMdioClause45 = 2;  // MII_GMAC4_C45E
constexpr std::uint32_t kMdioBusy = 1;      // MII_ADDR_GBUSY

// Transmit descriptors (dwmac4_descs.h)
constexpr std::uint32_t kOwn = 1U << 31;       // TDES3_OWN, RDES3_OWN
constexpr std::uint32_t kContext = 1U << 30;   // TDES3_CONTEXT_TYPE
constexpr std::uint32_t kFirst = 1U << 29;     // TDES3_FIRST_DESCRIPTOR, also RDES3
constexpr std::uint32_t kLast = 1U << 28;      // TDES3_LAST_DESCRIPTOR, also RDES3
constexpr std::uint32_t kMssValid = 1U << 26;  // TDES3_CTXT_TCMSSV
constexpr std::uint32_t kTse = 1U << 18;       // TDES3_TCP_SEGMENTATION_ENABLE
constexpr std::uint32_t kTsoPayloadMask = 0x3ffff;
constexpr std::uint32_t kInterruptOnCompletion = 1U << 31;  // TDES2
constexpr std::uint32_t kBuffer1Mask = 0x3fff;              // TDES2_BUFFER1_SIZE_MASK
constexpr std::uint32_t kMssMask = 0x3fff;

constexpr std::uint32_t kDescBytes = 16;      // struct dma_desc
constexpr std::uint32_t kEnhancedBytes = 32;  // struct dma_edesc: 16 more in front

}  // namespace ringside::lab::dwmac
