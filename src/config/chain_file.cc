// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/chain_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/output_file.h"
#include "base/socket_path.h"
#include "base/text_file.h"
#include "config/chain_builder.h"
#include "config/chain_description.h"
#include "config/run_section.h"
#include "config/yaml_file.h"
#include "run/run.h"

namespace penstock::config {

Override override_by_option(std::string_view option, std::string path, std::string value) {
  std::string text = fmt::format("{} {}", option, value.empty() ? "''" : value);
  return {std::move(path), std::move(value), std::move(text)};
}

Result<Override> parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return failure(Error{{}, "--set: wrong value", in_quotes(text), "key.key=value"});
  }
  return Override{text.substr(0, equals), text.substr(equals + 1), "--set " + text};
}

Result<ChainDescription> describe(Result<YamlFile> file, const LoadOptions& options) {
  if (!file) return failure(std::move(file.error()));
  Errors errors;
  for (const Override& o : options.overrides) {
    if (auto set = file->set(o.path, o.value, o.text, "ports"); !set) append(errors, std::move(set.error()));
  }
  if (!errors.empty()) return failure(std::move(errors));
  if (auto within = file->check_bounds(); !within) return failure(std::move(within.error()));
  return describe_chain(*file, run_parameters(), options.functions);
}

namespace {

Result<LoadedChain> load(Result<YamlFile> file, const LoadOptions& options) {
  auto description = describe(std::move(file), options);
  if (!description) return failure(std::move(description).error());
  return build_chain(std::move(*description), options);
}

}  // namespace

Result<LoadedChain> load_chain(const std::string& path, const LoadOptions& options) {
  return load(YamlFile::read(path), options);
}

Result<LoadedChain> load_chain_text(const std::string& text, std::string name, const LoadOptions& options) {
  return load(YamlFile::of_text(text, std::move(name)), options);
}

Errors check_files(const LoadedChain& loaded) {
  Errors errors = run::check_system(loaded.chain);
  std::vector<const std::string*> paths{&loaded.report_path, &loaded.timeline_path};
  for (const TextOutput& text : loaded.texts) paths.push_back(&text.path);
  for (const std::string* const path : paths) {
    if (path->empty() || *path == "-") continue;
    if (auto writable = check_text_file_writable(*path); !writable) append(errors, std::move(writable.error()));
  }
  for (const auto& log : loaded.chain.logs) {
    if (log->path() == "-") continue;
    if (auto named = check_compression(log->path()); !named) append(errors, std::move(named.error()));
    if (auto writable = check_writable(log->path()); !writable) append(errors, std::move(writable.error()));
  }
  if (!loaded.log_path.empty()) {
    if (auto named = check_compression(loaded.log_path); !named) append(errors, std::move(named.error()));
    if (auto writable = check_writable(loaded.log_path); !writable) append(errors, std::move(writable.error()));
  }
  if (!loaded.control_path.empty()) {
    if (auto possible = check_socket_path(loaded.control_path); !possible) append(errors, std::move(possible.error()));
  }
  return placed(std::move(errors), loaded.files);
}

Errors port_cautions(const run::Chain& chain) {
  Errors cautions;
  for (const run::NamedPort& port : chain.ports) append(cautions, port.port->cautions());
  return cautions;
}

Errors busy_outputs(const LoadedChain& loaded) {
  Errors warnings;
  for (const Parameters::File& file : loaded.files) {
    if (!file.written || file.path == "-" || !is_being_written(file.path)) continue;
    warnings.push_back({file.place, "a running process is writing this file; until it ends, a run is refused",
                        in_quotes(file.path), "another file"});
  }
  return warnings;
}

}  // namespace penstock::config
