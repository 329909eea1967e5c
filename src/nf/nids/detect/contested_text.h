// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A stretch of a stream of which some bytes came more than once, with other content. At each place stands a set of
// bytes; the receiver read one of them, and nobody else knows which. A content may be there if each of its bytes is in
// the set at its place: no choice of the receiver's escapes that.
//
//   the stream's buffer   G  O  O  D  x  y
//   another version             T  H
//   may be there          G  O {O,T}{D,H} x y    "GOTH" may, "GOOD" may, "GOAT" may not

#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nf/nids/match/pattern_matcher.h"
#include "stack/tcp_session.h"

namespace penstock::nids {

class ContestedText {
 public:
  static constexpr std::size_t kMostBytes = stack::TcpSession::kMostContested;

  /// Takes all of its memory.
  ContestedText();

  /// The chunk's bytes with all versions of them. `left_out`: a bit for each of the chunk's urgent marks; the bytes
  /// there are not in the text.
  void read(const stack::StreamChunk& chunk, std::uint32_t left_out);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Whether there is anything but the chunk's own bytes.
  [[nodiscard]] bool differs() const noexcept { return !sets_.empty() || left_out_; }
  /// How many bytes an earlier inspection had.
  [[nodiscard]] std::size_t seen() const noexcept { return seen_; }
  /// As the stream's buffer has them.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] bool contested(std::size_t at) const noexcept { return set_of_[at] != 0; }

  [[nodiscard]] bool may_be(std::size_t at, std::uint8_t byte) const noexcept {
    return set_of_[at] == 0 ? bytes_[at] == byte : sets_[set_of_[at] - 1U][byte];
  }
  /// The same for a letter in either case.
  [[nodiscard]] bool may_be(std::size_t at, std::uint8_t byte, bool nocase) const noexcept;
  [[nodiscard]] bool may_be_of(std::size_t at, const std::bitset<256>& bytes) const noexcept {
    return set_of_[at] == 0 ? bytes[bytes_[at]] : (sets_[set_of_[at] - 1U] & bytes).any();
  }
  [[nodiscard]] bool may_be_at(std::size_t at, std::span<const std::uint8_t> content, bool nocase) const noexcept;
  /// The first place from `from` on where the content may be.
  [[nodiscard]] std::optional<std::size_t> find(std::span<const std::uint8_t> content, bool nocase,
                                                std::size_t from = 0) const noexcept;
  /// Calls `use(byte)` for each byte that may be there.
  template <typename Use>
  void for_each_byte(std::size_t at, Use&& use) const {
    if (!contested(at)) return use(bytes_[at]);
    const std::bitset<256>& set = sets_[set_of_[at] - 1U];
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (set[byte]) use(static_cast<std::uint8_t>(byte));
    }
  }

  /// One way to read the text: the buffer's bytes, but where they are laid over.
  class Reading {
   public:
    Reading();
    void begin(const ContestedText& text) noexcept;
    /// Writes the content's bytes where it may be, in the case that is there. False, and nothing changed: a byte that
    /// was laid over before is another one.
    bool lay(const ContestedText& text, std::size_t at, std::span<const std::uint8_t> content, bool nocase) noexcept;
    /// The same with a version's bytes, where it has bytes of the text.
    bool lay(const ContestedText& text, const stack::ContestedBytes::Version& version) noexcept;
    /// With those of a version's bytes where nothing was laid over.
    void fill(const ContestedText& text, const stack::ContestedBytes::Version& version) noexcept;
    /// Chooses a byte where nothing was laid over.
    void choose(std::size_t at, std::uint8_t byte) noexcept { bytes_[at] = byte; }
    [[nodiscard]] bool laid(std::size_t at) const noexcept { return laid_[at] != 0; }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return {bytes_.data(), size_}; }

   private:
    /// The first place of the text at or behind the version's beginning.
    [[nodiscard]] std::size_t begin_of(const ContestedText& text,
                                       const stack::ContestedBytes::Version& version) const noexcept;

    std::vector<std::uint8_t> bytes_, laid_;
    std::size_t size_ = 0;
  };

 private:
  void add(std::size_t at, std::uint8_t byte);

  std::size_t size_ = 0, seen_ = 0;
  bool left_out_ = false;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint16_t> set_of_;  // 0: the byte alone; else the set's index + 1
  std::vector<std::uint64_t> offset_;  // of each byte in the stream
  std::vector<std::bitset<256>> sets_;
};

/// Finds which of many literals may be in a contested text, by their first two bytes. Immutable.
class ContestedSearch {
 public:
  explicit ContestedSearch(std::span<const Literal> literals);

  /// Calls `use(literal's index)`, more than once for some. False: it was given up after kMostTries comparisons.
  template <typename Use>
  bool search(const ContestedText& text, std::span<const Literal> literals, Use&& use) const {
    std::size_t tries = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      text.for_each_byte(at, [&](std::uint8_t first) {
        for (const std::uint32_t literal : of_one_byte(first)) use(literal);
        if (at + 1 == text.size()) return;
        text.for_each_byte(at + 1, [&](std::uint8_t second) {
          for (const std::uint32_t literal : of_two_bytes(first, second)) {
            if (++tries > kMostTries) return;
            if (text.may_be_at(at, literals[literal].bytes, literals[literal].nocase)) use(literal);
          }
        });
      });
      if (tries > kMostTries) return false;
    }
    return true;
  }
  static constexpr std::size_t kMostTries = 1 << 18;

 private:
  [[nodiscard]] std::span<const std::uint32_t> of_one_byte(std::uint8_t byte) const noexcept;
  [[nodiscard]] std::span<const std::uint32_t> of_two_bytes(std::uint8_t first, std::uint8_t second) const noexcept;

  std::vector<std::uint32_t> starts_, literals_;              // by both bytes, in lower case
  std::vector<std::uint32_t> short_starts_, short_literals_;  // of one byte
};

}  // namespace penstock::nids
