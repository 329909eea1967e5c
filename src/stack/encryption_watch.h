// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Detects where a connection becomes encrypted, so that its payload need not be inspected from there on. One side alone
// must not be able to cause that. The following must be seen from both sides, in this order:
//
//   TLS (RFC 8446, RFC 5246)   ClientHello (or an SSLv2 hello that offers TLS: RFC 5246 §E.2), ServerHello, and
//                              application data: of a side that has sent ChangeCipherSpec, or of either side once the
//                              server has sent one, or of the server
//   SSH (RFC 4253)             version line, KEXINIT, NEWKEYS
//
// This starts at the first byte, or where both sides agreed to upgrade (upgrade_dialog.h). Reads record headers only,
// split at any byte, on any port.

#pragma once

#include <array>
#include <cstdint>

#include "stack/flow.h"
#include "stack/upgrade_dialog.h"

namespace penstock::stack {

class EncryptionWatch {
 public:
  /// The next bytes of one side, without gaps. True if they complete a record.
  bool read(Direction side, Bytes bytes) noexcept;
  /// Bytes are missing, so encryption can no longer be detected.
  void give_up() noexcept { protocol_ = Protocol::other; }

  [[nodiscard]] bool encrypted() const noexcept { return encrypted_; }
  /// The result is final.
  [[nodiscard]] bool done() const noexcept { return encrypted_ || protocol_ == Protocol::other; }

 private:
  enum class Protocol : std::uint8_t { unknown, tls, ssh, other };
  struct Side {
    std::array<std::uint8_t, 6> header{};
    std::uint8_t have = 0;         // bytes of `header` read so far
    bool greeted = false;          // TLS: hello seen; SSH: version line complete
    bool offered = false;          // SSH: KEXINIT seen
    bool encrypts = false;         // the side has announced encryption
    std::uint8_t line_bytes = 0;   // SSH: length of the current line so far
    std::uint8_t line_as_ssh = 0;  // SSH: how many of these match "SSH-"
    std::uint32_t ahead = 0;       // bytes left of the current record
  };

  void recognise(Direction direction) noexcept;
  void begin_dialog(UpgradeDialog::Kind kind, Direction first) noexcept;
  void begin_old_hello(Side& side) noexcept;
  bool read_tls(Direction direction, Bytes bytes) noexcept;
  void begin_tls_record(Side& side, std::uint8_t hello) noexcept;
  bool read_ssh(Direction direction, Bytes bytes) noexcept;
  /// Returns the bytes after the version line; empty while that line is incomplete.
  [[nodiscard]] Bytes read_ssh_version(Direction direction, Bytes bytes) noexcept;

  Protocol protocol_ = Protocol::unknown;
  bool encrypted_ = false;
  std::array<Side, 2> sides_;
  UpgradeDialog dialog_;  // unused while its kind is `none`
};

}  // namespace penstock::stack
