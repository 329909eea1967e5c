// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sees where a connection begins to be encrypted. What follows is noise to whoever looks for bytes, so that nobody
// looks: one side alone cannot say so. Of both must have been seen, in their order,
//
//   TLS (RFC 8446, RFC 5246)   the client's hello (SSLv2's too, which offers TLS: RFC 5246 §E.2), the server's hello,
//                              application data of a side that encrypts: behind its ChangeCipherSpec, or the server's,
//                              or the server's own
//   SSH (RFC 4253)             its version's line, KEXINIT, NEWKEYS
//
// from the first byte on, or from where both sides have agreed on it in plain (upgrade_dialog.h). Reads record headers
// alone, in any pieces; whatever port.

#pragma once

#include <array>
#include <cstdint>

#include "stack/flow.h"
#include "stack/upgrade_dialog.h"

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
    std::uint8_t have = 0;         // of it
    bool greeted = false;          // TLS: it has said hello; SSH: its version's line is over
    bool offered = false;          // SSH: it has said which keys it can have
    bool encrypts = false;         // from here on, as it says
    std::uint8_t line_bytes = 0;   // SSH: of the line that has begun
    std::uint8_t line_as_ssh = 0;  // SSH: of these, how many are as in "SSH-"
    std::uint32_t ahead = 0;       // bytes of the record whose header was read
  };

  void recognise(Direction direction) noexcept;
  void begin_dialog(UpgradeDialog::Kind kind, Direction first) noexcept;
  void begin_old_hello(Side& side) noexcept;
  bool read_tls(Direction direction, Bytes bytes) noexcept;
  void begin_tls_record(Side& side, std::uint8_t hello) noexcept;
  bool read_ssh(Direction direction, Bytes bytes) noexcept;
  /// What is behind the version's line; nothing while that goes on.
  [[nodiscard]] Bytes read_ssh_version(Direction direction, Bytes bytes) noexcept;

  Protocol protocol_ = Protocol::unknown;
  bool encrypted_ = false;
  std::array<Side, 2> sides_;
  UpgradeDialog dialog_;  // none, unless it has a kind
};

}  // namespace penstock::stack
