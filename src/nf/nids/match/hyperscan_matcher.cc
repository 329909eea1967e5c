// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/match/hyperscan_matcher.h"

#include <fmt/format.h>
#include <hs.h>

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace penstock::nids {

namespace {

struct DatabaseDeleter {
  void operator()(hs_database_t* database) const noexcept { hs_free_database(database); }
};
struct ScratchDeleter {
  void operator()(hs_scratch_t* scratch) const noexcept { hs_free_scratch(scratch); }
};
using Database = std::unique_ptr<hs_database_t, DatabaseDeleter>;
using HsScratch = std::unique_ptr<hs_scratch_t, ScratchDeleter>;

int add_found(unsigned literal, unsigned long long /*from*/, unsigned long long /*to*/, unsigned /*flags*/,
              void* found) noexcept {
  static_cast<LiteralSet*>(found)->add(literal);
  return 0;
}

class HyperscanMatcher final : public PatternMatcher {
 public:
  struct OwnScratch final : Scratch {
    OwnScratch(HsScratch own, std::size_t longest_end) : hs(std::move(own)), end(longest_end + kReadPastText) {}
    HsScratch hs;
    std::vector<std::uint8_t> end;  // a copy of the text's end, padded
  };

  /// A null database means that there are no literals.
  HyperscanMatcher(Database database, HsScratch scratch, std::size_t literals, std::size_t longest_literal)
      : database_(std::move(database)),
        scratch_(std::move(scratch)),
        literals_(literals),
        longest_end_(kReadPastText + longest_literal) {
    if (database_) hs_database_size(database_.get(), &bytes_);
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    if (!database_) return nullptr;
    hs_scratch_t* clone = nullptr;
    if (hs_clone_scratch(scratch_.get(), &clone) != HS_SUCCESS) throw std::bad_alloc();
    return std::make_unique<OwnScratch>(HsScratch(clone), longest_end_);
  }

  void scan(std::span<const std::uint8_t> text, Scratch* scratch, LiteralSet& found) const noexcept override {
    if (!database_ || text.empty()) return;
    auto& own = *static_cast<OwnScratch*>(scratch);
    if (!ends_near_a_page_end(text)) return scan_in_place(text, own, found);
    // Matches that end before the last bytes are found in place, the others in a copy of the end.
    if (text.size() > longest_end_) scan_in_place(text.first(text.size() - kReadPastText), own, found);
    const auto end = text.last(std::min(text.size(), longest_end_));
    std::ranges::copy(end, own.end.begin());
    scan_in_place(std::span<const std::uint8_t>(own.end).first(end.size()), own, found);
  }

  std::string description() const override {
    return fmt::format("Hyperscan, {}, {} KiB", format_count(literals_, "literal"), (bytes_ + 1023) / 1024);
  }
  std::size_t bytes() const noexcept override { return bytes_; }

 private:
  /// Hyperscan 5.4.0 loads whole vectors and, with AVX-512, reads past the end of a text. That is harmless on the
  /// text's own page, but the next page may not be mapped.
  static constexpr std::size_t kReadPastText = 64;

  static bool ends_near_a_page_end(std::span<const std::uint8_t> text) noexcept {
    constexpr std::uintptr_t kSmallestPage = 4096;
    const auto end = reinterpret_cast<std::uintptr_t>(text.data() + text.size());
    return (kSmallestPage - end % kSmallestPage) % kSmallestPage < kReadPastText;
  }

  void scan_in_place(std::span<const std::uint8_t> text, const OwnScratch& own, LiteralSet& found) const noexcept {
    // The length has 32 bits; packets and stream chunks are much shorter.
    constexpr std::size_t kMost = std::numeric_limits<unsigned>::max();
    const auto length = static_cast<unsigned>(std::min(text.size(), kMost));
    // It can only fail if the scratch belongs to another database or thread.
    static_cast<void>(hs_scan(database_.get(), reinterpret_cast<const char*>(text.data()), length, 0, own.hs.get(),
                              add_found, &found));
  }

  Database database_;
  HsScratch scratch_;  // workers clone it
  std::size_t literals_;
  std::size_t longest_end_;  // the longest end of a text that is scanned as a copy
  std::size_t bytes_ = 0;
};

tl::unexpected<Errors> refused(std::string what) { return failure(Error{{}, "Hyperscan: " + std::move(what), {}, {}}); }

/// The bytes as an expression that writes each as a number. Hyperscan recognises it as a literal. Its functions for
/// pure literals treat one that begins with a zero byte as empty.
std::string expression_of(const Literal& literal) {
  std::string expression;
  for (const std::uint8_t byte : literal.bytes) expression += fmt::format("\\x{:02x}", byte);
  return expression;
}

Result<std::unique_ptr<PatternMatcher>> compile(std::span<const Literal> literals) {
  // A literal needs to be reported only once. For short literals of that kind, Hyperscan has an engine that is twice as
  // fast on traffic, but it takes seconds to compile many literals of one byte.
  constexpr std::size_t kMostSingleBytes = 32;
  const auto is_single_byte = [](const Literal& literal) { return literal.bytes.size() == 1; };
  const bool few =
      static_cast<std::size_t>(std::count_if(literals.begin(), literals.end(), is_single_byte)) <= kMostSingleBytes;

  std::vector<std::string> expressions;
  std::vector<const char*> texts;
  std::vector<unsigned> flags;
  expressions.reserve(literals.size());
  for (const Literal& literal : literals) {
    texts.push_back(expressions.emplace_back(expression_of(literal)).c_str());
    const unsigned once = few || !is_single_byte(literal) ? HS_FLAG_SINGLEMATCH : 0;
    flags.push_back(once | (literal.nocase ? static_cast<unsigned>(HS_FLAG_CASELESS) : 0U));
  }
  std::vector<unsigned> indices(literals.size());
  std::iota(indices.begin(), indices.end(), 0U);

  hs_database_t* compiled = nullptr;
  hs_compile_error_t* mistake = nullptr;
  if (hs_compile_multi(texts.data(), flags.data(), indices.data(), static_cast<unsigned>(literals.size()),
                       HS_MODE_BLOCK, nullptr, &compiled, &mistake) != HS_SUCCESS) {
    std::string message = mistake->message;
    if (mistake->expression >= 0) message += fmt::format(" (literal {})", mistake->expression);
    hs_free_compile_error(mistake);
    return refused(std::move(message));
  }
  Database database(compiled);
  hs_scratch_t* scratch = nullptr;
  if (hs_alloc_scratch(database.get(), &scratch) != HS_SUCCESS) return refused("no memory for its scratch space");
  std::size_t longest = 0;
  for (const Literal& literal : literals) longest = std::max(longest, literal.bytes.size());
  return std::make_unique<HyperscanMatcher>(std::move(database), HsScratch(scratch), literals.size(), longest);
}

/// Whether the installed library finds literals at any position of a text that contains nothing else. Vectorscan, which
/// has the same interface and name, misses some near the end of a text on processors with AVX-512: 5.4.9 does, and
/// other versions before 5.4.13 may.
bool finds_all() {
  constexpr std::string_view kSets[][2] = {
      {"b", "b"}, {"c", "e"}, {"efd", "cab"}, {"eafb", "cdbc"}, {"abeeaec", "daecadbd"}};
  for (const auto& set : kSets) {
    std::vector<Literal> literals;
    for (const std::string_view text : set) literals.push_back({{text.begin(), text.end()}, false});
    const auto matcher = compile(literals);
    if (!matcher) return false;
    const auto scratch = (*matcher)->make_scratch();
    LiteralSet found(literals.size());
    for (std::size_t length = 8; length < 200; ++length) {
      for (std::size_t at = length - std::min<std::size_t>(length, 80); at + literals[0].bytes.size() <= length;
           at += 3) {
        std::vector<std::uint8_t> text(length, 'x');
        std::ranges::copy(literals[0].bytes, text.begin() + static_cast<std::ptrdiff_t>(at));
        found.clear();
        (*matcher)->scan(text, scratch.get(), found);
        if (found.list().empty()) return false;
      }
    }
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<PatternMatcher>> make_hyperscan_matcher(std::span<const Literal> literals) {
  static const bool kFindsAll = finds_all();
  if (!kFindsAll) {
    return failure({{},
                    "this version of Hyperscan misses strings on this processor",
                    hs_version(),
                    "Hyperscan 5.4.0 or later; or matcher: hashed_filter"});
  }
  if (literals.empty()) return std::make_unique<HyperscanMatcher>(nullptr, nullptr, 0, 0);
  return compile(literals);
}

}  // namespace penstock::nids
