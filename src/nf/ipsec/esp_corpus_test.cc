// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// ESP packets from other implementations, and frames of real captures, from the corpus of test data, if it is present.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/crypto/keys.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "port/capture_reader.h"

namespace penstock::ipsec {
namespace {

std::filesystem::path corpus() {
  const char* const given = std::getenv("PENSTOCK_CORPUS");
  return given != nullptr ? given : PENSTOCK_SOURCE_DIR "/../shared/data";
}

Bytes from_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// The SA of a published packet; empty if its algorithms are not supported.
struct PublishedSa {
  SaView view;
  SaKeys keys{};
  std::uint64_t iv = 0;  // the first eight bytes
};
std::optional<PublishedSa> sa_of(const nlohmann::json& test) {
  const auto text = [&](const char* name) { return test.value(name, std::string()); };
  KeyMaterial material;
  if (text("aead_algo") == "aes-gcm") {
    material.cipher = Cipher::aes_gcm;
  } else if (text("cipher_algo") == "aes-cbc") {
    material.cipher = Cipher::aes_cbc;
  } else if (text("cipher_algo") == "aes-ctr") {
    material.cipher = Cipher::aes_ctr;
  } else {
    return std::nullopt;
  }
  if (text("auth_algo") == "hmac-sha256") {
    material.integrity = Integrity::hmac_sha256_128;
  } else if (text("auth_algo") == "null") {
    material.integrity = Integrity::digest_null;
  } else if (material.cipher != Cipher::aes_gcm) {
    return std::nullopt;
  }
  material.icv_bytes = test["icv"];
  material.cipher_key = Secret(from_hex(text("key")));
  material.integrity_key = Secret(from_hex(text("auth_key")));
  const Bytes salt = from_hex(text("salt"));
  std::copy(salt.begin(), salt.end(), material.salt.begin());
  PublishedSa sa;
  const Bytes iv = from_hex(text("iv"));
  for (int i = 0; i < 8; ++i) sa.iv = sa.iv << 8 | iv[static_cast<std::size_t>(i)];
  material.iv_base = sa.iv - test["seq"].get<std::uint64_t>();
  EXPECT_TRUE(fits(material));
  expand(material, sa.keys);

  sa.view = test["tunnel_type"] == "ipv4" ? ipv4_tunnel() : ipv6_tunnel();
  sa.view.spi = test["spi"];
  sa.view.iv_bytes = static_cast<std::uint8_t>(iv_bytes(material.cipher));
  sa.view.block_bytes = static_cast<std::uint8_t>(text_unit(material.cipher));
  sa.view.icv_bytes = static_cast<std::uint8_t>(material.icv_bytes);
  return sa;
}

TEST(EspCorpus, OpensAndSealsOthersPackets) {
  std::ifstream file(corpus() / "ipsec/esp_packet_vectors.json");
  if (!file) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  int opened = 0;
  int sealed = 0;
  const nlohmann::json vectors = nlohmann::json::parse(file);
  for (const auto& test : vectors["tests"]) {
    if (test["proto"] != "esp") continue;
    auto sa = sa_of(test);
    if (!sa) continue;
    SCOPED_TRACE(test["name"].get<std::string>());
    Bytes plain = from_hex(test["plain_ip"]);
    Bytes esp = from_hex(test["esp_ip"]);
    if (test.value("note", "").find("swapped") != std::string::npos) std::swap(plain, esp);

    RoomyFrame frame(esp, {0, 0}, LinkType::raw_ip);
    const EspPacket packet = find_esp(frame.view, {});
    ASSERT_EQ(packet.kind, EspPacket::Kind::esp);
    EXPECT_EQ(packet.spi, sa->view.spi);
    const Opening opening = plan_decapsulation(frame.view, packet, sa->view, 0, packet.sequence);
    ASSERT_EQ(opening.reason, Reason::none);
    ASSERT_TRUE(open(opening.job, sa->keys, frame.base()));
    ASSERT_EQ(decapsulate(frame.view, sa->view, packet, opening.job), Reason::none);
    EXPECT_EQ(frame.bytes(), plain);
    ++opened;

    // Outbound, if we can produce the same IV. The outer headers differ in fields that each sender may choose.
    if (sa->keys.cipher == Cipher::aes_cbc) continue;
    RoomyFrame out(plain, {72, 64}, LinkType::raw_ip);
    const Encapsulation plan = plan_encapsulation(out.view, sa->view, out.room());
    ASSERT_EQ(plan.reason, Reason::none);
    const CryptoJob job = encapsulate(out.view, sa->view, 0, plan, packet.sequence);
    seal(job, sa->keys, out.base());
    const std::size_t header = sa->view.outer_header_bytes();
    ASSERT_EQ(out.view.length(), esp.size());
    const Bytes ours = out.bytes();
    EXPECT_TRUE(std::equal(ours.begin() + static_cast<std::ptrdiff_t>(header), ours.end(),
                           esp.begin() + static_cast<std::ptrdiff_t>(header)));
    ++sealed;
  }
  EXPECT_EQ(opened, 9);
  EXPECT_EQ(sealed, 6);
}

/// SAs of all kinds, with keys.
struct Sealed {
  SaView view;
  SaKeys keys;
};
std::vector<Sealed> sas_of_all_kinds() {
  std::vector<Sealed> sas;
  const auto add = [&](SaView view, Cipher cipher, Integrity integrity, std::uint8_t icv_bytes) {
    KeyMaterial material;
    material.cipher = cipher;
    material.integrity = integrity;
    material.icv_bytes = icv_bytes;
    if (cipher != Cipher::null) material.cipher_key = Secret(Bytes(16, 7));
    if (integrity == Integrity::hmac_sha1_96) material.integrity_key = Secret(Bytes(20, 9));
    if (integrity == Integrity::hmac_sha256_128) material.integrity_key = Secret(Bytes(32, 9));
    EXPECT_TRUE(fits(material));
    Sealed sa;
    expand(material, sa.keys);
    sa.view = view;
    sa.view.iv_bytes = static_cast<std::uint8_t>(iv_bytes(cipher));
    sa.view.block_bytes = static_cast<std::uint8_t>(text_unit(cipher));
    sa.view.icv_bytes = icv_bytes;
    sas.push_back(sa);
  };
  for (SaView view : {ipv4_tunnel(), ipv6_tunnel(), in_udp(ipv4_tunnel()), in_udp(ipv6_tunnel()),
                      transport(NetworkLayer::ipv4), transport(NetworkLayer::ipv6)}) {
    add(view, Cipher::aes_gcm, Integrity::none, 16);
    add(view, Cipher::aes_cbc, Integrity::hmac_sha1_96, 12);
    view.tfc_bytes = view.tunnel ? 600 : 0;
    add(view, Cipher::aes_ctr, Integrity::hmac_sha256_128, 16);
    add(view, Cipher::null, Integrity::hmac_sha1_96, 12);
  }
  return sas;
}

std::vector<std::string> capture_paths() {
  std::vector<std::string> paths;
  if (!std::filesystem::is_directory(corpus() / "captures")) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus() / "captures")) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.find(".pcap") != std::string::npos) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// True if the SA could carry the packet, which then came back unchanged.
