// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/reload.h"

#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "config/outputs.h"

namespace penstock::control {

using What = ReloadOutcome::What;
using Outcome = ReloadOutcome::Result;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string_view name_of_result(const ReloadOutcome& outcome) {
  switch (outcome.result) {
    case Outcome::refused: return "refused";
    case Outcome::failed: return "failed";
    case Outcome::unchanged: return "unchanged";
    case Outcome::in_use: break;
  }
  return outcome.what == What::dry_run ? "would_change" : "in_use";
}

Reloader::Reloader(config::LoadedChain& loaded, Plan plan, ReloadListener listener,
                   std::function<Errors()> further_cautions)
    : loaded_(loaded),
      plan_(std::move(plan)),
      listener_(std::move(listener)),
      further_cautions_(std::move(further_cautions)),
      texts_(loaded.texts) {}

ReloadOutcome Reloader::reload(run::Run& run) {
  const auto start = std::chrono::steady_clock::now();
  listener_.begins();
  ReloadOutcome outcome{What::reload, Outcome::refused};
  log_debug("reload: reading the chain file and its files");
  auto planned = plan_(loaded_);
  log_debug("reload: {} after {:.3f} s",
            planned ? format_count(planned->changes.size(), "changed function") : "mistakes", seconds_since(start));
  if (!planned) {
    outcome.errors = std::move(planned.error());
  } else if (planned->changes.empty()) {
    outcome.result = Outcome::unchanged;
  } else if (auto applied = run.apply(std::move(planned->functions)); !applied) {
    outcome.result = Outcome::failed;
    outcome.errors = std::move(applied.error());
  } else {
    log_debug("reload: all workers use the new functions after {:.3f} s", seconds_since(start));
    outcome.changes = changes_ = std::move(planned->changes);
    taken_back_ = false;
    put_in_use({{std::move(planned->unsupported), std::move(planned->without_effect), std::move(planned->cautions)},
                std::move(planned->texts)},
               outcome);
  }
  return finished(std::move(outcome), start);
}

ReloadOutcome Reloader::dry_run() {
  const auto start = std::chrono::steady_clock::now();
  ReloadOutcome outcome{What::dry_run, Outcome::refused};
  auto planned = plan_(loaded_);
  if (!planned) {
    outcome.errors = std::move(planned.error());
  } else {
    outcome.result = planned->changes.empty() ? Outcome::unchanged : Outcome::in_use;
    outcome.changes = std::move(planned->changes);
    outcome.warnings = {std::move(planned->unsupported), std::move(planned->without_effect),
                        std::move(planned->cautions)};
  }
  return finished(std::move(outcome), start);
}

ReloadOutcome Reloader::rollback(run::Run& run) {
  const auto start = std::chrono::steady_clock::now();
  listener_.begins();
  ReloadOutcome outcome{What::rollback, Outcome::failed};
  if (auto changed = run.rollback(); !changed) {
    outcome.errors = std::move(changed.error());
  } else {
    outcome.changes = changes_;
    taken_back_ = !taken_back_;
    if (taken_back_) {
      for (config::Reload::Change& change : outcome.changes) change.what.insert(0, "taken back: ");
    }
    put_in_use(std::exchange(former_, {}), outcome);
  }
  return finished(std::move(outcome), start);
}

/// The functions are in use already.
void Reloader::put_in_use(Version next, ReloadOutcome& outcome) {
  outcome.result = Outcome::in_use;
  outcome.warnings = next.warnings;
  former_.texts = std::exchange(texts_, std::move(next.texts));
  {
    const std::lock_guard lock(mutex_);
    former_.warnings.unsupported = std::exchange(loaded_.unsupported, std::move(next.warnings.unsupported));
    former_.warnings.without_effect = std::exchange(loaded_.without_effect, std::move(next.warnings.without_effect));
    former_.warnings.cautions = std::exchange(loaded_.cautions, std::move(next.warnings.cautions));
  }
  if (auto written = config::write_text_outputs(texts_); !written) outcome.errors = std::move(written.error());
}

ReloadOutcome Reloader::finished(ReloadOutcome outcome, std::chrono::steady_clock::time_point start) {
  outcome.at = std::chrono::system_clock::now();
  outcome.elapsed = std::chrono::steady_clock::now() - start;
  if (outcome.result != Outcome::refused) append(outcome.warnings.cautions, config::port_cautions(loaded_.chain));
  if (outcome.what != What::dry_run) {
    {
      const std::lock_guard lock(mutex_);
      last_ = outcome;
    }
    listener_.ended(outcome);
  }
  return outcome;
}

Warnings Reloader::warnings() const {
  Errors of_ports = config::port_cautions(loaded_.chain);
  Errors further = further_cautions_();
  const std::lock_guard lock(mutex_);
  Warnings warnings{loaded_.unsupported, loaded_.without_effect, loaded_.cautions};
  append(warnings.cautions, std::move(of_ports));
  append(warnings.cautions, std::move(further));
  return warnings;
}

std::optional<ReloadOutcome> Reloader::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

}  // namespace penstock::control
