// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace penstock {

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

std::string to_string(const Errors& errors) {
  std::string text;
  for (const Error& error : errors) {
    if (!text.empty()) text += '\n';
    text += to_string(error);
  }
  return text;
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

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      out += fmt::format("\\xc2\\x{:02x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string in_quotes(std::string_view text, std::size_t limit) {
  std::string out = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == limit) {
      out += "…";
      break;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += text[i];
    }
  }
  return out + "'";
}

}  // namespace penstock
