// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// ClassBench sets with their traces, from the corpus of test data, if it is there.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "classify/key.h"

namespace penstock::firewall {

/// The text of a file of the corpus, such as "classify/acl_1k", or of its gzipped form; empty if it is absent.
[[nodiscard]] std::optional<std::string> corpus_text(const std::string& path);

/// The trace's lines as keys: `SOURCE DESTINATION SOURCE-PORT DESTINATION-PORT PROTOCOL …`, all decimal.
[[nodiscard]] std::vector<classify::Key> trace_keys(const std::string& text, NetworkLayer family);

/// The files of a set are NAME, NAME_trace, NAME_truth, or, for 100k rules, NAME.rules and so on.
struct CorpusSet {
  std::string rules;
  std::vector<classify::Key> keys;
  std::vector<std::int64_t> truth;  // empty if the corpus has none
};
[[nodiscard]] std::optional<CorpusSet> corpus_set(const std::string& name);

}  // namespace penstock::firewall
