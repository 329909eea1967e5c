// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/encryption_watch.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace penstock::stack {

namespace {

constexpr std::size_t kTlsHeader = 5;  // type, version, length
constexpr std::uint8_t kFirstTlsType = 20, kTlsChangeCipherSpec = 20, kTlsHandshake = 22, kTlsApplicationData = 23,
                       kLastTlsType = 24;
constexpr std::uint8_t kTlsClientHello = 1, kTlsServerHello = 2;
constexpr std::uint32_t kMostTlsBytes = (1 << 14) + 2048;  // of a record (RFC 5246 §6.2.3)
constexpr std::size_t kSshHeader = 6;                      // length, padding's length, message
constexpr std::uint8_t kSshKexInit = 20, kSshNewKeys = 21;
constexpr std::string_view kSshVersion = "SSH-";
constexpr std::size_t kEnoughToRecognise = UpgradeDialog::kEnoughToRecognise;
constexpr std::uint8_t kOldRecord = 0x80;  // SSLv2 record: a 15-bit length, then the message

}  // namespace

bool EncryptionWatch::read(Direction direction, Bytes bytes) noexcept {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  const auto read_dialog = [&] {
    if (dialog_.kind() != UpgradeDialog::Kind::none) bytes = dialog_.read(direction, bytes);
    if (dialog_.failed()) give_up();
  };
  read_dialog();
  while (protocol_ == Protocol::unknown && !bytes.empty()) {
    for (; side.have < kEnoughToRecognise && !bytes.empty(); bytes = bytes.subspan(1)) {
      side.header[side.have++] = bytes.front();
    }
    if (side.have < kEnoughToRecognise) return false;
    recognise(direction);
    read_dialog();
  }
  switch (protocol_) {
    case Protocol::tls: return read_tls(direction, bytes);
    case Protocol::ssh: return read_ssh(direction, bytes);
    case Protocol::unknown:
    case Protocol::other: return false;
  }
  return false;
}

void EncryptionWatch::recognise(Direction direction) noexcept {
  const auto& bytes = sides_[static_cast<std::size_t>(direction)].header;
  const bool is_old_hello =
      direction == Direction::to_server && (bytes[0] & kOldRecord) != 0 && bytes[2] == kTlsClientHello && bytes[3] == 3;
  if (is_old_hello || (bytes[0] == kTlsHandshake && bytes[1] == 3 && bytes[2] <= 4)) {
    protocol_ = Protocol::tls;
  } else if (std::equal(kSshVersion.begin(), kSshVersion.end(), bytes.begin())) {
    protocol_ = Protocol::ssh;
    // The bytes read so far are part of the version lines, not of a packet header.
    for (const Direction each : {Direction::to_server, Direction::to_client}) {
      Side& one = sides_[static_cast<std::size_t>(each)];
      static_cast<void>(read_ssh_version(each, Bytes(one.header).first(one.have)));
      one.have = 0;
    }
  } else if (dialog_.kind() == UpgradeDialog::Kind::none) {
    begin_dialog(UpgradeDialog::recognise(direction, Bytes(bytes).first(kEnoughToRecognise)), direction);
  } else {
    give_up();
  }
}

void EncryptionWatch::begin_dialog(UpgradeDialog::Kind kind, Direction first) noexcept {
  if (kind == UpgradeDialog::Kind::none) return give_up();
  dialog_.begin(kind);
  // After CONNECT any protocol may follow. All others switch to TLS.
  if (kind != UpgradeDialog::Kind::connect) protocol_ = Protocol::tls;
  for (const Direction each : {first, opposite(first)}) {
    Side& one = sides_[static_cast<std::size_t>(each)];
    static_cast<void>(dialog_.read(each, Bytes(one.header).first(one.have)));
    one.have = 0;
  }
}

// ---- TLS

/// Starts an SSLv2 record, of which the length, the message type and the version have been read.
void EncryptionWatch::begin_old_hello(Side& side) noexcept {
  constexpr std::uint32_t kRead = 3, kLeast = 9;  // of the message
  const std::uint32_t length = static_cast<std::uint32_t>(side.header[0] & 0x7f) << 8 | side.header[1];
  if (side.header[2] != kTlsClientHello || side.header[3] != 3 || length < kLeast) return give_up();
  side.greeted = true;
  side.have = kTlsHeader + 1;
  side.ahead = length - kRead;
}

