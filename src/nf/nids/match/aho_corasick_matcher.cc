// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/aho_corasick_matcher.h"

#include <fmt/format.h>

#include "base/units.h"
#include "nf/nids/match/aho_corasick_build.h"
#include "nf/nids/match/aho_corasick_core.h"

namespace penstock::nids {

namespace {

class AhoCorasickMatcher final : public PatternMatcher {
 public:
  explicit AhoCorasickMatcher(AhoCorasickTables tables) : tables_(std::move(tables)) {}

  std::unique_ptr<Scratch> make_scratch() const override { return nullptr; }

  void scan(std::span<const std::uint8_t> text, Scratch* /*scratch*/, LiteralSet& found) const noexcept override {
    const auto add = [&](std::uint32_t literal) { found.add(literal); };
    if (tables_.is_narrow()) {
      ac_scan(tables_.view<std::uint16_t>(), text.data(), text.data() + text.size(), add);
    } else {
      ac_scan(tables_.view<std::uint32_t>(), text.data(), text.data() + text.size(), add);
    }
  }

  std::string description() const override {
    return fmt::format("Aho-Corasick, {}, {} states of {} classes, {} KiB", format_count(tables_.literals, "literal"),
                       tables_.states, tables_.classes, (bytes() + 1023) / 1024);
  }
  std::size_t bytes() const noexcept override { return tables_.bytes(); }

 private:
  AhoCorasickTables tables_;
};

}  // namespace

Result<std::unique_ptr<PatternMatcher>> make_aho_corasick_matcher(std::span<const Literal> literals) {
  return build_aho_corasick(literals).map([](AhoCorasickTables tables) -> std::unique_ptr<PatternMatcher> {
    return std::make_unique<AhoCorasickMatcher>(std::move(tables));
  });
}

}  // namespace penstock::nids
