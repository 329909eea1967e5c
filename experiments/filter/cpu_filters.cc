// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/cpu_filters.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <utility>

#include "experiments/filter/random_packets.h"

namespace penstock::experiments {
namespace {

using Rules = std::vector<WordRule<kKeyWords>>;

class ScalarFilter final : public CpuFilter {
 public:
  ScalarFilter(Rules rules, Deciding deciding) : rules_(std::move(rules)), deciding_(deciding) {}
  void filter(std::span<const TupleKey> keys, std::uint32_t* numbers) const noexcept override {
    const auto count = static_cast<std::uint32_t>(rules_.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      numbers[i] = deciding_rule(rules_.data(), count, deciding_, words_of(keys[i]));
    }
  }

 private:
  Rules rules_;
  Deciding deciding_;
};

constexpr std::size_t kGroup = 16;

#if defined(__x86_64__)
const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;

/// A word of 16 keys.
struct Words {
  __m256i low, high;
};

/// Compares addresses first: they hardly ever match for any of the keys, and then the rule is done with. Takes the last
/// rule that matches; for Deciding::first, it goes through the rules from the last to the first.
[[gnu::target("avx2")]] void filter_group(const Rules& rules, Deciding deciding, const TupleKey* keys,
                                          std::uint32_t* numbers) noexcept {
  alignas(32) std::uint32_t words[kKeyWords][kGroup];
  for (std::size_t k = 0; k < kGroup; ++k) {
    const KeyWords key = words_of(keys[k]);
    for (unsigned i = 0; i < kKeyWords; ++i) words[i][k] = key.of[i];
  }
  Words of[kKeyWords];
  for (unsigned i = 0; i < kKeyWords; ++i) {
    of[i] = {_mm256_load_si256(reinterpret_cast<const __m256i*>(words[i])),
             _mm256_load_si256(reinterpret_cast<const __m256i*>(words[i] + kGroup / 2))};
  }
  const __m256i zero = _mm256_setzero_si256();
  Words found{zero, zero};
  const auto count = static_cast<std::uint32_t>(rules.size());
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint32_t r = deciding == Deciding::last ? n : count - 1 - n;
    const auto& fields = rules[r].fields;
    __m256i low = zero;
    __m256i high = zero;
    for (unsigned i = 0; i < kKeyWords; ++i) {
      const __m256i mask = _mm256_set1_epi32(static_cast<int>(fields[i].mask));
      const __m256i value = _mm256_set1_epi32(static_cast<int>(fields[i].value));
      low = _mm256_or_si256(low, _mm256_xor_si256(_mm256_and_si256(of[i].low, mask), value));
      high = _mm256_or_si256(high, _mm256_xor_si256(_mm256_and_si256(of[i].high, mask), value));
      if (i != 1) continue;
      const __m256i some = _mm256_or_si256(_mm256_cmpeq_epi32(low, zero), _mm256_cmpeq_epi32(high, zero));
      if (_mm256_testz_si256(some, some) != 0) break;  // `low` and `high` have no lane of 0 now
    }
    const __m256i match_low = _mm256_cmpeq_epi32(low, zero);
    const __m256i match_high = _mm256_cmpeq_epi32(high, zero);
    const __m256i any = _mm256_or_si256(match_low, match_high);
    if (_mm256_testz_si256(any, any) != 0) continue;
    const __m256i number = _mm256_set1_epi32(static_cast<int>(r + 1));
    found.low = _mm256_blendv_epi8(found.low, number, match_low);
    found.high = _mm256_blendv_epi8(found.high, number, match_high);
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(numbers), found.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(numbers + kGroup / 2), found.high);
}
#else
constexpr bool kHasAvx2 = false;
void filter_group(const Rules&, Deciding, const TupleKey*, std::uint32_t*) noexcept {}
#endif

class VectorFilter final : public CpuFilter {
 public:
  VectorFilter(Rules rules, Deciding deciding) : rules_(std::move(rules)), deciding_(deciding) {}
  void filter(std::span<const TupleKey> keys, std::uint32_t* numbers) const noexcept override {
    const std::size_t whole = kHasAvx2 ? keys.size() / kGroup * kGroup : 0;
    for (std::size_t i = 0; i < whole; i += kGroup) filter_group(rules_, deciding_, keys.data() + i, numbers + i);
    const auto count = static_cast<std::uint32_t>(rules_.size());
    for (std::size_t i = whole; i < keys.size(); ++i) {
      numbers[i] = deciding_rule(rules_.data(), count, deciding_, words_of(keys[i]));
    }
  }

