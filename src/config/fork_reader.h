// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the forks of a chain file:
//
//     - fork:
//         - {when: {in_port: lan}, chain: [nids: {rules: lan.rules}]}
//         - {when: [{in_port: wan}, {out_port: [wan, dmz]}], chain: [firewall: {rules: wan.txt}]}
//         - {chain: []}

#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <functional>

#include "config/chain_description.h"
#include "config/yaml_file.h"

namespace penstock::config {

/// Whether an item of `chain` is a fork. Otherwise it is a function.
[[nodiscard]] bool is_fork(const YAML::Node& item);

/// The number of functions in the section `chain`, including those in arms.
[[nodiscard]] std::size_t count_functions(const YAML::Node& chain);

/// Adds a fork and its errors to `chain`. `read_function` is called to add a function.
void read_fork(const YamlFile& file, const YAML::Node& item, ChainDescription& chain,
               const std::function<void(const YAML::Node&)>& read_function);

}  // namespace penstock::config
