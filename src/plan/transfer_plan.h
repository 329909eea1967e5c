// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which fields cross PCIe, and before which stage: a pure function of the chain's accesses (Gaviss §4.3, algorithm 1).
// Invariant: before a stage runs, all that it reads is up to date on its processor, whichever path a packet has
// taken; at the end all is so on the host.

#pragma once

#include <span>
#include <vector>

#include "function/network_function.h"
#include "packet/field.h"
#include "plan/fork.h"

namespace penstock::plan {

/// One step of the chain on one processor, and what crosses right before it.
struct PlannedStage {
  function::Processor processor = function::Processor::cpu;
  std::size_t function = 0;  // position in the chain
  bool finish = false;       // the function's finish stage
  Access access;
  FieldSet to_device;
  FieldSet to_host;
  FieldSet to_host_after{};  // where a fork or the end of an arm follows: the host decides about arms

  /// Whether what follows on the device begins anew, with what the host has done: a CPU stage between, but for a finish
  /// stage that needs nothing of the device and at most drops. Stages on the device do not wait for that one; they have
  /// then worked on packets that had ended before them.
  [[nodiscard]] bool divides() const;
};

struct TransferPlan {
  std::vector<PlannedStage> stages;
  FieldSet to_host_at_end;  // for forwarding

  /// All that goes each way, for a chain whose packets cross in one piece.
  [[nodiscard]] FieldSet to_device() const;
  [[nodiscard]] FieldSet to_host() const;
};

/// The chain's stages in order. With `Processor::gpu`, each NF that has a GPU stage runs there, followed by its finish
/// stage on the CPU; the others run their CPU twin. A field crosses as early as it can: with the first crossing in its
/// direction after its last change, so that all stages share one crossing (algorithm 1, lines 7-9). Verdicts and
/// lengths come back with all else that a GPU stage found, and no stage on the device waits for a finish stage that
/// reads them; what one drops is told to the device where a stage there begins anew.
/// With forks, all of that holds for each path through the chain. Packets of other arms are left alone while an arm's
/// stages run, by their verdicts. All packets cross together the first time, those of other arms included; later only
/// those of the stage's own arm.
[[nodiscard]] TransferPlan plan_transfers(std::span<const function::NfTraits> chain, function::Processor processor,
                                          std::span<const Fork> forks = {});

/// Bytes of `fields` in an Ethernet frame of `frame_length` bytes with IPv4 (20) and TCP (20) headers, for printing.
[[nodiscard]] std::uint32_t bytes_of(FieldSet fields, std::uint32_t frame_length);

}  // namespace penstock::plan
