// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/sa/esp_sa_table.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

namespace penstock::ipsec {

namespace {

std::string_view cipher_name(const SecurityAssociation& sa) {
  switch (sa.cipher) {
    case Cipher::null: return "NULL";
    case Cipher::aes_cbc: return "AES-CBC [RFC3602]";
    case Cipher::aes_ctr: return "AES-CTR [RFC3686]";
    case Cipher::aes_gcm: break;
  }
  switch (sa.icv_bytes) {
    case 8: return "AES-GCM with 8 octet ICV [RFC4106]";
    case 12: return "AES-GCM with 12 octet ICV [RFC4106]";
    default: return "AES-GCM with 16 octet ICV [RFC4106]";
  }
}

/// For `digest_null`, the ICV lengths that Wireshark knows; with another length it takes the ICV for text.
std::string_view integrity_name(const SecurityAssociation& sa) {
  switch (sa.integrity) {
    case Integrity::hmac_sha1_96: return "HMAC-SHA-1-96 [RFC2404]";
    case Integrity::hmac_sha256_128: return "HMAC-SHA-256-128 [RFC4868]";
    case Integrity::hmac_sha256_96: return "HMAC-SHA-256-96 [draft-ietf-ipsec-ciph-sha-256-00]";
    case Integrity::none: return "NULL";
    case Integrity::digest_null: break;
  }
  switch (sa.icv_bytes) {
    case 8: return "ANY 64 bit authentication [no checking]";
    case 12: return "ANY 96 bit authentication [no checking]";
    case 16: return "ANY 128 bit authentication [no checking]";
    default: return "NULL";
  }
}

void append_key(std::string& text, const Secret& key, const Secret& salt) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  text += '"';
  if (!key.empty()) text += "0x";
  for (const Secret* part : {&key, &salt}) {
    for (const std::uint8_t byte : part->bytes()) {
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  text += '"';
}

/// "*" if unknown, as Wireshark expects.
std::string address_or_any(const IpAddress& address) {
  return address == IpAddress(Ipv4Address{}) || address == IpAddress(Ipv6Address{}) ? "*" : to_string(address);
}

}  // namespace

std::string esp_sa_table(std::span<const SecurityAssociation> states) {
  // Reserved at full size, so that growing leaves no copy of a key behind.
  constexpr std::size_t kMostLineBytes = 512;
  std::string text;
  text.reserve(states.size() * kMostLineBytes);
  for (const SecurityAssociation& sa : states) {
    text += fmt::format(R"("{}","{}","{}","0x{:08x}","{}",)", is_ipv6(sa.destination) ? "IPv6" : "IPv4",
                        address_or_any(sa.source), to_string(sa.destination), sa.spi, cipher_name(sa));
    append_key(text, sa.cipher_key, sa.salt);
    text += fmt::format(R"(,"{}",)", integrity_name(sa));
    append_key(text, sa.integrity_key, {});
    text += '\n';
  }
  return text;
}

}  // namespace penstock::ipsec
