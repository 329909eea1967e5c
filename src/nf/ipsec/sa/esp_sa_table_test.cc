// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa/esp_sa_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace penstock::ipsec {
namespace {

Secret secret(std::size_t bytes, std::uint8_t first) {
  std::vector<std::uint8_t> key(bytes);
  for (std::size_t i = 0; i < bytes; ++i) key[i] = static_cast<std::uint8_t>(first + i);
  return Secret(key);
}

std::vector<SecurityAssociation> some_states() {
  std::vector<SecurityAssociation> states(4);
  states[0].source = Ipv4Address{0x0a000001};
  states[0].destination = Ipv4Address{0x0a000002};
  states[0].spi = 0x101;
  states[0].cipher = Cipher::aes_cbc;
  states[0].cipher_key = secret(16, 0x30);
  states[0].integrity = Integrity::hmac_sha1_96;
  states[0].integrity_key = secret(20, 0xf0);
  states[0].icv_bytes = 12;
  states[1].source = Ipv6Address{0x2001'0db8'0000'0000, 1};
  states[1].destination = Ipv6Address{0x2001'0db8'0000'0000, 2};
  states[1].spi = 0xc1a2b3d4;
  states[1].cipher = Cipher::aes_gcm;
  states[1].cipher_key = secret(16, 0);
  states[1].salt = secret(4, 0xa0);
  states[1].icv_bytes = 16;
  states[2] = states[0];
  states[2].source = Ipv4Address{};
  states[2].cipher = Cipher::aes_ctr;
  states[2].salt = secret(4, 0xa0);
  states[2].integrity = Integrity::hmac_sha256_128;
  states[3] = states[0];
  states[3].cipher = Cipher::null;
  states[3].cipher_key.clear();
  states[3].integrity = Integrity::digest_null;
  states[3].integrity_key.clear();
  return states;
}

constexpr std::string_view kTable =
    R"("IPv4","10.0.0.1","10.0.0.2","0x00000101","AES-CBC [RFC3602]","0x303132333435363738393a3b3c3d3e3f",)"
    R"("HMAC-SHA-1-96 [RFC2404]","0xf0f1f2f3f4f5f6f7f8f9fafbfcfdfeff00010203")"
    "\n"
    R"("IPv6","2001:db8::1","2001:db8::2","0xc1a2b3d4","AES-GCM with 16 octet ICV [RFC4106]",)"
    R"("0x000102030405060708090a0b0c0d0e0fa0a1a2a3","NULL","")"
    "\n"
    R"("IPv4","*","10.0.0.2","0x00000101","AES-CTR [RFC3686]","0x303132333435363738393a3b3c3d3e3fa0a1a2a3",)"
    R"("HMAC-SHA-256-128 [RFC4868]","0xf0f1f2f3f4f5f6f7f8f9fafbfcfdfeff00010203")"
    "\n"
    R"("IPv4","10.0.0.1","10.0.0.2","0x00000101","NULL","","ANY 96 bit authentication [no checking]","")"
    "\n";

TEST(EspSaTable, HasALineForEachSa) { EXPECT_EQ(esp_sa_table(some_states()), kTable); }

}  // namespace
}  // namespace penstock::ipsec
