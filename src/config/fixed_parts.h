// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a chain that a reload cannot change: its ports, its wiring, the sections `run` and `outputs`, and which
// functions it has in which order, on which processors and in which forks. Kept in a normal form, so that a new version
// of the chain file can be compared with what is running. Layout, comments, the order of keys and explicit defaults
// make no difference.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::config {

struct ChainDescription;

struct FixedParts {
  struct Part {
    std::string name;   // "run.workers", "ports.lan", "ports.lan.pcap.read"; for the chain: what it is
    std::string form;   // equal if the meaning is
    std::string shown;  // for messages
    Place place;
  };
  /// Sections whose parts are unknown, because they have mistakes: "run", "ports.lan".
  std::vector<std::string> unknown;
  std::vector<Part> values;  // by their names
  /// The functions, each with its processor, and the structure of forks, in the order of the file. The form is empty
  /// where a mistake hides it.
  std::vector<Part> chain;
  bool chain_known = true;  // false: mistakes hide how many parts it has
  /// The places of sections, for parts that are missing in them: "run", "outputs", "ports", "wire", "chain".
  std::vector<Part> sections;
  Place file;
};

[[nodiscard]] FixedParts fixed_parts(const ChainDescription& description);

/// An error for each difference, at its place in the new file, with the running chain's value.
[[nodiscard]] Errors check_unchanged(const FixedParts& running, const FixedParts& next);

}  // namespace penstock::config
