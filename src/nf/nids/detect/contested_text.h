// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A part of a stream in which some bytes arrived more than once with different values. Each position has the set of its
// possible bytes. The receiver read one of them; the sensor cannot know which. A content may be present if each of its
// bytes is in the set at its position, so no choice of the receiver evades the search.
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

  /// Allocates all of its memory.
  ContestedText();

  /// Reads the chunk's bytes with all versions of them. `left_out`: one bit for each of the chunk's urgent marks; bytes
  /// at these marks are not part of the text.
  void read(const stack::StreamChunk& chunk, std::uint32_t left_out);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Whether the text differs from the chunk's own bytes.
  [[nodiscard]] bool differs() const noexcept { return !sets_.empty() || left_out_; }
  /// How many of the bytes an earlier inspection has seen.
  [[nodiscard]] std::size_t seen() const noexcept { return seen_; }
  /// The bytes in the stream's buffer.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] bool contested(std::size_t at) const noexcept { return set_of_[at] != 0; }

  [[nodiscard]] bool may_be(std::size_t at, std::uint8_t byte) const noexcept {
    return set_of_[at] == 0 ? bytes_[at] == byte : sets_[set_of_[at] - 1U][byte];
  }
  /// The same; with `nocase`, letters match in either case.
  [[nodiscard]] bool may_be(std::size_t at, std::uint8_t byte, bool nocase) const noexcept;
  [[nodiscard]] bool may_be_of(std::size_t at, const std::bitset<256>& bytes) const noexcept {
    return set_of_[at] == 0 ? bytes[bytes_[at]] : (sets_[set_of_[at] - 1U] & bytes).any();
  }
  [[nodiscard]] bool may_be_at(std::size_t at, std::span<const std::uint8_t> content, bool nocase) const noexcept;
  /// The first position from `from` on where the content may be.
  [[nodiscard]] std::optional<std::size_t> find(std::span<const std::uint8_t> content, bool nocase,
                                                std::size_t from = 0) const noexcept;
  /// Calls `use(byte)` for each possible byte at the position.
  template <typename Use>
  void for_each_byte(std::size_t at, Use&& use) const {
    if (!contested(at)) return use(bytes_[at]);
    const std::bitset<256>& set = sets_[set_of_[at] - 1U];
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (set[byte]) use(static_cast<std::uint8_t>(byte));
    }
  }

  /// One reading of the text: the bytes of the buffer, except where others were chosen.
  class Reading {
   public:
    Reading();
    void begin(const ContestedText& text) noexcept;
    /// Chooses the content's bytes at `at`, where it may be, in a case that is possible there. False, with no change,
    /// if another byte was chosen at one of the positions before.
    bool lay(const ContestedText& text, std::size_t at, std::span<const std::uint8_t> content, bool nocase) noexcept;
    /// The same with a version's bytes, where it overlaps the text.
    bool lay(const ContestedText& text, const stack::ContestedBytes::Version& version) noexcept;
    /// Chooses a version's bytes at the positions where none were chosen.
    void fill(const ContestedText& text, const stack::ContestedBytes::Version& version) noexcept;
    /// Sets the byte of a position at which none was chosen; it does not count as chosen.
    void choose(std::size_t at, std::uint8_t byte) noexcept { bytes_[at] = byte; }
    [[nodiscard]] bool laid(std::size_t at) const noexcept { return laid_[at] != 0; }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return {bytes_.data(), size_}; }

   private:
    /// The first position of the text at or after the beginning of the version.
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
  std::vector<std::uint16_t> set_of_;  // 0: only the byte in bytes_; else the set's index + 1
  std::vector<std::uint64_t> offset_;  // of each byte, in the stream
  std::vector<std::bitset<256>> sets_;
};

/// Finds out which of many literals may be in a contested text, by their first two bytes. Immutable.
class ContestedSearch {
 public:
  explicit ContestedSearch(std::span<const Literal> literals);

  /// Calls `use(index)` for each literal that may be in the text, for some more than once. False if it gave up after
  /// kMostTries comparisons.
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

  std::vector<std::uint32_t> starts_, literals_;              // by the first two bytes in lower case
  std::vector<std::uint32_t> short_starts_, short_literals_;  // literals of one byte
};

}  // namespace penstock::nids
