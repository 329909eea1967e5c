// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sees where a connection begins to be encrypted: TLS at its first record of application data (RFC 8446 §5.1), SSH when
// both sides have sent SSH_MSG_NEWKEYS (RFC 4253 §7.3). What follows is noise to whoever looks for bytes. Reads record
// headers alone, in any pieces; whatever port.

#pragma once

#include <array>
#include <cstdint>

#include "stack/flow.h"

namespace penstock::stack {

class EncryptionWatch {
 public:
  /// The next bytes that a side has sent, without gaps. True: one of its records has become whole.
  bool read(Direction side, Bytes bytes) noexcept;
  /// Bytes are missing: no more can be told.
  void give_up() noexcept { protocol_ = Protocol::other; }

  [[nodiscard]] bool encrypted() const noexcept { return encrypted_; }
  /// Nothing will change any more.
  [[nodiscard]] bool done() const noexcept { return encrypted_ || protocol_ == Protocol::other; }

 private:
  enum class Protocol : std::uint8_t { unknown, tls, ssh, other };
  struct Side {
    std::array<std::uint8_t, 6> header{};
    std::uint8_t have = 0;    // of it
    bool greeted = false;     // SSH: its line of text is over
    bool new_keys = false;    // SSH: it encrypts
    std::uint32_t ahead = 0;  // bytes of the record whose header was read
  };

  void recognise(const Side& side) noexcept;
  bool read_tls(Side& side, Bytes bytes) noexcept;
  bool read_ssh(Side& side, Bytes bytes) noexcept;

  std::array<Side, 2> sides_;
  Protocol protocol_ = Protocol::unknown;
  bool encrypted_ = false;
};

}  // namespace penstock::stack