bool comes_back(const Bytes& bytes, LinkType link, std::uint32_t wire_length, const Sealed& sa,
                std::uint64_t sequence) {
  RoomyFrame frame(bytes, growth_of(sa.view), link, wire_length);
  const PacketLayout before = frame.view.layout();
  const Encapsulation plan = plan_encapsulation(frame.view, sa.view, frame.room());
  if (plan.reason != Reason::none) return false;
  const CryptoJob sealing = encapsulate(frame.view, sa.view, 0, plan, sequence);
  seal(sealing, sa.keys, frame.base());
  if (needs_udp_checksum(sa.view)) write_udp_checksum(frame.view, sealing);
  parse(frame.view);

  const EspPacket packet = find_esp(frame.view, {});
  EXPECT_EQ(packet.kind, EspPacket::Kind::esp);
  EXPECT_EQ(packet.spi, sa.view.spi);
  const Opening opening = plan_decapsulation(frame.view, packet, sa.view, 0, sequence);
  EXPECT_EQ(opening.reason, Reason::none);
  EXPECT_TRUE(open(opening.job, sa.keys, frame.base()));
  EXPECT_EQ(decapsulate(frame.view, sa.view, packet, opening.job), Reason::none);
  EXPECT_EQ(frame.bytes(), Bytes(bytes.begin(), bytes.begin() + before.end));
  return true;
}

TEST(EspCorpus, GivesBackEveryFrameOfRealCaptures) {
  const auto paths = capture_paths();
  if (paths.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  const std::vector<Sealed> sas = sas_of_all_kinds();
  std::uint64_t seen = 0;
  std::uint64_t packets = 0;
  std::uint64_t protected_packets = 0;
  for (const std::string& path : paths) {
    port::ReadControl control;
    auto capture = port::CaptureReader::open(path, control);
    if (!capture) continue;
    port::CapturedFrame frame;
    while (capture->next(frame) == port::CaptureReader::Status::packet) {
      if (++seen % penstock::testing::stride() != 0) continue;
      const Bytes bytes(frame.bytes.begin(), frame.bytes.end());
      const Sealed& sa = sas[++packets % sas.size()];
      if (comes_back(bytes, frame.link_type, frame.wire_length, sa, packets)) ++protected_packets;
      if (::testing::Test::HasFailure()) FAIL() << path << ", SA " << packets % sas.size();
    }
  }
  RecordProperty("packets", std::to_string(packets));
  EXPECT_GT(packets, penstock::testing::rounds(10'000));
  EXPECT_GT(protected_packets, packets / 3);
}

}  // namespace
}  // namespace penstock::ipsec
