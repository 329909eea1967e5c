// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds the functions of a chain and its forks from their description: for a new chain, and anew for a reload.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/chain_description.h"
#include "function/network_function.h"
#include "plan/fork.h"
#include "run/chain.h"

namespace penstock::config {

/// What functions may know about their chain.
struct FunctionSurroundings {
  std::vector<std::string> ports;          // names, by PortIndex
  std::vector<bool> ports_read;            // by PortIndex; true if that is unknown
  std::vector<bool> ports_write;           // ditto
  std::vector<bool> ports_live;            // ditto; false if unknown
  std::vector<bool> ports_answer;          // ditto
  std::vector<function::NamedLog> logs{};  // all logs of the chain
  std::vector<PortIndex> exits{};          // by PortIndex: the chain's wiring; empty: unknown
  bool out_port_known = false;             // before the first function
  bool own_process = false;                // the function is alone in this process
  /// In a reload: the running functions, whose places in the chain those of the description could take.
  std::span<const run::NamedFunction> running{};
};

struct BuiltFunctions {
  std::vector<run::NamedFunction> functions;  // without those that have mistakes
  std::vector<std::size_t> positions;         // of `functions` in the description
  std::vector<plan::Fork> forks;
  bool complete = false;        // nothing is missing because of mistakes
  bool out_port_known = false;  // on every path, a function chooses the output port
  Errors errors;
  Errors unsupported, without_effect, cautions;  // as in LoadedChain
};

/// Continues after mistakes, to report all of them. Functions and forks without parameters because of mistakes in the
/// description are left out.
[[nodiscard]] BuiltFunctions build_functions(const ChainDescription& description,
                                             const FunctionSurroundings& surroundings);

/// For `strict`: if something is unsupported, makes that errors, with a final one that says so.
void refuse_unsupported(Errors& unsupported, Errors& errors);

}  // namespace penstock::config
