// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/testing/fuzz_check.h"
#include "nf/ipsec/sa/esp_sa_table.h"
#include "nf/ipsec/xfrm/state_reader.h"

using namespace penstock;
using penstock::testing::check;

namespace {

/// Eight hexadecimal digits in a row may be part of a key.
bool may_hold_a_key(const std::string& text) {
  std::size_t row = 0;
  return std::ranges::any_of(text, [&](char c) {
    row = std::isxdigit(static_cast<unsigned char>(c)) != 0 ? row + 1 : 0;
    return row == 8;
  });
}

void check_association(const ipsec::SecurityAssociation& sa) {
  using ipsec::Cipher;
  using ipsec::Integrity;
  check(sa.spi != 0 && ipsec::is_ipv6(sa.source) == ipsec::is_ipv6(sa.destination));
  const std::size_t key = sa.cipher_key.size();
  check(sa.cipher == Cipher::null ? key == 0 : key == 16 || key == 24 || key == 32);
  check(sa.salt.size() == (sa.cipher == Cipher::aes_ctr || sa.cipher == Cipher::aes_gcm ? 4U : 0U));
  check((sa.cipher == Cipher::aes_gcm) == (sa.integrity == Integrity::none));
  const bool keyed = sa.integrity != Integrity::none && sa.integrity != Integrity::digest_null;
  check(keyed != sa.integrity_key.empty());
  if (keyed) check(sa.icv_bytes == ipsec::icv_bytes(sa.integrity));
  check(sa.sequence.window.size() <= (std::max(sa.replay_window, 32U) + 31) / 32);
  check(sa.esn || (sa.sequence.sent >> 32 == 0 && sa.sequence.received >> 32 == 0));
}

}  // namespace

/// SAs that are read are supported ones, and no message contains a key.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto states = ipsec::parse_states({reinterpret_cast<const char*>(data), size}, "fuzz");
  for (const Error& error : states ? states->unsupported : states.error()) check(!may_hold_a_key(error.found));
  if (!states) return 0;
  for (const ipsec::SecurityAssociation& sa : states->value) check_association(sa);
  const std::string table = ipsec::esp_sa_table(states->value);
  check(static_cast<std::size_t>(std::ranges::count(table, '\n')) == states->value.size());
  return 0;
}
