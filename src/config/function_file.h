// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A file with one function, which a process of its own serves to chains of others: the sections `chain` and `outputs`
// of a chain file. The function is made anew for each chain, from the file as it is then.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/outputs.h"
#include "function/network_function.h"
#include "process/description.h"

namespace penstock::config {

class FunctionFile {
 public:
  /// Reports the mistakes that can be found without a chain. `functions`: those that the file can name.
  [[nodiscard]] static Result<std::unique_ptr<FunctionFile>> load(std::string path, function::NfKinds functions);

  /// The function's kind.
  [[nodiscard]] std::string_view function() const noexcept { return kind_->name; }

  /// Opens the logs that the file names. Once, before a function is used.
  [[nodiscard]] Result<void> open_logs();
  /// EventLog::reopen of each, between the two others.
  [[nodiscard]] Errors reopen_logs();
  /// Once, when all functions that have been made are gone.
  [[nodiscard]] Errors close_logs();

  struct Made {
    std::unique_ptr<function::NetworkFunction> function;
    Errors unsupported, without_effect, cautions;  // as in LoadedChain
  };
  /// For a chain that asks for a function of this kind. It borrows the logs.
  [[nodiscard]] Result<Made> make(std::string_view kind, const process::Surroundings& surroundings) const;

 private:
  FunctionFile(std::string path, function::NfKinds functions) : path_(std::move(path)), functions_(functions) {}

  const std::string path_;
  const function::NfKinds functions_;
  const function::NfKind* kind_ = nullptr;
  std::vector<function::NamedLog> named_logs_;
  std::vector<std::unique_ptr<report::EventLog>> logs_;
};

}  // namespace penstock::config
