// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/contested_reading.h"

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

bool ContestedReader::lay_contents(const ContestedText& text, std::span<const BufferMatch> options,
                                   const Content& first, std::size_t place) noexcept {
  reading_.begin(text);
  if (!reading_.lay(text, place, first.bytes, first.nocase)) return false;
  std::size_t end = 0;  // of the content before
  for (const BufferMatch& option : options) {
    const auto* const content = std::get_if<Content>(&option);
    if (content == nullptr || content->negated) continue;
    if (content == &first) {
      end = place + content->bytes.size();
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
    end = *at + content->bytes.size();
  }
  return true;
}

}  // namespace penstock::nids
