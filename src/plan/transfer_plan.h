// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which fields cross between the memories of processors, before which stage: a pure function of the chain's accesses
// (Gaviss §4.3, algorithm 1, for any number of processors). Invariant: before a stage runs, every field that it reads
// is up to date on its processor, whatever path the packet has taken. At the end of the chain, all fields are up to
// date on the host.

#pragma once

#include <span>
#include <vector>

#include "function/network_function.h"
#include "function/processor.h"
#include "packet/field.h"
#include "plan/fork.h"

namespace penstock::plan {

/// Fields that cross from the memory of one processor to that of another. One of the two is the host.
struct Crossing {
  function::Processor from;
  function::Processor to;
  FieldSet fields;
};

/// One stage of the chain on one processor, and what crosses directly before it.
struct PlannedStage {
  function::Processor processor = function::Processor::cpu;
  std::size_t function = 0;  // position in the chain
  bool finish = false;       // whether this is the function's finish stage
  Access access;
  std::vector<Crossing> before{};
  std::vector<Crossing> after{};  // before a fork or the end of an arm: the host chooses the arms

  /// The fields that cross to its processor before it.
  [[nodiscard]] FieldSet brought() const;
  /// Whether devices start new segments after this stage, with the host's changes. This is the case for CPU stages,
  /// except for finish stages that need nothing from a device and at most drop packets. Stages on a device do not wait
  /// for such a finish stage, so they may process packets that it drops.
  [[nodiscard]] bool divides() const;
};

struct TransferPlan {
  std::vector<PlannedStage> stages;
  std::vector<Crossing> at_end;  // to forward the packets

  /// All crossings, in order.
  [[nodiscard]] std::vector<Crossing> crossings() const;
};

/// The processor of each function of a chain.
using Processors = std::vector<function::Processor>;

/// Each function that has a stage on `processor` runs there, the others on the CPU.
[[nodiscard]] Processors prefer(function::Processor processor, std::span<const function::NfTraits> chain);

/// Plans the chain's stages in order. A function that `processors` puts on a device, where it has a stage, is followed
/// by its finish stage on the CPU; the others run as CPU twins. A field crosses as early as possible: with the first
/// crossing to its processor after its last change, or when a device starts a segment, so that all stages share one
/// crossing (algorithm 1, lines 7-9). Devices do not read each other's memory: fields cross from one to another by way
/// of the host. Verdicts and lengths return with the other results of a device stage. No stage on a device waits for a
/// finish stage that reads them; the device gets the drops of a finish stage when it starts a new segment.
/// With forks, this holds for each path through the chain. While the stages of an arm run, they skip packets of other
/// arms by their verdicts. All packets cross together the first time, including those of other arms; later, only those
/// of the stage's own arm cross.
[[nodiscard]] TransferPlan plan_transfers(std::span<const function::NfTraits> chain, const Processors& processors,
                                          std::span<const Fork> forks = {});

/// The bytes of `fields` in an Ethernet frame of `frame_length` bytes with IPv4 (20) and TCP (20) headers, for display.
[[nodiscard]] std::uint32_t bytes_of(FieldSet fields, std::uint32_t frame_length);

}  // namespace penstock::plan
