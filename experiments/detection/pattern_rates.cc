// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/detection/pattern_rates.h"

#include <memory>

namespace penstock::experiments {
namespace {

/// One thread, with its position in the text, which wraps around.
class Scanner {
 public:
  Scanner(const nids::PatternMatcher& matcher, std::size_t literals, std::span<const std::uint8_t> text,
          std::size_t block, std::size_t first)
      : matcher_(matcher), scratch_(matcher.make_scratch()), found_(literals), text_(text), block_(block), at_(first) {}

  /// Returns the number of bytes scanned.
  std::size_t operator()() {
    constexpr std::size_t kBlocks = 256;
    for (std::size_t i = 0; i < kBlocks; ++i) {
      if (at_ + block_ > text_.size()) at_ = 0;
      found_.clear();
      matcher_.scan(text_.subspan(at_, block_), scratch_.get(), found_);
      at_ += block_;
    }
    return kBlocks * block_;
  }

 private:
  const nids::PatternMatcher& matcher_;
  std::unique_ptr<nids::PatternMatcher::Scratch> scratch_;
  nids::LiteralSet found_;
  std::span<const std::uint8_t> text_;
  std::size_t block_;
  std::size_t at_;
};

}  // namespace

Result<std::vector<double>> measure_hyperscan(std::span<const nids::Literal> literals,
                                              std::span<const std::uint8_t> text, std::size_t block, unsigned cores,
                                              const Timing& timing) {
  auto matcher = nids::make_pattern_matcher(nids::MatcherKind::hyperscan, literals);
  if (!matcher) return tl::unexpected(std::move(matcher.error()));
  return rates_on_cores(cores, timing, [&](unsigned core) {
    return Scanner(**matcher, literals.size(), text, block, text.size() / cores * core);
  });
}

}  // namespace penstock::experiments
