// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/content_search.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

namespace penstock::nids {

namespace {

constexpr std::size_t kBlock = 32;  // bytes of an AVX2 register

constexpr std::array<std::uint8_t, 256> kLower = [] {
  std::array<std::uint8_t, 256> lower{};
  for (unsigned i = 0; i < 256; ++i) lower[i] = to_lower(static_cast<std::uint8_t>(i));
  return lower;
}();

/// How frequent a byte is in payloads, text and binary together. Only the order matters.
constexpr unsigned usualness(std::uint8_t byte) {
  constexpr std::string_view kLetters = "etaoinsrlhdcumpfgwybvkxjqz";
  if (byte == 0) return 255;
  if (byte == ' ') return 240;
  if (byte == 0xff) return 200;
  if (const std::size_t rank = kLetters.find(static_cast<char>(byte)); rank != std::string_view::npos) {
    return 230 - 4 * static_cast<unsigned>(rank);
  }
  if (byte == '0' || byte == '1' || byte == '\r' || byte == '\n') return 190;
  if (byte == '/' || byte == '.' || byte == '-' || byte == ':' || byte == '=') return 170;
  if (byte >= '2' && byte <= '9') return 150;
  if (byte >= 'A' && byte <= 'Z') return 120;
  if (byte <= 4) return 140;
  return byte < 0x80 ? 100 : 80;
}

const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;

}  // namespace

ContentSearch::ContentSearch(std::span<const std::uint8_t> content, bool nocase)
    : content_(content.begin(), content.end()), nocase_(nocase) {
  if (nocase_) std::ranges::transform(content_, content_.begin(), to_lower);
  const auto probe = [&](std::size_t at) {
    const std::uint8_t byte = content_[at];
    const bool letter = nocase_ && byte >= 'a' && byte <= 'z';
    return Probe{static_cast<std::uint32_t>(at), byte, static_cast<std::uint8_t>(letter ? 0x20 : 0)};
  };
  std::size_t rarest = 0, next = content_.size() > 1 ? 1 : 0;
  if (usualness(content_[next]) < usualness(content_[rarest])) std::swap(rarest, next);
  for (std::size_t i = 2; i < content_.size(); ++i) {
    if (usualness(content_[i]) < usualness(content_[rarest])) {
      next = rarest;
      rarest = i;
    } else if (usualness(content_[i]) < usualness(content_[next])) {
      next = i;
    }
  }
  first_ = probe(rarest);
  second_ = probe(next);
}

bool ContentSearch::is_at(const std::uint8_t* text) const noexcept {
  if (!nocase_) return std::memcmp(text, content_.data(), content_.size()) == 0;
  for (std::size_t i = 0; i < content_.size(); ++i) {
    if (kLower[text[i]] != content_[i]) return false;
  }
  return true;
}

std::int64_t ContentSearch::find_plain(const std::uint8_t* text, std::size_t places,
                                       std::uint64_t& compared) const noexcept {
  for (std::size_t i = 0; i < places; ++i) {
    if ((text[i + first_.at] | first_.fold) != first_.byte) continue;
    if ((text[i + second_.at] | second_.fold) != second_.byte) continue;
    compared += content_.size();
    if (is_at(text + i)) return static_cast<std::int64_t>(i);
  }
  return -1;
}

[[gnu::target("avx2")]] std::int64_t ContentSearch::find_avx2(const std::uint8_t* text, std::size_t places,
                                                              std::uint64_t& compared) const noexcept {
  const __m256i first = _mm256_set1_epi8(static_cast<char>(first_.byte));
  const __m256i first_fold = _mm256_set1_epi8(static_cast<char>(first_.fold));
  const __m256i second = _mm256_set1_epi8(static_cast<char>(second_.byte));
  const __m256i second_fold = _mm256_set1_epi8(static_cast<char>(second_.fold));
  std::size_t from = 0;
  std::uint32_t keep = ~std::uint32_t{0};
  for (;;) {
    const auto* const at_first = reinterpret_cast<const __m256i*>(text + from + first_.at);
    const auto* const at_second = reinterpret_cast<const __m256i*>(text + from + second_.at);
    const __m256i is_first = _mm256_cmpeq_epi8(_mm256_or_si256(_mm256_loadu_si256(at_first), first_fold), first);
    const __m256i is_second = _mm256_cmpeq_epi8(_mm256_or_si256(_mm256_loadu_si256(at_second), second_fold), second);
    auto both = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_and_si256(is_first, is_second))) & keep;
    for (; both != 0; both &= both - 1) {
      const std::size_t place = from + static_cast<std::size_t>(std::countr_zero(both));
      compared += content_.size();
      if (is_at(text + place)) return static_cast<std::int64_t>(place);
    }
    from += kBlock;
    if (from >= places) return -1;
    if (from + kBlock > places) {
      // The last block overlaps the previous one, so that nothing past the end of the text is read.
      keep = ~std::uint32_t{0} << (from + kBlock - places);
      from = places - kBlock;
    }
  }
}

std::int64_t ContentSearch::find(std::span<const std::uint8_t> text, std::uint64_t& compared) const noexcept {
  if (text.size() < content_.size()) return -1;
  const std::size_t places = text.size() - content_.size() + 1;
  return places >= kBlock && kHasAvx2 ? find_avx2(text.data(), places, compared)
                                      : find_plain(text.data(), places, compared);
}

}  // namespace penstock::nids
