// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/filter_pass.h"

#include <algorithm>
#include <bit>

namespace penstock::cli {

Errors FilterPass::run(const std::atomic<bool>& stop) {
  Errors errors;
  for (bool goes_on = true; goes_on && !stop.load(std::memory_order_relaxed);) {
    const std::span<const port::RawRecord> records = reader_->next();
    if (records.empty()) {
      errors = reader_->errors();
      break;
    }
    packets_ += records.size();
    goes_on = take(records);
    if (report_) report_(packets_);
  }
  for (Filter& filter : filters_) {
    if (filter.output) append(errors, filter.output->close());
  }
  return errors;
}

bool FilterPass::take(std::span<const port::RawRecord> records) {
  batch_.clear();
  for (const port::RawRecord& record : records) batch_.push_back({record.data, record.length, record.wire_length});
  if (take_returns_) {
    returns_.resize(batch_.size());
    engine_->run(0, batch_, returns_.data());
    return take_returns_(returns_);
  }
  bits_.reset(filters_.size(), batch_.size());
  engine_->match(batch_, bits_);
  bool any_left = false;
  for (std::size_t program = 0; program < filters_.size(); ++program) {
    Filter& filter = filters_[program];
    select(filter, bits_.row(program), records);
    any_left |= filter.matches < most_;
    if (!filter.output) continue;
    filter.output->end_batch(reader_->is_live());
    if (filter.output->failed()) return false;
  }
  return any_left;
}

void FilterPass::select(Filter& filter, std::span<const std::uint64_t> bits,
                        std::span<const port::RawRecord> records) noexcept {
  for (std::size_t word = 0; word < bits.size(); ++word) {
    for (std::uint64_t left = bits[word]; left != 0 && filter.matches < most_; left &= left - 1) {
      ++filter.matches;
      if (!filter.output) continue;
      filter.output->add(records[word * MatchBits::kWordBits + static_cast<std::size_t>(std::countr_zero(left))]);
    }
  }
}

}  // namespace penstock::cli