/// Starts a TLS record, of which the header and the first payload byte have been read.
void EncryptionWatch::begin_tls_record(Side& side, std::uint8_t hello) noexcept {
  const std::uint8_t type = side.header[0], first = side.header[kTlsHeader];
  if (!side.greeted) {
    if (type != kTlsHandshake || first != hello) return give_up();
    side.greeted = true;
  } else if (type == kTlsChangeCipherSpec) {
    if (first != 1 || side.ahead != 0) return give_up();
    side.encrypts = true;
  } else if (type == kTlsApplicationData) {
    // A TLS 1.3 server may send application data right after its hello. A TLS 1.2 client need not wait for the server's
    // ChangeCipherSpec after its own (RFC 7918, False Start). TLS 1.3 early data precedes the ServerHello.
    const bool may_begin = side.encrypts || &side == &sides_[static_cast<std::size_t>(Direction::to_client)];
    side.encrypts = true;
    encrypted_ = sides_[0].greeted && sides_[1].greeted && (may_begin || sides_[1].encrypts);
  }
}

bool EncryptionWatch::read_tls(Direction direction, Bytes bytes) noexcept {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  bool whole = false;
  while (!bytes.empty()) {
    if (side.have <= kTlsHeader) {
      side.header[side.have++] = bytes.front();
      bytes = bytes.subspan(1);
      if (side.have == kTlsHeader && direction == Direction::to_server && !side.greeted &&
          (side.header[0] & kOldRecord) != 0) {
        begin_old_hello(side);
        if (done()) return whole;
      } else if (side.have == kTlsHeader) {
        const std::uint8_t type = side.header[0];
        side.ahead = static_cast<std::uint32_t>(side.header[3] << 8 | side.header[4]);
        if (type < kFirstTlsType || type > kLastTlsType || side.header[1] != 3 || side.ahead > kMostTlsBytes ||
            (side.ahead == 0 && !side.greeted)) {
          give_up();
          return whole;
        }
        if (side.ahead > 0) continue;
      } else if (side.have > kTlsHeader) {
        --side.ahead;
        begin_tls_record(side, direction == Direction::to_server ? kTlsClientHello : kTlsServerHello);
        if (done()) return whole;
      } else {
        continue;
      }
    }
    const std::size_t here = std::min<std::size_t>(side.ahead, bytes.size());
    bytes = bytes.subspan(here);
    side.ahead -= static_cast<std::uint32_t>(here);
    if (side.ahead > 0) return whole;
    side.have = 0;
    whole = true;
  }
  return whole;
}

// ---- SSH

// RFC 4253 §4.2 allows a server to send other lines before its version line.
Bytes EncryptionWatch::read_ssh_version(Direction direction, Bytes bytes) noexcept {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  for (; !side.greeted && !bytes.empty(); bytes = bytes.subspan(1)) {
    const auto byte = static_cast<char>(bytes.front());
    if (side.line_bytes == side.line_as_ssh && side.line_as_ssh < kSshVersion.size() &&
        byte == kSshVersion[side.line_as_ssh]) {
      ++side.line_as_ssh;
    }
    ++side.line_bytes;
    const bool is_version = side.line_as_ssh == kSshVersion.size();
    if (byte == '\n') {
      side.greeted = is_version;
      side.line_bytes = side.line_as_ssh = 0;
    }
    const bool may_be_version = is_version || side.line_bytes == side.line_as_ssh;
    const bool too_long = side.line_bytes == std::numeric_limits<std::uint8_t>::max();
    if (!side.greeted && (too_long || (direction == Direction::to_server && (byte == '\n' || !may_be_version)))) {
      give_up();
      return {};
    }
  }
  return bytes;
}

bool EncryptionWatch::read_ssh(Direction direction, Bytes bytes) noexcept {
  Side& side = sides_[static_cast<std::size_t>(direction)];
  bool whole = false;
  if (!side.greeted) {
    bytes = read_ssh_version(direction, bytes);
    whole = side.greeted;
  }
  while (side.greeted && !side.encrypts && !bytes.empty()) {
    if (side.have < kSshHeader) {
      side.header[side.have++] = bytes.front();
      bytes = bytes.subspan(1);
      if (side.have < kSshHeader) continue;
      const std::uint32_t length = static_cast<std::uint32_t>(side.header[0]) << 24 |
                                   static_cast<std::uint32_t>(side.header[1]) << 16 |
                                   static_cast<std::uint32_t>(side.header[2]) << 8 | side.header[3];
      const std::uint32_t padding = side.header[4];
      const std::uint8_t message = side.header[5];
      // KEXINIT must come first. NEWKEYS follows it and consists of its message number only.
      if (length < 2 || (!side.offered && message != kSshKexInit) ||
          (message == kSshNewKeys && length != padding + 2)) {
        give_up();
        return whole;
      }
      side.offered = true;
      side.ahead = length - 2;
    }
    const std::size_t here = std::min<std::size_t>(side.ahead, bytes.size());
    bytes = bytes.subspan(here);
    side.ahead -= static_cast<std::uint32_t>(here);
    if (side.ahead > 0) return whole;
    side.encrypts = side.header[kSshHeader - 1] == kSshNewKeys;
    side.have = 0;
    whole = true;
  }
  encrypted_ = sides_[0].encrypts && sides_[1].encrypts;
  return whole;
}

}  // namespace penstock::stack
