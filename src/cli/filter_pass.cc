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
  if (take_returns_) return run_for_returns();
  bits_.reset(filters_.size(), batch_.size());
  engine_->match(batch_, bits_);
  bool any_left = false;
  std::size_t end = 0;
  for (std::size_t program = 0; program < filters_.size(); ++program) {
    end = std::max(end, select(filters_[program], bits_.row(program), records));
    any_left |= filters_[program].matches < most_;
  }
  packets_ += end;
  for (Filter& filter : filters_) {
    if (!filter.output) continue;
    filter.output->end_batch(reader_->is_live());
    if (filter.output->failed()) return false;
  }
  return any_left;
}

bool FilterPass::run_for_returns() {
  returns_.resize(batch_.size());
  engine_->run(0, batch_, returns_.data());
  std::uint64_t& matches = filters_.front().matches;
  std::size_t end = 0;
  while (end < returns_.size() && matches < most_) matches += returns_[end++] != 0 ? 1 : 0;
  packets_ += end;
  return take_returns_(std::span(returns_).first(end)) && matches < most_;
}

std::size_t FilterPass::select(Filter& filter, std::span<const std::uint64_t> bits,
                               std::span<const port::RawRecord> records) noexcept {
  if (filter.matches >= most_) return 0;
  for (std::size_t word = 0; word < bits.size(); ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1) {
      const std::size_t record = word * MatchBits::kWordBits + static_cast<std::size_t>(std::countr_zero(left));
      if (filter.output) filter.output->add(records[record]);
      if (++filter.matches == most_) return record + 1;
    }
  }
  return records.size();
}

}  // namespace penstock::cli
