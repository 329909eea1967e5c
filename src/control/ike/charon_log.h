// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The SAs of strongSwan's IKE daemon charon, from its log (chd = 4; docs/ike.md). One thread of charon logs all of a
// CHILD_SA's set-up, in this order, with its number first:
//
//     NN[NET] received packet: from PEER[PORT] to HERE[PORT] …      NN[ENC] parsed … request | response …   (our role)
//     NN[CFG] selected proposal: ESP:…/NO_EXT_SEQ
//     NN[CHD] CHILD_SA NAME{ID} state change: CREATED => INSTALLING, algorithms, keys with their bytes
//     NN[CHD] adding inbound | adding outbound | registering outbound ESP SA,   SPI 0x…, src … dst …
//
// An outbound SA that is only registered is added by a later message; until then nothing is sent with it. Everything of
// a CHILD_SA ends with "=> DESTROYING". Owns the keys, which are wiped when they are not needed any more.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "nf/ipsec/crypto/secret.h"
#include "nf/ipsec/selection/selector.h"

namespace penstock::control {

class CharonLog {
 public:
  /// By the name of a child of swanctl.conf: the reqid of its SAs. CHILD_SAs of other names are left out.
  using Reqids = std::map<std::string, std::uint32_t, std::less<>>;
  static constexpr std::size_t kMostChildren = 100'000;
  static constexpr std::size_t kMostLineBytes = 4096;
  /// The first line of `state`.
  static constexpr std::string_view kStateHeading = "# The SAs of charon, kept up to date by `penstock ike`\n";

  explicit CharonLog(Reqids reqids) : reqids_(std::move(reqids)) {}

  /// The next line, without its end, and where it begins in the log. Lines that say nothing about SAs are ignored.
  void add(std::string_view line, std::uint64_t offset);

  /// The next lines are of another file, from offset 0: charon's log was rotated.
  void begin_file();

  /// Whether `state` is another one than when this was last asked.
  [[nodiscard]] bool take_changed() noexcept { return std::exchange(changed_, false); }
  /// The SAs in use, as `ip xfrm state` prints them, the newest outbound one first. Has keys: the caller wipes it.
  [[nodiscard]] std::string state() const;
  [[nodiscard]] std::size_t inbound() const noexcept { return children_.size(); }
  [[nodiscard]] std::size_t outbound() const noexcept;
  /// Where the lines about the SAs in use begin in the log; `otherwise` if there are none.
  [[nodiscard]] std::uint64_t needed_from(std::uint64_t otherwise) const noexcept;
  /// CHILD_SAs that could not be used, and why, since this was last asked. No message contains a key.
  [[nodiscard]] Errors take_problems() { return std::exchange(problems_, {}); }

 private:
  enum class Key : std::uint8_t {
    encryption_initiator,
    encryption_responder,
    integrity_initiator,
    integrity_responder
  };
  enum class Adding : std::uint8_t { nothing, inbound, outbound, registered };

  struct Sa {
    std::uint32_t spi = 0;
    ipsec::IpAddress source, destination;
    ipsec::Secret encryption, integrity;
  };
  struct Child {
    std::string name;
    std::uint32_t reqid = 0;
    std::uint64_t begins_at = 0;
    std::string encryption, integrity;  // charon's names of the algorithms
    std::uint16_t peer_port = 0, port = 0;
    std::optional<Sa> in, out;      // `out` has only keys until its SPI is known
    std::uint64_t sends_since = 0;  // counts the outbound SAs; 0: nothing is sent with `out` yet
  };
  /// What a thread of charon is at.
  struct Thread {
    std::uint64_t begins_at = 0;
    std::uint16_t peer_port = 0, port = 0;
    std::optional<bool> initiator, esn;
    std::optional<std::uint32_t> installing;  // the CHILD_SA
    std::string encryption, integrity;
    std::array<ipsec::Secret, 4> keys;
    std::optional<Key> reading;
    std::size_t key_bytes = 0;
    Adding adding = Adding::nothing;
  };

  void add_child_line(Thread& thread, std::string_view text, std::uint64_t offset);
  void change_state(Thread& thread, std::string_view text, std::uint64_t offset);
  void begin_key(Thread& thread, std::string_view text);
  void add_key_bytes(Thread& thread, std::string_view text);
  void add_sa(Thread& thread, std::string_view text);
  void add_inbound(Thread& thread, Child& child, Sa sa);
  void begin_to_send(Child& child);
  void remove(std::uint32_t id);
  void refuse(std::uint32_t id, std::string_view why, std::string found, std::string expected);

  const Reqids reqids_;
  std::map<std::uint32_t, Thread> threads_;  // by charon's number
  std::map<std::uint32_t, Child> children_;  // by charon's number; those whose inbound SA is in use, or being installed
  std::uint64_t last_sender_ = 0;
  bool encapsulates_ = true;  // unless the daemon says that it has no kernel-libipsec
  bool changed_ = false;
  Errors problems_;
};

}  // namespace penstock::control
