// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/hashed_filter_matcher.h"

#include <fmt/format.h>

#include "base/units.h"
#include "nf/nids/match/hashed_filter_build.h"
#include "nf/nids/match/hashed_filter_core.h"

namespace penstock::nids {

namespace {

class HashedFilterMatcher final : public PatternMatcher {
 public:
  explicit HashedFilterMatcher(HashedFilterTables tables) : tables_(std::move(tables)), view_(tables_.view()) {}

  std::unique_ptr<Scratch> make_scratch() const override { return nullptr; }

  void scan(std::span<const std::uint8_t> text, Scratch* /*scratch*/, LiteralSet& found) const noexcept override {
    const auto add = [&](std::uint32_t literal) { found.add(literal); };
    if (view_.pairs) {
      scan_filtered<true>(view_, text.data(), text.data() + text.size(), add);
    } else {
      scan_filtered<false>(view_, text.data(), text.data() + text.size(), add);
    }
  }

  std::string description() const override {
    return fmt::format("hashed filter, {}, {} KiB of bits, {} KiB", format_count(tables_.literals, "literal"),
                       tables_.bit_bytes() / 1024, (bytes() + 1023) / 1024);
  }
  std::size_t bytes() const noexcept override { return tables_.bytes(); }

 private:
  HashedFilterTables tables_;
  HashedFilterView view_;
};

}  // namespace

Result<std::unique_ptr<PatternMatcher>> make_hashed_filter_matcher(std::span<const Literal> literals) {
  return build_hashed_filter(literals).map([](HashedFilterTables tables) -> std::unique_ptr<PatternMatcher> {
    return std::make_unique<HashedFilterMatcher>(std::move(tables));
  });
}

}  // namespace penstock::nids