 private:
  Rules rules_;
  Deciding deciding_;
};

class EngineFilter final : public CpuFilter {
 public:
  EngineFilter(std::unique_ptr<const classify::Ruleset> rules, std::unique_ptr<classify::Classifier> classifier,
               Deciding deciding)
      : rules_(std::move(rules)), classifier_(std::move(classifier)), deciding_(deciding) {}
  void filter(std::span<const TupleKey> keys, std::uint32_t* numbers) const noexcept override {
    const auto count = static_cast<std::uint32_t>(rules_->rules.size());
    std::array<classify::Key, classify::Classifier::kGroup> group;
    for (std::size_t first = 0; first < keys.size(); first += group.size()) {
      const std::size_t some = std::min(group.size(), keys.size() - first);
      for (std::size_t i = 0; i < some; ++i) group[i] = key_of(keys[first + i]);
      classifier_->classify(std::span(group).first(some), numbers + first);
      for (std::size_t i = 0; i < some; ++i) numbers[first + i] = number_of_entry(numbers[first + i], count, deciding_);
    }
  }

 private:
  std::unique_ptr<const classify::Ruleset> rules_;
  std::unique_ptr<classify::Classifier> classifier_;
  Deciding deciding_;
};

/// One thread, with its position among the keys and its result buffer.
class FilterLoop {
 public:
  FilterLoop(const CpuFilter& filter, std::span<const TupleKey> keys, std::size_t first)
      : filter_(filter), keys_(keys), at_(first), numbers_(kPiece) {}

  std::size_t operator()() {
    const std::size_t count = std::min(kPiece, keys_.size() - at_);
    filter_.filter(keys_.subspan(at_, count), numbers_.data());
    at_ = (at_ + count) % keys_.size();
    return count;
  }

 private:
  static constexpr std::size_t kPiece = 1024;  // 5 ms with 10,000 rules
  const CpuFilter& filter_;
  std::span<const TupleKey> keys_;
  std::size_t at_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace

std::unique_ptr<CpuFilter> make_scalar_filter(Rules rules, Deciding deciding) {
  return std::make_unique<ScalarFilter>(std::move(rules), deciding);
}

std::unique_ptr<CpuFilter> make_vector_filter(Rules rules, Deciding deciding) {
  return std::make_unique<VectorFilter>(std::move(rules), deciding);
}

Result<std::unique_ptr<CpuFilter>> make_engine_filter(std::string_view engine, const Rules& rules, Deciding deciding) {
  auto set = std::make_unique<const classify::Ruleset>(ruleset_of(rules, deciding));
  auto classifier = classify::make_classifier(classify::engine_of(engine), *set);
  if (!classifier) return tl::unexpected(std::move(classifier.error()));
  return std::make_unique<EngineFilter>(std::move(set), std::move(*classifier), deciding);
}

Result<std::vector<double>> filter_on_cores(const CpuFilter& filter, std::span<const TupleKey> keys,
                                            std::span<const std::uint32_t> expected, unsigned cores,
                                            const Timing& timing) {
  auto rates = rates_on_cores(cores, timing,
                              [&](unsigned core) { return FilterLoop(filter, keys, keys.size() / cores * core); });
  std::array<std::uint32_t, kGroup> numbers{};
  for (std::size_t i = 0; i < expected.size() && !timing.stop->load(); ++i) {
    // As a whole group, so that the code is checked that was measured.
    const std::size_t first = i * kCheckedStep;
    filter.filter(keys.subspan(first, std::min(kGroup, keys.size() - first)), numbers.data());
    if (numbers[0] == expected[i]) continue;
    return failure({{},
                    fmt::format("the CPU's result for packet {} is wrong", first),
                    std::to_string(numbers[0]),
                    std::to_string(expected[i])});
  }
  return rates;
}

}  // namespace penstock::experiments
