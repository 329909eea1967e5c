// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/contested_reading.h"

#include <algorithm>
#include <optional>
#include <variant>

namespace penstock::nids {

const Content* ContestedReader::longest_content(std::span<const BufferMatch> options) noexcept {
  const Content* longest = nullptr;
  for (const BufferMatch& option : options) {
    const auto* const content = std::get_if<Content>(&option);
    if (content == nullptr || content->negated) continue;
    if (longest == nullptr || content->bytes.size() > longest->bytes.size()) longest = content;
  }
  return longest;
}

void ContestedReader::lay_nothing(const ContestedText& text) noexcept {
  reading_.begin(text);
  content_ends_.fill(kNotLaid);
}

bool ContestedReader::lay_contents(const ContestedText& text, std::span<const BufferMatch> options,
                                   const Content& first, std::size_t place) noexcept {
  lay_nothing(text);
  if (!reading_.lay(text, place, first.bytes, first.nocase)) return false;
  std::size_t end = 0;  // end of the previous content
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto* const content = std::get_if<Content>(&options[i]);
    if (content == nullptr || content->negated) continue;
    const auto ends_at = [&](std::size_t at) {
      end = at + content->bytes.size();
      if (i < kMostOptions) content_ends_[i] = static_cast<std::uint32_t>(end);
    };
    if (content == &first) {
      ends_at(place);
      continue;
    }
    const auto lay_from = [&](std::size_t from) {
      auto at = text.find(content->bytes, content->nocase, from);
      while (at && !reading_.lay(text, *at, content->bytes, content->nocase)) {
        at = text.find(content->bytes, content->nocase, *at + 1);
      }
      return at;
    };
    std::optional<std::size_t> at = lay_from(end);
    if (!at && end > 0) at = lay_from(0);
    if (!at) return false;
    ends_at(*at);
  }
  return true;
}

std::optional<std::size_t> ContestedReader::end_before(std::span<const BufferMatch> options) const noexcept {
  for (std::size_t i = options.size(); i-- > 0;) {
    const BufferMatch& option = options[i];
    if (const auto* const content = std::get_if<Content>(&option); content != nullptr && !content->negated) {
      if (i >= kMostOptions || content_ends_[i] == kNotLaid) return std::nullopt;
      return content_ends_[i];
    }
    const bool moves = std::holds_alternative<Pcre>(option) || std::holds_alternative<ByteJump>(option);
    if (moves) return std::nullopt;
  }
  return 0;
}

void ContestedReader::begin_parties(const ContestedText& text, const stack::StreamChunk& chunk) noexcept {
  version_count_ = known_count_ = tried_ = 0;
  for (std::size_t i = chunk.versions.size(); i-- > 0;) {
    const Version& version = chunk.versions[i];
    const bool is_in = version.offset < chunk.offset + chunk.bytes.size() && version.end() > chunk.offset;
    if (version.possible && is_in) versions_[version_count_++] = &version;
  }
  random_.seed();
  reading_.begin(text);
}

bool ContestedReader::next_party(const ContestedText& text) noexcept {
  const std::size_t firsts = std::min(version_count_, kMostFirst);
  const std::size_t all = 1 + 2 * firsts + (version_count_ > 2 ? kMostAtRandom : 0);
  while (tried_ < all) {
    const std::size_t number = tried_++;
    if (number > 0) {  // the first reading is the buffer's own bytes
      std::copy_n(versions_.begin(), version_count_, order_.begin());
      auto* const begin = order_.data();
      auto* const end = begin + version_count_;
      if (number > 2 * firsts) {
        std::shuffle(begin, end, random_);
      } else {
        if (number % 2 == 0) std::reverse(begin, end);
        // Start from both ends, because most hosts keep either what came first or what came last.
        const std::size_t choice = (number - 1) / 2;
        const Version* const chosen = versions_[choice % 2 == 0 ? choice / 2 : version_count_ - 1 - choice / 2];
        auto* const first = std::find(begin, end, chosen);
        std::rotate(begin, first, first + 1);
      }
      lay_party(text);
    }
    if (!is_known()) return true;
  }
  return false;
}

void ContestedReader::lay_party(const ContestedText& text) noexcept {
  reading_.begin(text);
  const auto* const end = order_.data() + version_count_;
  auto* const others = std::stable_partition(order_.data(), order_.data() + version_count_,
                                             [&](const Version* version) { return reading_.lay(text, *version); });
  // From the other versions, take the bytes that no version in the party has: hosts trim overlapping segments.
  for (const Version* const* version = others; version != end; ++version) reading_.fill(text, **version);
}

bool ContestedReader::is_known() noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::uint8_t byte : bytes()) hash = (hash ^ byte) * 0x100000001b3;
  const auto* const end = known_.data() + known_count_;
  if (std::find(static_cast<const std::uint64_t*>(known_.data()), end, hash) != end) return true;
  known_[known_count_++] = hash;
  return false;
}

}  // namespace penstock::nids
