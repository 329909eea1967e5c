// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/function_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/chain_description.h"
#include "config/function_builder.h"
#include "config/yaml_file.h"

namespace penstock::config {

namespace {

/// Of a file with exactly one function, which runs here.
Result<ChainDescription> describe_function(const std::string& path, function::NfKinds functions) {
  const auto file = YamlFile::read(path);
  if (!file) return failure(file.error());
  if (auto within = file->check_bounds(); !within) return failure(std::move(within.error()));
  ChainDescription description = describe_functions(*file, functions);
  Errors& errors = description.errors;
  if (errors.empty() && (description.functions.size() != 1 || !description.forks.empty()))
    errors.push_back({description.chain_place, "chain: a process of its own is for one function",
                      description.forks.empty() ? fmt::format("{} functions", description.functions.size()) : "a fork",
                      "one function"});
  if (errors.empty() && description.functions.front().in_process)
    errors.push_back({description.functions.front().parameters->place("process"),
                      "process: the function of this file runs in its own process", "", "the function's parameters"});
  if (!errors.empty()) return failure(in_file_order(std::move(errors)));
  return description;
}

/// Only those of the function have a meaning here.
void check_outputs(const ChainDescription& description, const function::NfKind& kind, Errors& errors) {
  for (const Parameter& output : description.output_table) {
    const std::string name(output.name);
    if (name == "append" || !description.outputs->has(name) || description.outputs->text(name) == output.default_text)
      continue;
    const auto declared = std::ranges::find(kind.outputs, output.name, &function::OutputKind::name);
    if (declared != kind.outputs.end() && declared->text == nullptr) continue;
    errors.push_back({description.outputs->place(name),
                      fmt::format("{}: not written by a function in a process of its own", name),
                      in_quotes(description.outputs->text(name)), "logs that the function writes"});
  }
}

}  // namespace

Result<std::unique_ptr<FunctionFile>> FunctionFile::load(std::string path, function::NfKinds functions) {
  const auto description = describe_function(path, functions);
  if (!description) return failure(description.error());
  std::unique_ptr<FunctionFile> file(new FunctionFile(std::move(path), functions));
  file->kind_ = description->functions.front().kind;
  Errors errors;
  check_outputs(*description, *file->kind_, errors);
  FunctionOutputs outputs;
  outputs.read(*description->outputs, functions, errors);
  if (!errors.empty()) return failure(in_file_order(std::move(errors)));
  file->named_logs_ = outputs.logs();
  file->logs_ = outputs.take_logs();
  return file;
}

Result<void> FunctionFile::open_logs() {
  for (const auto& log : logs_) {
    if (auto opened = log->open(); !opened) return opened;
    log->begin();
  }
  return {};
}

Errors FunctionFile::reopen_logs() {
  Errors errors;
  for (const auto& log : logs_) {
    if (auto reopened = log->reopen(); !reopened) append(errors, std::move(reopened.error()));
  }
  return errors;
}

Errors FunctionFile::close_logs() {
  Errors errors;
  for (const auto& log : logs_) append(errors, log->close());
  return errors;
}

Result<FunctionFile::Made> FunctionFile::make(std::string_view kind, const process::Surroundings& surroundings) const {
  if (kind != kind_->name)
    return failure(Error{{}, "another function is served here", in_quotes(kind), in_quotes(kind_->name)});
  const auto description = describe_function(path_, functions_);
  if (!description) return failure(description.error());
  if (description->functions.front().kind != kind_)
    return failure(Error{description->functions.front().place, "the file has another function by now",
                         in_quotes(description->functions.front().kind->name), in_quotes(kind_->name)});
  FunctionSurroundings of_chain;
  for (const process::Surroundings::Port& port : surroundings.ports) {
    of_chain.ports.push_back(port.name);
    of_chain.ports_read.push_back(port.reads);
    of_chain.ports_write.push_back(port.writes);
    of_chain.ports_live.push_back(port.is_live);
    of_chain.ports_answer.push_back(port.answers);
    if (surroundings.knows_exits) of_chain.exits.push_back(port.exit);
  }
  of_chain.logs = named_logs_;
  of_chain.own_process = true;
  of_chain.out_port_known = surroundings.out_port_known;
  BuiltFunctions built = build_functions(*description, of_chain);
  if (!built.errors.empty()) return failure(in_file_order(std::move(built.errors)));
  return Made{std::move(built.functions.front().function), std::move(built.unsupported),
              std::move(built.without_effect), std::move(built.cautions)};
}

}  // namespace penstock::config
