// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Wireshark gets packets of every algorithm with the table that we write. It must find their ICVs correct and see the
// inner packets. Skipped if there is no tshark.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"
#include "nf/ipsec/sa/esp_sa_table.h"

namespace penstock::ipsec {
namespace {

void append16(Bytes& bytes, std::size_t number) {
  bytes.push_back(static_cast<std::uint8_t>(number >> 8));
  bytes.push_back(static_cast<std::uint8_t>(number));
}

void append32(Bytes& bytes, std::uint32_t number) {
  append16(bytes, number >> 16);
  append16(bytes, number & 0xffff);
}

/// An IP header before `bytes` more. Wireshark does not verify checksums by default.
Bytes ip_header(bool ipv6, std::uint8_t protocol, std::size_t bytes) {
  Bytes header;
  if (ipv6) {
    append32(header, 6U << 28);
    append16(header, bytes);
    append16(header, static_cast<std::uint32_t>(protocol) << 8 | 64);
    for (const std::uint32_t host : {1U, 2U}) {
      for (const std::uint32_t word : {0x2001'0db8U, 0U, 0U, host}) append32(header, word);
    }
    return header;
  }
  append16(header, 0x4500);
  append16(header, bytes + 20);
  append32(header, 0);
  append32(header, 64U << 24 | static_cast<std::uint32_t>(protocol) << 16);
  append32(header, 0x0a000001);
  append32(header, 0x0a000002);
  return header;
}

struct Sent {
  SecurityAssociation sa;
  Bytes packet;
  std::uint16_t port = 0;  // port of the inner UDP datagram
};

/// A tunnel mode packet that carries one UDP datagram.
Sent send(const KeyMaterial& material, bool ipv6, std::uint16_t port, RandomCrypto& random) {
  constexpr std::uint8_t kUdp = 17, kEsp = 50, kIpv4 = 4;
  Sent sent;
  sent.port = port;
  SecurityAssociation& sa = sent.sa;
  if (ipv6) {
    sa.source = Ipv6Address{0x2001'0db8'0000'0000, 1};
    sa.destination = Ipv6Address{0x2001'0db8'0000'0000, 2};
  } else {
    sa.source = Ipv4Address{0x0a000001};
    sa.destination = Ipv4Address{0x0a000002};
  }
  sa.spi = 0x1000U + port;
  sa.cipher = material.cipher;
  sa.cipher_key = material.cipher_key;
  if (material.cipher == Cipher::aes_ctr || material.cipher == Cipher::aes_gcm) sa.salt = Secret(material.salt);
  sa.integrity = material.integrity;
  sa.integrity_key = material.integrity_key;
  SaKeys keys;
  expand(material, keys);
  sa.icv_bytes = static_cast<std::uint8_t>(keys.icv_bytes);

  const std::size_t payload = random.below(200);
  Bytes text = ip_header(false, kUdp, payload + 8);
  append16(text, port);
  append16(text, port);
  append16(text, payload + 8);
  append16(text, 0);
  for (const std::uint8_t byte : random.bytes(payload)) text.push_back(byte);
  std::uint8_t padding = 0;
  while ((text.size() + 2) % text_unit(material.cipher) != 0) text.push_back(++padding);
  text.push_back(padding);
  text.push_back(kIpv4);

  constexpr std::uint32_t kSequence = 7;
  CryptoJob job{kSequence, 0, 0, static_cast<std::uint32_t>(text.size()), keys.iv_bytes, keys.icv_bytes};
  sent.packet = ip_header(ipv6, kEsp, job.icv() + job.icv_bytes);
  job.esp = static_cast<std::uint32_t>(sent.packet.size());
  append32(sent.packet, sa.spi);
  append32(sent.packet, kSequence);
  sent.packet.resize(job.text());
  sent.packet.insert(sent.packet.end(), text.begin(), text.end());
  sent.packet.resize(job.icv() + job.icv_bytes);
  seal(job, keys, sent.packet.data());
  wipe(&keys, sizeof keys);
  return sent;
}

std::string capture_of(const std::vector<Sent>& all) {
  constexpr std::uint32_t kLinkTypeRaw = 101;
  std::string file;
  const auto add = [&](std::uint32_t word) { file.append(reinterpret_cast<const char*>(&word), sizeof word); };
  for (const std::uint32_t word : {0xa1b2c3d4U, 0x0004'0002U, 0U, 0U, 0xffffU, kLinkTypeRaw}) add(word);
  for (const Sent& sent : all) {
    const auto bytes = static_cast<std::uint32_t>(sent.packet.size());
    for (const std::uint32_t word : {0U, 0U, bytes, bytes}) add(word);
    file.append(sent.packet.begin(), sent.packet.end());
  }
  return file;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char chunk[4096];
  for (std::size_t got = 0; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, got);
  pclose(pipe);
  return text;
}

TEST(EspSaTable, IsWhatWiresharkDecryptsBy) {
  if (output_of("tshark --version 2>/dev/null").find("TShark") == std::string::npos) GTEST_SKIP() << "no tshark here";
  RandomCrypto random(20261);
  std::vector<Sent> all;
  std::vector<SecurityAssociation> states;
  std::string expected;
  for (KeyMaterial material : random.every_algorithm()) {
    const bool unprotected = material.integrity == Integrity::none && material.cipher != Cipher::aes_gcm;
    if (material.esn || unprotected) continue;  // the one it cannot check, the other is no SA of ours
    const bool checked = material.integrity != Integrity::digest_null;
    if (!checked) material.icv_bytes = 12;  // one of the lengths that Wireshark knows
    for (const bool ipv6 : {false, true}) {
      const auto port = static_cast<std::uint16_t>(10'000 + all.size());
      all.push_back(send(material, ipv6, port, random));
      states.push_back(all.back().sa);
      expected += std::to_string(port) + (checked ? "\t1" : "\t0") + "\n";
    }
  }
  ASSERT_GT(all.size(), 60U);

  std::string folder = ::testing::TempDir() + "/esp_sa_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directories(folder + "/wireshark");
  std::ofstream(folder + "/esp.pcap", std::ios::binary) << capture_of(all);
  const auto written = write_text_file(folder + "/wireshark/esp_sa", esp_sa_table(states));
  ASSERT_TRUE(written) << to_string(written.error());
  const std::string seen =
      output_of("XDG_CONFIG_HOME=" + folder + " tshark -r " + folder +
                "/esp.pcap -o esp.enable_encryption_decode:TRUE -o esp.enable_authentication_check:TRUE"
                " -T fields -e udp.srcport -e esp.icv_good 2>" +
                folder + "/log");
  std::string log;
  std::getline(std::ifstream(folder + "/log"), log, '\0');
  EXPECT_EQ(seen, expected) << log;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::ipsec
