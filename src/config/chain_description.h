// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The content of a chain file, with the place of each value: read from YAML, and checked against the tables of
// parameters. Nothing is built or decided here; see chain_builder.h.

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
  Place place{};  // of the name
  const port::PortKind* kind = nullptr;
  std::optional<Parameters> parameters{};  // empty: there are mistakes
};

struct FunctionDescription {
  Place place{};                           // of its item in the list
  const function::NfKind* kind = nullptr;  // null: unknown
  std::optional<Parameters> parameters{};  // with function::kCommonParameters; empty: there are mistakes
  bool in_process = false;                 // its parameters are those of process::remote_parameters instead of its own
};

/// A port name in `wire` or `when`.
struct PortName {
  std::string text;   // empty if the value is not a single word
  std::string found;  // for errors
  Place place;
};
[[nodiscard]] PortName read_port_name(const YamlFile& file, const YAML::Node& node);

/// One condition of an arm's `when`. All given parts must hold.
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
  bool complete = false;                   // no mistakes, except perhaps in its functions
  std::vector<ConditionDescription> when;  // one of these must hold; empty: the arm takes all remaining packets
  std::size_t first = 0;                   // functions [first, last) of the chain
  std::size_t last = 0;
};

struct ForkDescription {
  Place place{};          // of its item in the list
  bool complete = false;  // no mistakes, except perhaps in its arms
  std::size_t first = 0;  // functions [first, last) of the chain, for all arms
  std::size_t last = 0;
  std::vector<ArmDescription> arms;
};

struct ChainDescription {
  Place place;  // of the whole file

  /// The section `run`.
  Place run_place;
  std::vector<RawParameter> run_given;  // includes values with mistakes
  std::optional<Parameters> run;        // empty: there are mistakes
  Place outputs_place;
  std::vector<Parameter> output_table;  // of the section `outputs`
  std::optional<Parameters> outputs;    // empty: there are mistakes

  Place ports_place;
  std::vector<PortDescription> ports;  // including those with mistakes, since other parts of the file may refer to them
  bool ports_complete = false;         // each port in the file has a name and is in `ports`

  Place chain_place;
  std::vector<FunctionDescription> functions;  // including those with mistakes; arm by arm within a fork
  std::vector<ForkDescription> forks;          // including those with mistakes
  bool functions_complete = true;              // each is of a known kind and has its parameters, and forks are complete

  Place wire_place;
  bool has_wire = false;
  std::vector<std::pair<PortName, PortName>> wires;

  std::vector<Parameters::File> files;  // all files that the file names, and first the file itself
  Errors errors;
};

[[nodiscard]] ChainDescription describe_chain(const YamlFile& file, ParameterTable run_table,
                                              function::NfKinds functions);
/// Of a file that has only the sections `chain` and `outputs`, for chains in other processes.
[[nodiscard]] ChainDescription describe_functions(const YamlFile& file, function::NfKinds functions);

}  // namespace penstock::config
