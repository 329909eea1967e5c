// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a chain file says, with the place of each value: read from YAML and checked by the tables of parameters. Nothing
// is built or decided here; chain_builder.h does that.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "config/yaml_file.h"
#include "function/network_function.h"
#include "port/catalog.h"

namespace penstock::config {

struct PortDescription {
  std::string name;
  const port::PortKind* kind = nullptr;
  std::optional<Parameters> parameters{};  // none: there are mistakes
};

struct FunctionDescription {
  const function::NfKind* kind = nullptr;
  std::optional<Parameters> parameters{};  // none: there are mistakes
};

/// The name of a port in `wire` or `when`.
struct PortName {
  std::string text;   // empty if the value is not a word
  std::string found;  // for errors
  Place place;
};
[[nodiscard]] PortName read_port_name(const YamlFile& file, const YAML::Node& node);

/// One condition of an arm's `when`: all parts that are given must hold.
struct ConditionDescription {
  struct Ports {
    Place place;  // of the key
    std::vector<PortName> names;
  };
  std::optional<Ports> in_port;
  std::optional<Ports> out_port;
};

struct ArmDescription {
  Place place;
  bool complete = false;                   // without mistakes, but for those of its functions
  std::vector<ConditionDescription> when;  // one of these must hold; empty: the arm takes all packets that are left
  std::size_t first = 0;                   // functions [first, last) of the chain
  std::size_t last = 0;
};

struct ForkDescription {
  bool complete = false;  // without mistakes, but for those of its arms
  std::size_t first = 0;  // functions [first, last) of the chain: those of all arms
  std::size_t last = 0;
  std::vector<ArmDescription> arms;
};

struct ChainDescription {
  /// The section `run`.
  std::vector<RawParameter> run_given;  // also values with mistakes
  std::optional<Parameters> run;        // none: there are mistakes
  std::optional<Parameters> outputs;    // none: there are mistakes

  Place ports_place;
  std::vector<PortDescription> ports;  // with mistakes, too: other parts of the file may refer to them
  bool ports_complete = false;         // each port of the file has a name, and is in `ports`

  std::vector<FunctionDescription> functions;  // with mistakes, too; those of arms one arm after the other
  std::vector<ForkDescription> forks;          // with mistakes, too
  bool functions_complete = true;              // each is of a known kind and has its parameters; forks are complete

  bool has_wire = false;
  std::vector<std::pair<PortName, PortName>> wires;

  std::vector<Parameters::File> files;  // all that the file names, itself first
  Errors errors;
};

[[nodiscard]] ChainDescription describe_chain(const YamlFile& file, ParameterTable run_table,
                                              function::NfKinds functions);

}  // namespace penstock::config
