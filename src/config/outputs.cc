// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text_file.h"
#include "base/wipe.h"

namespace penstock::config {

namespace {

constexpr Parameter kReport{"report", ParameterType::output, "", "", "the report, as JSON"};

constexpr auto kGeneral = std::to_array<Parameter>({
    {"control", ParameterType::output, "", "",
     "unix socket at which `penstock ctl` finds the run; only its user can connect"},
    {"metrics.listen", ParameterType::text, "", "",
     "address and port at which Prometheus gets metrics, such as 127.0.0.1:9474 or [::1]:9474; a browser finds a page "
     "of the run there"},
    {"log.level", ParameterType::choice, "info", "error|warning|info|debug",
     "the least urgent messages to log; `penstock ctl log-level` changes it while packets flow"},
    {"log.to", ParameterType::output, "stderr", "stderr", "where `penstock run` logs what happens"},
    {"append", ParameterType::flag, "true", "", "append to existing logs; false: overwrite them in each run"},
    {"timeline", ParameterType::output, "", "",
     "times of transfers and kernels on the GPU for the last batches, for Perfetto and chrome://tracing"},
    {"timeline_batches", ParameterType::integer, "", "1..10000",
     "number of batches per stream to keep in the timeline, the most recent ones; default: 1000"},
});

bool is_log(const function::OutputKind& output) { return output.text == nullptr; }

/// Calls `use`(kind of function, output) for each output; only once for a log that several kinds write.
template <typename Use>
void for_each_output(function::NfKinds functions, Use&& use) {
  std::vector<std::string_view> seen;
  for (const function::NfKind* kind : functions) {
    for (const function::OutputKind& output : kind->outputs) {
      if (std::ranges::find(seen, output.name) != seen.end()) continue;
      seen.push_back(output.name);
      use(*kind, output);
    }
  }
}

}  // namespace

bool writes_output(const function::NfKind& kind, std::string_view output) {
  return std::ranges::find(kind.outputs, output, &function::OutputKind::name) != kind.outputs.end();
}

std::vector<function::NamedLog> logs_of(const function::NfKind& kind, std::span<const function::NamedLog> logs) {
  std::vector<function::NamedLog> written;
  std::ranges::copy_if(logs, std::back_inserter(written),
                       [&](const function::NamedLog& log) { return writes_output(kind, log.output); });
  return written;
}

std::vector<Parameter> output_parameters(function::NfKinds functions) {
  std::vector<Parameter> table{kReport};
  for_each_output(functions, [&](const function::NfKind&, const function::OutputKind& output) {
    table.push_back({output.name, ParameterType::output, "", "", output.help});
  });
  table.insert(table.end(), kGeneral.begin(), kGeneral.end());
  return table;
}

Errors check_declared_outputs(function::NfKinds functions) {
  Errors errors;
  const std::vector<Parameter> general = output_parameters({});
  std::vector<const function::OutputKind*> seen;
  for (const function::NfKind* kind : functions) {
    for (const function::OutputKind& output : kind->outputs) {
      const auto same = std::ranges::find(seen, output.name, &function::OutputKind::name);
      const bool is_general = std::ranges::find(general, output.name, &Parameter::name) != general.end();
      if (is_general || (same != seen.end() && !(is_log(**same) && is_log(output)))) {
        errors.push_back({{},
                          fmt::format("network function {} declares an output whose name is taken", kind->name),
                          in_quotes(output.name),
                          "another name"});
      }
      seen.push_back(&output);
    }
  }
  return errors;
}

Result<void> write_text_outputs(std::span<const TextOutput> outputs) {
  Errors errors;
  for (const TextOutput& output : outputs) {
    const bool secret = !output.kind->secret.empty();
    std::string text = output.kind->text(output.functions);
    auto written = output.path == "-"
                       ? write_stdout(text)
                       : write_text_file(output.path, text, secret ? FileAccess::owner : FileAccess::as_usual);
    if (secret) wipe(text.data(), text.size());
    if (!written) append(errors, std::move(written.error()));
  }
  if (!errors.empty()) return failure(std::move(errors));
  return {};
}

void FunctionOutputs::read(const Parameters& given, function::NfKinds functions, Errors& errors) {
  using Start = report::EventLog::Start;
  const Start start = given.flag("append") ? Start::append : Start::anew;
  for_each_output(functions, [&](const function::NfKind& kind, const function::OutputKind& output) {
    if (!given.has(output.name)) return;
    const std::string& path = given.text(output.name);
    const Place& place = given.place(output.name);
    if (!output.secret.empty() && path == "-") {
      errors.push_back({place, fmt::format("{}: {} cannot be written to standard output", output.name, output.secret),
                        "-", "a file"});
    }
    auto log = is_log(output) ? std::make_unique<report::EventLog>(path, start) : nullptr;
    outputs_.push_back({&output, kind.name, place, path, std::move(log)});
  });
}

std::vector<function::NamedLog> FunctionOutputs::logs() const {
  std::vector<function::NamedLog> logs;
  for (const Output& output : outputs_) {
    if (output.log != nullptr) logs.push_back({output.kind->name, output.log.get()});
  }
  return logs;
}

void FunctionOutputs::add_writer(const function::NfKind& kind, const function::NetworkFunction& function) {
  for (Output& output : outputs_) {
    if (writes_output(kind, output.kind->name)) output.writers.push_back(&function);
  }
}

void FunctionOutputs::leave_out_unwritten(Errors& errors, Errors& without_effect) {
  for (const Output& output : outputs_) {
    if (!output.writers.empty()) continue;
    const function::OutputKind& kind = *output.kind;
    if (is_log(kind)) {
      without_effect.push_back(
          {output.place, fmt::format("{}: no function of the chain writes it", kind.name), in_quotes(output.path),
           fmt::format("a function that writes {}, such as {}", kind.contents, output.declared_by)});
    } else {
      errors.push_back({output.place, fmt::format("{}: the chain has no {} function", kind.name, output.declared_by),
                        "", fmt::format("one with {}", kind.contents)});
    }
  }
  std::erase_if(outputs_, [](const Output& output) { return output.writers.empty(); });
}

std::vector<std::unique_ptr<report::EventLog>> FunctionOutputs::take_logs() {
  std::vector<std::unique_ptr<report::EventLog>> logs;
  for (Output& output : outputs_) {
    if (output.log != nullptr) logs.push_back(std::move(output.log));
  }
  return logs;
}

std::vector<TextOutput> FunctionOutputs::take_texts() {
  std::vector<TextOutput> texts;
  for (Output& output : outputs_) {
    if (!is_log(*output.kind)) texts.push_back({output.kind, output.path, std::move(output.writers)});
  }
  return texts;
}

}  // namespace penstock::config
