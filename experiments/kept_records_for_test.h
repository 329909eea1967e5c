// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The committed records of experiments (bench/results), for tests that all of them pass.

#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "base/text_file.h"
#include "experiments/catalog.h"
#include "experiments/record.h"

namespace penstock::experiments {

/// `folder` is PENSTOCK_RECORDS. `visit` gets the record's path, its experiment and the record. Fails if a record
/// cannot be read, or if there is none.
inline void for_each_kept_record(
    const char* folder, const std::function<void(const std::string&, const Experiment&, const Record&)>& visit) {
  std::size_t records = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path().string();
    const auto text = read_text_file(path);
    ASSERT_TRUE(text) << to_string(text.error());
    const auto record = parse_record(*text, path);
    if (!record) {  // of a benchmark or of the GPU tests
      ASSERT_EQ(record.error().front().message, "not a record of an experiment") << to_string(record.error());
      continue;
    }
    const Experiment* const experiment = find_experiment(record->experiment);
    ASSERT_NE(experiment, nullptr) << path;
    visit(path, *experiment, *record);
    ++records;
  }
  EXPECT_GT(records, 0U);
}

}  // namespace penstock::experiments
