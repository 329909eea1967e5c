// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/encryption_watch.h"

#include <algorithm>

namespace penstock::stack {

namespace {

constexpr std::size_t kTlsHeader = 5;  // type, version, length
constexpr std::uint8_t kFirstTlsType = 20, kTlsHandshake = 22, kTlsApplicationData = 23, kLastTlsType = 24;
constexpr std::size_t kSshHeader = 6;  // length, padding's length, message
constexpr std::uint8_t kSshNewKeys = 21;
constexpr std::size_t kEnoughToRecognise = 4;

}  // namespace

bool EncryptionWatch::read(Direction direction, Bytes bytes) noexcept {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  if (protocol_ == Protocol::unknown) {
    for (; side.have < kEnoughToRecognise && !bytes.empty(); bytes = bytes.subspan(1)) {
      side.header[side.have++] = bytes.front();
    }
    recognise(side);
  }
  switch (protocol_) {
    case Protocol::tls: return read_tls(side, bytes);
    case Protocol::ssh: return read_ssh(side, bytes);
    case Protocol::unknown:
    case Protocol::other: return false;
  }
  return false;
}

void EncryptionWatch::recognise(const Side& side) noexcept {
  if (side.have < kEnoughToRecognise) return;
  const auto& bytes = side.header;
  if (bytes[0] == kTlsHandshake && bytes[1] == 3 && bytes[2] <= 4) {
    protocol_ = Protocol::tls;
  } else if (bytes[0] == 'S' && bytes[1] == 'S' && bytes[2] == 'H' && bytes[3] == '-') {
    protocol_ = Protocol::ssh;
    for (Side& one : sides_) one.have = 0;  // the greeting's bytes are no header
  } else {
    protocol_ = Protocol::other;
  }
}

bool EncryptionWatch::read_tls(Side& side, Bytes bytes) noexcept {
  bool whole = false;
  while (true) {
    if (side.have < kTlsHeader) {
      if (bytes.empty()) return whole;
      side.header[side.have++] = bytes.front();
      bytes = bytes.subspan(1);
      if (side.have < kTlsHeader) continue;
      const std::uint8_t type = side.header[0];
      if (type < kFirstTlsType || type > kLastTlsType || side.header[1] != 3) {
        give_up();
        return whole;
      }
      side.ahead = static_cast<std::uint32_t>(side.header[3] << 8 | side.header[4]);
    }
    if (side.ahead > 0) {
      if (bytes.empty()) return whole;
      if (side.header[0] == kTlsApplicationData) {
        encrypted_ = true;
        return whole;
      }
      const std::size_t here = std::min<std::size_t>(side.ahead, bytes.size());
      bytes = bytes.subspan(here);
      side.ahead -= static_cast<std::uint32_t>(here);
      if (side.ahead > 0) return whole;
    }
    whole = true;
    side.have = 0;
  }
}

bool EncryptionWatch::read_ssh(Side& side, Bytes bytes) noexcept {
  bool whole = false;
  if (!side.greeted) {
    const auto line_end = std::find(bytes.begin(), bytes.end(), '\n');
    if (line_end == bytes.end()) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(line_end - bytes.begin()) + 1);
    side.greeted = true;
    whole = true;
  }
  while (!side.new_keys && !bytes.empty()) {
    if (side.have < kSshHeader) {
      side.header[side.have++] = bytes.front();
      bytes = bytes.subspan(1);
      if (side.have < kSshHeader) continue;
      const std::uint32_t length = static_cast<std::uint32_t>(side.header[0]) << 24 |
                                   static_cast<std::uint32_t>(side.header[1]) << 16 |
                                   static_cast<std::uint32_t>(side.header[2]) << 8 | side.header[3];
      if (length < 2) {
        give_up();
        return whole;
      }
      side.ahead = length - 2;
    }
    const std::size_t here = std::min<std::size_t>(side.ahead, bytes.size());
    bytes = bytes.subspan(here);
    side.ahead -= static_cast<std::uint32_t>(here);
    if (side.ahead > 0) return whole;
    side.new_keys = side.header[kSshHeader - 1] == kSshNewKeys;
    side.have = 0;
    whole = true;
  }
  encrypted_ = sides_[0].new_keys && sides_[1].new_keys;
  return whole;
}

}  // namespace penstock::stack
