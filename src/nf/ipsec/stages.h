// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU stages of `ipsec`, one for each direction. They look up, lay out and number the packets of a burst one by
// one, then intel-ipsec-mb seals or opens the whole burst.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "classify/classifier.h"
#include "function/answer.h"
#include "function/burst.h"
#include "function/network_function.h"
#include "nf/ipsec/crypto/mb_crypto.h"
#include "nf/ipsec/esp/decision_core.h"
#include "nf/ipsec/esp/fragment_wait.h"
#include "nf/ipsec/esp/inbound_core.h"
#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/sa/burst_numbers.h"
#include "nf/ipsec/selection/selection_memo.h"

namespace penstock::ipsec {

/// What an arriving packet is to inbound ESP. Changes nothing.
[[nodiscard]] Arrival look_at(PacketView packet, const Tables& tables) noexcept;

class OutboundStage final : public function::CpuStage {
 public:
  /// Borrows `ipsec`.
  explicit OutboundStage(Ipsec& ipsec);
  /// Logs limits that the last packets reached.
  ~OutboundStage() override { ipsec_.look_after_sas_at_once(); }

  void set_emitter(function::Emitter& emitter) noexcept override { emitter_ = &emitter; }
  void take_over(function::CpuStage& predecessor) noexcept override;
  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

  /// For packets that a device will protect: chooses SAs, takes numbers and counts, all as `process` does, and writes a
  /// Decision for each packet, in packet order; a SignedDecision where others have the lanes.
  void decide(std::span<const PacketView> packets, std::span<std::byte* const> decisions) noexcept;
  /// `process` gets these packets next after all, in this order. It protects them as decided: a packet keeps its
  /// number, and is not counted again.
  void take_back(std::span<const PacketView> packets, std::span<const std::byte* const> decisions) noexcept;

 private:
  static constexpr std::size_t kBurst = MbCrypto::kMostJobs;
  static constexpr std::size_t kGroup = classify::Classifier::kGroup;
  /// A packet that an SA is to protect; kNoSa if no SA can any longer.
  struct Pending {
    std::uint32_t packet;
    std::uint32_t sa;
    BurstNumbers::Lot lot;
    Encapsulation plan;
  };

  /// Packets to which policies apply, in packet order.
  struct Group {
    struct Member {
      std::uint32_t packet;
      std::uint32_t policy;
      std::uint32_t sa;             // as in SelectionMemo::Entry
      SelectionMemo::Entry* entry;  // of `flow`; null if it has none
      SelectionMemo::Flow flow;
    };
    std::array<Member, kGroup> members;
    std::size_t count = 0;
  };

  /// A packet that comes back from a device, with its SA and number.
  struct TakenBack {
    const PacketDescriptor* packet;
    std::uint32_t sa;
    std::uint64_t sequence;
  };

  void process_burst(std::span<PacketView> packets) noexcept;
  void decide_burst(std::span<PacketView> packets, std::span<std::byte* const> decisions) noexcept;
  [[nodiscard]] const TakenBack* taken_back(const PacketDescriptor* packet) noexcept;
  void lay_out_again(std::span<PacketView> packets, std::size_t packet, const TakenBack& known) noexcept;
  void select(std::span<PacketView> packets, std::size_t first, std::size_t count) noexcept;
  [[nodiscard]] bool plan(Pending& pending, std::span<PacketView> packets, std::size_t packet,
                          std::uint32_t sa) noexcept;
  void find_policies(std::span<const PacketView> packets, Group& group) noexcept;
  void fetch_sas(const Group& group) const noexcept;
  void refuse(std::span<PacketView> packets, std::size_t packet, Verdict verdict) noexcept;
  void number(std::span<PacketView> packets) noexcept;
  void lay_out(PacketView& packet, const Pending& pending, std::uint64_t sequence) noexcept;
  void select_again(std::span<PacketView> packets, std::size_t first, Reason ended) noexcept;
  void seal(std::span<PacketView> packets) noexcept;

  Ipsec& ipsec_;
  const Tables& tables_;
  const std::span<report::Traffic> carried_;
  const SelectionView view_;
  MbCrypto crypto_;
  SaState::Seconds now_ = 0;
  function::Emitter* emitter_ = nullptr;  // set only if there is an MTU
  function::AnswerLimit answers_;
  SelectionMemo memo_;
  std::array<classify::Key, kGroup> keys_;
  std::array<Pending, kBurst> pending_;  // of the burst, in packet order
  std::size_t pending_count_ = 0;
  BurstNumbers numbers_;
  std::array<MbCrypto::Work, kBurst> work_;
  std::array<std::uint32_t, kBurst> of_job_;  // index of the job's packet
  std::size_t job_count_ = 0;
  std::span<std::byte* const> decisions_;  // by packet of the burst; empty while this stage protects packets itself
  std::array<TakenBack, function::kBurst> taken_back_;  // in packet order
  std::size_t taken_back_count_ = 0;
  std::size_t next_taken_back_ = 0;
};

/// Where a device of another process protects the packets.
class OutboundStateStage final : public function::StateStage {
 public:
  /// Borrows the twin.
  explicit OutboundStateStage(OutboundStage& twin) noexcept : twin_(twin) {}
  void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
    twin_.decide(packets, states);
  }
  void hand_back(std::span<const PacketView> packets, std::span<const std::byte* const> states) noexcept override {
    twin_.take_back(packets, states);
  }

 private:
  OutboundStage& twin_;
};

class InboundStage final : public function::CpuStage {
 public:
  /// Borrows `ipsec`.
  explicit InboundStage(Ipsec& ipsec);
  ~InboundStage() override;

  void set_emitter(function::Emitter& emitter) noexcept override { emitter_ = &emitter; }
  void attach(stack::Attachment& attachment) noexcept override { fragments_->wait.attach(attachment); }
  void take_over(function::CpuStage& predecessor) noexcept override;
  void begin_batch() noexcept override;
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  static constexpr std::size_t kBurst = MbCrypto::kMostJobs;

  void process_burst(std::span<PacketView> packets) noexcept;
  void find(PacketView& packet, std::uint32_t index) noexcept;
  [[nodiscard]] bool reassemble(PacketView& packet, bool udp) noexcept;
  void open(std::span<PacketView> packets) noexcept;
  void check_policies(std::span<PacketView> packets) noexcept;

  Ipsec& ipsec_;
  const Tables& tables_;
  const std::span<report::Traffic> carried_;
  MbCrypto crypto_;
  std::shared_ptr<WorkerFragments> fragments_;
  std::shared_ptr<WorkerFragments> unused_;  // its own, once it has taken over others; freed with the stage
  bool is_taken_over_ = false;               // a later stage publishes the counts of `fragments_`
  function::Emitter* emitter_ = nullptr;
  SaState::Seconds now_ = 0;
  std::uint64_t last_packet_ns_ = 0;
  /// A packet that an SA is to open.
  struct Pending {
    std::uint32_t packet;
    Arrival arrival;
  };
  std::array<Pending, kBurst> pending_;
  std::array<MbCrypto::Work, kBurst> work_;
  std::array<classify::Key, classify::Classifier::kGroup> keys_;
  std::array<std::uint32_t, kBurst> sas_;  // by packet of the burst: the SA that it arrived on
  std::size_t pending_count_ = 0;
};

}  // namespace penstock::ipsec
