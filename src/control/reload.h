// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reloads of a running chain, whoever asks for them: reads the chain file and its files again, and puts them in use
// while packets flow. One thread makes all of them; others may look at the state meanwhile.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/chain_file.h"
#include "config/reload.h"
#include "run/run.h"

namespace penstock::control {

/// Of a configuration, as in config::LoadedChain.
struct Warnings {
  Errors unsupported, without_effect, cautions;
};

struct ReloadOutcome {
  enum class What : std::uint8_t { reload, dry_run, rollback } what;
  /// refused: mistakes in the chain file and its files; failed: the run cannot take them. Nothing has changed then.
  enum class Result : std::uint8_t { refused, failed, unchanged, in_use } result;
  Errors errors{};  // why it was refused, or failed; in_use: texts that could not be written again
  std::vector<config::Reload::Change> changes{};  // of a rollback: "taken back: …"
  Warnings warnings{};                            // of the configuration; not if it was refused
  std::chrono::system_clock::time_point at{};
  std::chrono::duration<double> elapsed{};
};
/// "refused", "failed", "unchanged", "in_use"; for a dry run, "would_change" instead of the last one.
[[nodiscard]] std::string_view name_of_result(const ReloadOutcome& outcome);

/// Called by the thread that reloads; not for dry runs.
struct ReloadListener {
  std::function<void()> begins = [] {};
  std::function<void(const ReloadOutcome&)> ended = [](const ReloadOutcome&) {};
};

class Reloader {
 public:
  /// Reads the files of the running chain again: config/reload.h.
  using Plan = std::function<penstock::Result<config::Reload>(const config::LoadedChain& running)>;

  /// Borrows `loaded`, whose warnings are those of the configuration in use after each reload. `further_cautions`:
  /// about what the files do not say, as it is now; any thread may call it.
  Reloader(
      config::LoadedChain& loaded, Plan plan, ReloadListener listener = {},
      std::function<Errors()> further_cautions = [] { return Errors(); });

  /// Only one thread may call these.
  [[nodiscard]] ReloadOutcome reload(run::Run& run);
  [[nodiscard]] ReloadOutcome dry_run();
  /// Returns to the functions before the last reload or rollback.
  [[nodiscard]] ReloadOutcome rollback(run::Run& run);

  // Any thread may call these.

  /// Of the configuration in use, and of ports and whatever else is outside of it, as the system is now.
  [[nodiscard]] Warnings warnings() const;
  /// Empty: there was none. Dry runs do not count.
  [[nodiscard]] std::optional<ReloadOutcome> last() const;

 private:
  /// What belongs to a set of functions.
  struct Version {
    Warnings warnings;
    std::vector<config::TextOutput> texts;
  };

  void put_in_use(Version next, ReloadOutcome& outcome);
  [[nodiscard]] ReloadOutcome finished(ReloadOutcome outcome, std::chrono::steady_clock::time_point start);

  config::LoadedChain& loaded_;
  const Plan plan_;
  const ReloadListener listener_;
  const std::function<Errors()> further_cautions_;
  Version former_;                               // of the functions to which a rollback returns
  std::vector<config::TextOutput> texts_;        // of the functions in use
  std::vector<config::Reload::Change> changes_;  // of the last reload, which a rollback takes back
  bool taken_back_ = false;
  mutable std::mutex mutex_;  // guards the warnings of `loaded_`, and the next member
  std::optional<ReloadOutcome> last_;
};

}  // namespace penstock::control
