// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `outputs` of a chain file: general outputs, and those that the kinds of functions declare
// (function/output.h).

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "function/network_function.h"
#include "report/event_log.h"

namespace penstock::config {

/// The keys of `outputs` in chains of these functions.
[[nodiscard]] std::vector<Parameter> output_parameters(function::NfKinds functions);

/// Declarations that contradict general outputs or each other: errors in the program, not in a chain file.
[[nodiscard]] Errors check_declared_outputs(function::NfKinds functions);

/// A text that functions of the chain write (OutputKind::text).
struct TextOutput {
  const function::OutputKind* kind;
  std::string path;
  std::vector<const function::NetworkFunction*> functions;  // of the chain, which owns them
};

[[nodiscard]] Result<void> write_text_outputs(std::span<const TextOutput> outputs);

/// The functions' outputs that one chain file names, while the chain is built.
class FunctionOutputs {
 public:
  /// `given`: the section, read by output_parameters(functions).
  void read(const Parameters& given, function::NfKinds functions, Errors& errors);
  /// For NfContext: the logs that functions of this kind write to.
  [[nodiscard]] std::vector<function::NamedLog> logs_of(const function::NfKind& kind) const;
  void add_writer(const function::NfKind& kind, const function::NetworkFunction& function);
  /// After the last function: outputs that no function writes are reported and left out, so that files stay as they
  /// are.
  void leave_out_unwritten(Errors& errors, Errors& without_effect);

  /// In the order of declaration. Functions that have been made may hold pointers to these logs.
  [[nodiscard]] std::vector<std::unique_ptr<report::EventLog>> take_logs();
  [[nodiscard]] std::vector<TextOutput> take_texts();

 private:
  struct Output {
    const function::OutputKind* kind;
    std::string_view declared_by;  // the first kind of function
    Place place;
    std::string path;
    std::unique_ptr<report::EventLog> log;  // null: a text
    std::vector<const function::NetworkFunction*> writers{};
  };
  std::vector<Output> outputs_;
};

}  // namespace penstock::config
