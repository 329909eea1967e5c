// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `outputs` of a chain file: general outputs, and outputs that the kinds of functions declare
// (function/output.h).

#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "function/network_function.h"
#include "report/event_log.h"

namespace penstock::config {

/// The valid keys of `outputs` in chains of these functions.
[[nodiscard]] std::vector<Parameter> output_parameters(function::NfKinds functions);

/// Errors about declarations that contradict general outputs or each other. These are errors in the program, not in a
/// chain file.
[[nodiscard]] Errors check_declared_outputs(function::NfKinds functions);

/// A text that functions of the chain write (OutputKind::text).
struct TextOutput {
  const function::OutputKind* kind;
  std::string path;
  std::vector<const function::NetworkFunction*> functions;  // owned by the chain
};

[[nodiscard]] Result<void> write_text_outputs(std::span<const TextOutput> outputs);

/// For NfContext: those of the logs that functions of this kind write.
[[nodiscard]] std::vector<function::NamedLog> logs_of(const function::NfKind& kind,
                                                      std::span<const function::NamedLog> logs);
/// Whether functions of this kind write the output.
[[nodiscard]] bool writes_output(const function::NfKind& kind, std::string_view output);

/// The functions' outputs that a chain file names, while the chain is being built.
class FunctionOutputs {
 public:
  /// `given` is the section, read with the table output_parameters(functions).
  void read(const Parameters& given, function::NfKinds functions, Errors& errors);
  /// The logs, in order of declaration.
  [[nodiscard]] std::vector<function::NamedLog> logs() const;
  void add_writer(const function::NfKind& kind, const function::NetworkFunction& function);
  /// Call it after the last function. Reports and removes outputs that no function writes, so that their files stay
  /// unchanged.
  void leave_out_unwritten(Errors& errors, Errors& without_effect);

  /// The logs as in `logs`. Existing functions may have pointers to them.
  [[nodiscard]] std::vector<std::unique_ptr<report::EventLog>> take_logs();
  [[nodiscard]] std::vector<TextOutput> take_texts();

 private:
  struct Output {
    const function::OutputKind* kind;
    std::string_view declared_by;  // the first kind of function that declares it
    Place place;
    std::string path;
    std::unique_ptr<report::EventLog> log;  // null for a text
    std::vector<const function::NetworkFunction*> writers{};
  };
  std::vector<Output> outputs_;
};

}  // namespace penstock::config
