// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary input as a record. If it can be read, it is written and read again with the same result, and rendered.

#include "experiments/record.h"

#include <cstdlib>

#include "experiments/catalog.h"
#include "experiments/figure.h"
#include "experiments/record_check.h"
#include "experiments/summary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::experiments;
  const auto record = parse_record({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!record) return 0;
  const auto again = parse_record(to_json(*record), "again");
  if (!again || *again != *record) std::abort();
  for (const Experiment* const experiment : experiments()) {
    static_cast<void>(check_record(*record, *experiment, "fuzz"));
    static_cast<void>(summary(*experiment, *record, Style::terminal));
    for (const Figure& figure : experiment->figures()) {
      for (const Style style : {Style::terminal, Style::markdown}) static_cast<void>(table(figure, *record, style));
      static_cast<void>(plot_svg(figure, *record));
    }
  }
  return 0;
}
