// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/chain_arguments.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <optional>

namespace penstock::cli {

void print_errors(const Errors& errors) {
  for (const Error& error : errors) fmt::print(stderr, "{}\n", to_string(error));
}

void print_unsupported(const Errors& unsupported) {
  constexpr std::size_t kMost = 20;
  for (std::size_t i = 0; i < unsupported.size() && i < kMost; ++i) {
    fmt::print(stderr, "warning: {}\n", to_string(unsupported[i]));
  }
  if (unsupported.size() > kMost) fmt::print(stderr, "warning: … and {} more\n", unsupported.size() - kMost);
  if (!unsupported.empty()) {
    fmt::print(stderr, "warning: {} construct{} left out; --strict makes this an error\n", unsupported.size(),
               unsupported.size() == 1 ? "" : "s");
  }
}

void ChainArguments::add_to(CLI::App& command) {
  command.add_option("CHAIN.yaml", file, "the chain file")->required();
  command
      .add_option("--set", sets,
                  "a value in place of the file's: --set run.workers=4, --set ports.lan.pcap.read=x.pcap,\n"
                  "--set chain.router.routes=full.txt")
      ->allow_extra_args(false)
      ->take_all();
  command.add_flag("--strict", strict, "what a reader of rules or routes does not support is an error");
}

std::optional<config::LoadedChain> ChainArguments::load(std::vector<config::Override> more, bool any_processor) const {
  config::LoadOptions options{{}, strict, any_processor};
  Errors errors;
  for (const std::string& text : sets) {
    auto parsed = config::parse_override(text);
    if (parsed) {
      options.overrides.push_back(std::move(*parsed));
    } else {
      append(errors, std::move(parsed.error()));
    }
  }
  for (config::Override& o : more) options.overrides.push_back(std::move(o));
  if (errors.empty()) {
    auto loaded = config::load_chain(file, options);
    if (loaded) return std::move(*loaded);
    errors = std::move(loaded.error());
  }
  print_errors(errors);
  return std::nullopt;
}

}  // namespace penstock::cli
