// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace penstock {

namespace {

/// The length in bytes of the UTF-8 character at the start of the text; 0 if it is invalid (RFC 3629 §4).
std::size_t character_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) < 0xc0; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !follows(1)) return 0;
  if (first < 0xe0) return 2;
  // Refuse overlong encodings, surrogates, and code points above U+10FFFF.
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) || !follows(2)) return 0;
  if (first < 0xf0) return 3;
  return (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90) || !follows(3) ? 0 : 4;
}

/// Long hexadecimal numbers may be keys of SAs, if their file was given in the place of another.
std::string without_keys(std::string_view text) {
  constexpr std::size_t kMostDigits = 16;  // keys are longer
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t number = std::min(text.find("0x", at), text.size());
    const std::size_t first = std::min(number + 2, text.size());
    const std::size_t end = std::min(text.find_first_not_of("0123456789abcdefABCDEF", first), text.size());
    const bool may_be_key = end - first > kMostDigits;
    shown += text.substr(at, (may_be_key ? number : end) - at);
    if (may_be_key) shown += "0x(hidden, may be a key)";
    at = end;
  }
  return shown;
}

/// A byte order mark, a zero-width space, or a change of text direction: it would be invisible in a message.
bool is_invisible(std::string_view character) noexcept {
  if (character.size() != 3) return false;
  if (character == "\xef\xbb\xbf") return true;
  const auto last = static_cast<unsigned char>(character[2]);
  if (character.starts_with("\xe2\x80")) return (last >= 0x8b && last <= 0x8f) || (last >= 0xa8 && last <= 0xae);
  return character.starts_with("\xe2\x81") && last >= 0xa0 && last <= 0xaf;
}

}  // namespace

std::string to_string(const Error& error) {
  std::string text;
  if (!error.place.file.empty()) {
    text += error.place.file;
    if (error.place.line != 0) text += fmt::format(":{}", error.place.line);
    if (error.place.column != 0) text += fmt::format(":{}", error.place.column);
    text += ": ";
  }
  text += error.message;
  if (!error.found.empty()) text += ": found " + error.found;
  if (!error.expected.empty()) text += (error.found.empty() ? ": expected " : ", expected ") + error.expected;
  return printable(text);
}

std::size_t count_of(std::span<const Error> errors) noexcept {
  std::size_t count = 0;
  for (const Error& error : errors) count += error.count;
  return count;
}

std::string to_string(const Errors& errors) {
  std::string text;
  for (const Error& error : errors) {
    if (!text.empty()) text += '\n';
    text += to_string(error);
  }
  return text;
}

Error system_error(const std::string& path, std::string_view what, std::string_view reason) {
  return {{path.empty() ? "''" : path, 0, 0}, fmt::format("{}: {}", what, reason), "", ""};
}

tl::unexpected<Errors> failure(Error error) {
  Errors errors;
  errors.push_back(std::move(error));
  return tl::unexpected<Errors>(std::move(errors));
}

tl::unexpected<Errors> failure(Errors errors) { return tl::unexpected<Errors>(std::move(errors)); }

void append(Errors& to, Errors more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Errors in_file_order(Errors errors) {
  std::map<std::string, std::size_t> files;
  for (const Error& error : errors) files.emplace(error.place.file, files.size());
  const auto key = [&](const Error& error) {
    const Place& place = error.place;
    // Line 0 (the whole file) wraps around, so it sorts after the last line.
    return std::tuple{files.at(place.file), place.line - 1, place.column};
  };
  std::ranges::stable_sort(errors, {}, key);
  return errors;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(character.front());
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
    if (length == 0 || first < 0x20 || first == 0x7f || c1 || is_invisible(character)) {
      for (const char byte : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  constexpr std::size_t kEnoughOfAKey = 32;  // one may begin before the limit and end after it
  const bool is_cut = text.size() > limit && text.size() - limit > kEnoughOfAKey;
  const std::string shown = without_keys(is_cut ? text.substr(0, limit + kEnoughOfAKey) : text);
  if (!is_cut && shown.size() <= limit) return "'" + printable(shown) + "'";
  std::size_t end = std::min(limit, shown.size());  // do not cut a character (of at most 4 bytes) in two
  while (end > 0 && limit - end < 4 && (static_cast<unsigned char>(shown[end]) & 0xc0U) == 0x80) --end;
  return "'" + printable(std::string_view(shown).substr(0, end)) + "…'";
}

}  // namespace penstock
