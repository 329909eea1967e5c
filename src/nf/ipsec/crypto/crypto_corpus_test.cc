// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The portable cores against published vectors from the corpus of test data, if it is present: all of CAVP's for
// AES-128-CBC, AES-128-GCM and HMAC with SHA-1 and SHA-256, and those of RFC 3686 and RFC 2202.

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

std::optional<std::string> corpus_text(const std::string& name) {
  const char* corpus = std::getenv("PENSTOCK_CORPUS");
  const std::string root = corpus != nullptr ? corpus : PENSTOCK_SOURCE_DIR "/../shared/data";
  const gzFile file = gzopen((root + "/ipsec/nist/" + name).c_str(), "rb");  // also reads uncompressed files
  if (file == nullptr) return std::nullopt;
  std::string text;
  std::vector<char> piece(1 << 16);
  for (int got = 0; (got = gzread(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  gzclose(file);
  return text;
}

/// The values between two empty lines, by name. Values of a bracketed section header apply until the next such header.
struct Case {
  std::string section;
  std::map<std::string, std::string> values;

  [[nodiscard]] Bytes bytes(const std::string& name) const {
    const auto found = values.find(name);
    return found == values.end() ? Bytes{} : from_hex(found->second);
  }
  [[nodiscard]] bool has(const std::string& name) const { return values.contains(name); }
};

/// Calls `check` for each case and returns the number of cases.
int for_each_case(const std::string& text, const std::function<void(const Case&)>& check) {
  std::istringstream lines(text);
  Case current;
  int cases = 0;
  const auto finish = [&] {
    if (!current.values.empty()) {
      ++cases;
      check(current);
    }
    current.values.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) {
      finish();
    } else if (line.front() == '[') {
      current.section = line;
    } else if (line.front() != '#') {
      const auto equals = line.find('=');
      std::string name = line.substr(0, equals);
      while (!name.empty() && name.back() == ' ') name.pop_back();
      std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
      value.erase(0, value.find_first_not_of(' ') == std::string::npos ? value.size() : value.find_first_not_of(' '));
      current.values[name] = value;
    }
  }
  finish();
  return cases;
}

SaKeys keys_of(Cipher cipher, const Bytes& key) {
  KeyMaterial material;
  material.cipher = cipher;
  material.cipher_key = Secret{key};
  material.icv_bytes = 16;
  return expanded(material);
}

/// A job's packet with its IV in place.
Bytes room_of(const CryptoJob& job, const Bytes& iv, const Bytes& text) {
  Bytes room(packet_bytes(job) + kBlockBytes);
  std::ranges::copy(iv, room.begin() + job.iv());
  std::ranges::copy(text, room.begin() + job.text());
  return room;
}

Bytes text_of(const CryptoJob& job, const Bytes& room) { return {room.begin() + job.text(), room.begin() + job.icv()}; }

TEST(CryptoCorpus, EncryptsAndDecryptsAllOfCavpForCbc) {
  int cases = 0;
  for (const char* name :
       {"CBCGFSbox128.rsp", "CBCKeySbox128.rsp", "CBCMMT128.rsp", "CBCVarKey128.rsp", "CBCVarTxt128.rsp"}) {
    const auto text = corpus_text(name);
    if (!text) GTEST_SKIP() << "no corpus";
    cases += for_each_case(*text, [&](const Case& vector) {
      const SaKeys keys = keys_of(Cipher::aes_cbc, vector.bytes("KEY"));
      const Bytes plain = vector.bytes("PLAINTEXT");
      const Bytes cipher = vector.bytes("CIPHERTEXT");
      const CryptoJob job = job_of(keys, 0, 0, static_cast<std::uint32_t>(plain.size()), 0);
      Bytes room = room_of(job, vector.bytes("IV"), plain);
      encrypt_cbc(host_encryption_table(), job, keys, room.data());
      EXPECT_EQ(text_of(job, room), cipher) << name;
      ASSERT_TRUE(open(job, keys, room.data()));
      EXPECT_EQ(text_of(job, room), plain) << name;
    });
  }
  EXPECT_GE(cases, 500);
}

TEST(CryptoCorpus, EncryptsAllOfRfc3686) {
  int cases = 0;
  for (const char* name : {"aes-128-ctr.txt", "aes-192-ctr.txt", "aes-256-ctr.txt"}) {
    const auto text = corpus_text(name);
    if (!text) GTEST_SKIP() << "no corpus";
    cases += for_each_case(*text, [&](const Case& vector) {
      if (!vector.has("KEY")) return;
      const Bytes block = vector.bytes("IV");
      KeyMaterial material;
      material.cipher = Cipher::aes_ctr;
      material.cipher_key = Secret{vector.bytes("KEY")};
      std::copy_n(block.begin(), 4, material.salt.begin());
      const SaKeys keys = expanded(material);
      const Bytes plain = vector.bytes("PLAINTEXT");
      const CryptoJob job = job_of(keys, 0, 0, static_cast<std::uint32_t>(plain.size()), 0);
      Bytes room = room_of(job, {block.begin() + 4, block.begin() + 12}, plain);
      crypt_by_counter(host_encryption_table(), job, keys, room.data());
      EXPECT_EQ(text_of(job, room), vector.bytes("CIPHERTEXT")) << name;
    });
  }
  EXPECT_GE(cases, 9);
}

/// AES-GCM (SP 800-38D §7.1) with IVs and additional data of any length, built from the cores.
class Gcm {
 public:
  Gcm(const SaKeys& keys, const Bytes& iv) : keys_(keys) {
    if (iv.size() == 12) {
      Bytes block = iv;
      block.insert(block.end(), {0, 0, 0, 1});
      first_ = load_block(block.data());
    } else {
      Block hash{};
      absorb(hash, iv);
      first_ =
          swap_bytes(ghash_times(hash ^ Block{{0, 0, 0, static_cast<std::uint32_t>(8 * iv.size())}}, keys_.ghash[0]));
    }
  }

  [[nodiscard]] Bytes crypt(Bytes text) const {
    Block counter = first_;
    for (std::size_t at = 0; at < text.size(); at += kBlockBytes) {
      counter.w[3] = swap_bytes(swap_bytes(counter.w[3]) + 1);
      const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(kBlockBytes, text.size() - at));
      const Block pad = aes_encrypt(host_encryption_table(), keys_.encryption, keys_.rounds, counter);
      store_block(text.data() + at, load_block(text.data() + at, bytes) ^ pad, bytes);
    }
    return text;
  }

  [[nodiscard]] Bytes tag(const Bytes& aad, const Bytes& cipher_text, std::size_t bytes) const {
    Block hash{};
    absorb(hash, aad);
    absorb(hash, cipher_text);
    const Block lengths{
        {0, static_cast<std::uint32_t>(8 * aad.size()), 0, static_cast<std::uint32_t>(8 * cipher_text.size())}};
    hash = ghash_times(hash ^ lengths, keys_.ghash[0]);
    Bytes tag(kBlockBytes);
    store_block(tag.data(),
                swap_bytes(hash) ^ aes_encrypt(host_encryption_table(), keys_.encryption, keys_.rounds, first_));
    tag.resize(bytes);
    return tag;
  }

 private:
  void absorb(Block& hash, const Bytes& data) const {
    for (std::size_t at = 0; at < data.size(); at += kBlockBytes) {
      const auto bytes = static_cast<std::uint32_t>(std::min<std::size_t>(kBlockBytes, data.size() - at));
      hash = ghash_times(hash ^ swap_bytes(load_block(data.data() + at, bytes)), keys_.ghash[0]);
    }
  }

  const SaKeys& keys_;
  Block first_;
};

TEST(CryptoCorpus, EncryptsAllOfCavpForGcm) {
  const auto text = corpus_text("gcmEncryptExtIV128.rsp.gz");
  if (!text) GTEST_SKIP() << "no corpus";
  const int cases = for_each_case(*text, [&](const Case& vector) {
    if (!vector.has("Key")) return;
    const SaKeys keys = keys_of(Cipher::aes_gcm, vector.bytes("Key"));
    const Gcm gcm(keys, vector.bytes("IV"));
    const Bytes tag = vector.bytes("Tag");
    EXPECT_EQ(gcm.crypt(vector.bytes("PT")), vector.bytes("CT"));
    EXPECT_EQ(gcm.tag(vector.bytes("AAD"), vector.bytes("CT"), tag.size()), tag);
  });
  EXPECT_GE(cases, 7875);
}

TEST(CryptoCorpus, DecryptsAndRefusesAllOfCavpForGcm) {
  const auto text = corpus_text("gcmDecrypt128.rsp.gz");
  if (!text) GTEST_SKIP() << "no corpus";
  int refused = 0;
  const int cases = for_each_case(*text, [&](const Case& vector) {
    if (!vector.has("Key")) return;
    const SaKeys keys = keys_of(Cipher::aes_gcm, vector.bytes("Key"));
    const Gcm gcm(keys, vector.bytes("IV"));
    const Bytes tag = vector.bytes("Tag");
    const bool genuine = gcm.tag(vector.bytes("AAD"), vector.bytes("CT"), tag.size()) == tag;
    EXPECT_EQ(genuine, !vector.has("FAIL"));
    if (genuine) {
      EXPECT_EQ(gcm.crypt(vector.bytes("CT")), vector.bytes("PT"));
    } else {
      ++refused;
    }
  });
  EXPECT_GE(cases, 7875);
  EXPECT_GE(refused, 1000);
}

template <typename Hash>
Bytes digest_of(const Bytes& key, const Bytes& message) {
  constexpr bool kSha1 = Hash::kStateWords == 5;
  Bytes short_key = key;
  if (key.size() > kShaBlockBytes) {  // longer keys, which no SA has, are hashed first (RFC 2104 §2)
    short_key.resize(4 * Hash::kStateWords);
    EVP_Digest(key.data(), key.size(), short_key.data(), nullptr, kSha1 ? EVP_sha1() : EVP_sha256(), nullptr);
  }
  KeyMaterial material;
  material.integrity = kSha1 ? Integrity::hmac_sha1_96 : Integrity::hmac_sha256_128;
  material.integrity_key = Secret{short_key};
  const SaKeys keys = expanded(material);
  const auto bytes = static_cast<std::uint32_t>(message.size());
  const MessageBytes reader(message.data(), bytes);
  typename Hash::State state;
  if constexpr (kSha1) {
    state = hmac<Sha1>(reader, bytes, false, 0, keys.sha1[0], keys.sha1[1]);
  } else {
    state = hmac<Sha256>(reader, bytes, false, 0, keys.sha256[0], keys.sha256[1]);
  }
  Bytes digest;
  for (const std::uint32_t word : state.w) {
    for (int shift = 24; shift >= 0; shift -= 8) digest.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  return digest;
}

TEST(CryptoCorpus, GivesAllDigestsOfCavpForHmacWithSha1AndSha256) {
  const auto text = corpus_text("HMAC.rsp");
  if (!text) GTEST_SKIP() << "no corpus";
  int checked = 0;
  for_each_case(*text, [&](const Case& vector) {
    if (!vector.has("Key") || (vector.section != "[L=20]" && vector.section != "[L=32]")) return;
    const Bytes mac = vector.bytes("Mac");
    Bytes digest = vector.section == "[L=20]" ? digest_of<Sha1>(vector.bytes("Key"), vector.bytes("Msg"))
                                              : digest_of<Sha256>(vector.bytes("Key"), vector.bytes("Msg"));
    digest.resize(mac.size());
    EXPECT_EQ(digest, mac);
    ++checked;
  });
  EXPECT_GE(checked, 400);
}

TEST(CryptoCorpus, GivesTheDigestsOfRfc2202) {
  const auto text = corpus_text("rfc-2202-sha1.txt");
  if (!text) GTEST_SKIP() << "no corpus";
  int checked = 0;
  for_each_case(*text, [&](const Case& vector) {
    if (!vector.has("MD")) return;
    EXPECT_EQ(digest_of<Sha1>(vector.bytes("Key"), vector.bytes("Msg")), vector.bytes("MD"));
    ++checked;
  });
  EXPECT_EQ(checked, 7);
}

}  // namespace
}  // namespace penstock::ipsec
