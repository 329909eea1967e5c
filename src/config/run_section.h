// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts the section `run` of a chain file to the settings of a run: the processor, the GPUs, the cores, and what
// depends on them.

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_list.h"
#include "base/error.h"
#include "base/parameter.h"
#include "config/chain_description.h"
#include "gpu/devices.h"
#include "run/chain.h"

namespace penstock::config {

/// The parameters of the section ("workers", "batch.bytes", …); also used for help.
[[nodiscard]] ParameterTable run_parameters();

class RunSection {
 public:
  /// Writes to the settings of `chain`, and adds errors and warnings to the lists. Borrows all of its arguments.
  RunSection(const ChainDescription& description, run::Chain& chain, Errors& errors, Errors& without_effect);

  /// Sets what does not depend on the functions.
  void set_basics();
  /// Chooses the processor for the functions, and what depends on it. `functions_known`: no function is missing because
  /// of mistakes.
  void choose_processor(bool only_plan, bool functions_known);
  /// Reports functions that need all packets in one worker. Needs the processor.
  void check_one_worker();
  /// Refuses a shared queue if a function follows flows over several workers. Returns what it weakens. Needs the
  /// processor.
  [[nodiscard]] Errors check_queueing();
  /// Sets `gpu_shares`: `whole`, `auto`, or shares of functions by their names.
  void set_gpu_shares(bool functions_known);
  /// Decides where workers and memory are to be, by the machine's files below `machine`. Needs the processor.
  void place_workers(const std::filesystem::path& machine, bool only_plan);

 private:
  void note_without_effect(std::string_view name, std::string_view where = "on the CPU");
  void take_cores();
  [[nodiscard]] std::vector<run::GpuPlace> gpu_places(bool only_plan);
  void read_processors_of_functions();
  void use_proxy(bool functions_known);
  void refuse_batch_beyond_queue();
  [[nodiscard]] std::size_t most_batch_bytes_on_device() const;
  [[nodiscard]] Result<std::vector<int>> usable_gpus(bool functions_known);
  void set_gpu_share(std::string_view item, bool functions_known);
  [[nodiscard]] std::string why_not_handed_over(std::size_t function) const;

  const ChainDescription& description_;
  const std::optional<Parameters>& run_;  // empty: there are mistakes
  run::Chain& chain_;
  run::RunSettings& settings_;
  Errors& errors_;
  Errors& without_effect_;
  std::optional<Place> gpu_asked_;             // the place of the first `processor: gpu`
  std::optional<Place> queue_place_;           // the place of `queue: bytes`, if given
  std::optional<Place> workers_place_;         // the place of `workers`, if given
  CpuList cores_;                              // one for each worker; empty: not given
  std::optional<gpu::DeviceList> devices_;     // listed if needed, once
  std::uint32_t most_multiprocessors_ = 1024;  // of the GPUs; if unknown, more than any GPU has
};

}  // namespace penstock::config
