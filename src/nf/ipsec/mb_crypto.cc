// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/mb_crypto.h"

#include <fmt/format.h>
#include <intel-ipsec-mb.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/byte_order.h"
#include "nf/ipsec/secret.h"

namespace penstock::ipsec {

namespace {

struct FreeManager {
  void operator()(IMB_MGR* manager) const noexcept {
    // Keys and states of the last packets lie there.
    imb_clear_mem(manager, imb_get_mb_mgr_size());
    free_mb_mgr(manager);
  }
};
using OwnedManager = std::unique_ptr<IMB_MGR, FreeManager>;

struct Library {
  OwnedManager manager;
  IMB_ARCH architecture = IMB_ARCH_NONE;
};

Library make_manager() {
  Library library{OwnedManager(alloc_mb_mgr(0)), IMB_ARCH_NONE};
  if (library.manager == nullptr) throw std::bad_alloc();
  init_mb_mgr_auto(library.manager.get(), &library.architecture);
  return library;
}

void write_be64(std::uint8_t* to, std::uint64_t value) noexcept { reinterpret_cast<Be64*>(to)->set(value); }

void write_be32(std::uint8_t* to, std::uint32_t value) noexcept { reinterpret_cast<Be32*>(to)->set(value); }

/// Takes as long wherever they differ.
bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) noexcept {
  unsigned difference = 0;
  for (std::size_t i = 0; i < bytes; ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

constexpr std::size_t kHmacBlock = 64;  // of SHA-1 and SHA-256

/// Packets must not go on as they are.
[[noreturn]] void stop_for(IMB_MGR& manager) noexcept {
  fmt::print(stderr, "penstock: ipsec: intel-ipsec-mb refuses a burst: {}\n",
             imb_get_strerror(imb_get_errno(&manager)));
  std::abort();
}

}  // namespace

/// Aligned as the library wants round keys.
struct alignas(64) MbKeys::Key {
  std::array<std::uint32_t, 60> encrypt;
  std::array<std::uint32_t, 60> decrypt;
  std::array<std::uint8_t, 32> inner;  // the hash's state behind the key's block with ipad
  std::array<std::uint8_t, 32> outer;
  gcm_key_data gcm;
  std::uint64_t iv_epoch;
  std::uint32_t key_bytes;
  std::array<std::uint8_t, 4> salt;
  Cipher cipher;
  IMB_CIPHER_MODE cipher_mode;
  IMB_HASH_ALG hash;
  bool esn;
};

MbKeys::MbKeys(std::span<const KeyMaterial> sas) : keys_(sas.size()) {
  const Library library = make_manager();
  IMB_MGR* const manager = library.manager.get();
  for (std::size_t i = 0; i < sas.size(); ++i) {
    const KeyMaterial& sa = sas[i];
    Key& key = keys_[i];
    std::memset(&key, 0, sizeof key);
    key.iv_epoch = sa.iv_epoch;
    key.salt = sa.salt;
    key.key_bytes = static_cast<std::uint32_t>(sa.cipher_key.size());
    key.cipher = sa.cipher;
    key.esn = sa.esn;
    const std::uint8_t* const secret = sa.cipher_key.bytes().data();
    if (sa.cipher == Cipher::aes_gcm) {
      switch (key.key_bytes) {
        case 16: IMB_AES128_GCM_PRE(manager, secret, &key.gcm); break;
        case 24: IMB_AES192_GCM_PRE(manager, secret, &key.gcm); break;
        default: IMB_AES256_GCM_PRE(manager, secret, &key.gcm);
      }
    } else if (sa.cipher != Cipher::null) {
      switch (key.key_bytes) {
        case 16: IMB_AES_KEYEXP_128(manager, secret, key.encrypt.data(), key.decrypt.data()); break;
        case 24: IMB_AES_KEYEXP_192(manager, secret, key.encrypt.data(), key.decrypt.data()); break;
        default: IMB_AES_KEYEXP_256(manager, secret, key.encrypt.data(), key.decrypt.data());
      }
    }
    switch (sa.cipher) {
      case Cipher::null: key.cipher_mode = IMB_CIPHER_NULL; break;
      case Cipher::aes_cbc: key.cipher_mode = IMB_CIPHER_CBC; break;
      case Cipher::aes_ctr: key.cipher_mode = IMB_CIPHER_CNTR; break;
      case Cipher::aes_gcm: key.cipher_mode = IMB_CIPHER_GCM; break;
    }
    key.hash = sa.cipher == Cipher::aes_gcm ? IMB_AUTH_AES_GMAC : IMB_AUTH_NULL;
    const bool sha1 = sa.integrity == Integrity::hmac_sha1_96;
    const bool sha256 = sa.integrity == Integrity::hmac_sha256_128 || sa.integrity == Integrity::hmac_sha256_96;
    if (sha1 || sha256) {
      key.hash = sha1 ? IMB_AUTH_HMAC_SHA_1 : IMB_AUTH_HMAC_SHA_256;
      const std::span<const std::uint8_t> bytes = sa.integrity_key.bytes();
      for (const bool inner : {true, false}) {
        std::array<std::uint8_t, kHmacBlock> block;
        block.fill(inner ? 0x36 : 0x5c);
        for (std::size_t b = 0; b < bytes.size(); ++b) block[b] ^= bytes[b];
        std::uint8_t* const state = inner ? key.inner.data() : key.outer.data();
        if (sha1) {
          IMB_SHA1_ONE_BLOCK(manager, block.data(), state);
        } else {
          IMB_SHA256_ONE_BLOCK(manager, block.data(), state);
        }
        wipe(block.data(), block.size());
      }
    }
  }
}

MbKeys::~MbKeys() { wipe(keys_.data(), keys_.size() * sizeof(Key)); }

const MbKeys::Key& MbKeys::operator[](std::uint32_t sa) const noexcept { return keys_[sa]; }

std::string_view mb_processor_features() {
  switch (make_manager().architecture) {
    case IMB_ARCH_SSE: return "SSE";
    case IMB_ARCH_AVX: return "AVX";
    case IMB_ARCH_AVX2: return "AVX2";
    case IMB_ARCH_AVX512: return "AVX-512";
    default: return "no vector instructions";
  }
}

struct MbCrypto::Manager {
  OwnedManager library = make_manager().manager;
};

/// What the library reads and writes of a job beside the packet.
struct MbCrypto::Slot {
  alignas(16) std::array<std::uint8_t, 16> iv;
  alignas(16) std::array<std::uint8_t, 32> tag;
  std::array<std::uint8_t, 16> received;  // the ICV of a packet that came in
  std::array<std::uint8_t, 12> aad;
};

MbCrypto::MbCrypto(const MbKeys& keys)
    : keys_(keys), manager_(std::make_unique<Manager>()), slots_(std::make_unique<Slot[]>(kMostJobs)) {}

MbCrypto::~MbCrypto() = default;

void MbCrypto::seal(std::span<const Work> work) noexcept {
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto& [job, base] = work[i];
    const MbKeys::Key& key = keys_[job.sa];
    std::uint8_t* const iv = base + job.iv();
    const std::uint64_t number = key.iv_epoch + job.sequence;
    if (key.cipher == Cipher::aes_cbc) {
      // The IV is that block, encrypted (SP 800-38A appendix C). As the first block of a text behind an IV of zeros it
      // becomes just that, and then is the IV of what follows.
      write_be64(iv, 0);
      write_be64(iv + 8, number);
      slots_[i].iv.fill(0);
    } else if (key.cipher != Cipher::null) {
      write_be64(iv, number);
    }
  }
  run(work, true);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto& [job, base] = work[i];
    std::uint8_t* const icv = base + job.icv();
    if (keys_[job.sa].hash != IMB_AUTH_NULL) {
      std::memcpy(icv, slots_[i].tag.data(), job.icv_bytes);
    } else {
      std::memset(icv, 0, job.icv_bytes);
    }
  }
}

void MbCrypto::open(std::span<const Work> work, std::span<bool> authentic) noexcept {
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto& [job, base] = work[i];
    const MbKeys::Key& key = keys_[job.sa];
    if (key.hash != IMB_AUTH_NULL) std::memcpy(slots_[i].received.data(), base + job.icv(), job.icv_bytes);
    if (key.cipher == Cipher::aes_cbc) std::memcpy(slots_[i].iv.data(), base + job.iv(), slots_[i].iv.size());
  }
  run(work, false);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const CryptoJob& job = work[i].job;
    authentic[i] =
        keys_[job.sa].hash == IMB_AUTH_NULL || equal(slots_[i].received.data(), slots_[i].tag.data(), job.icv_bytes);
  }
}

void MbCrypto::run(std::span<const Work> work, bool seals) noexcept {
  assert(work.size() <= kMostJobs);
  IMB_MGR* const manager = manager_->library.get();
  std::array<IMB_JOB*, kMostJobs> jobs;
  const auto count = static_cast<std::uint32_t>(work.size());
  if (count == 0) return;
  // Nothing is in the manager between bursts: there is room for a whole one.
  if (IMB_GET_NEXT_BURST(manager, count, jobs.data()) != count) stop_for(*manager);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& [job, base] = work[i];
    const MbKeys::Key& key = keys_[job.sa];
    Slot& slot = slots_[i];
    IMB_JOB& to = *jobs[i];
    std::uint8_t* const esp = base + job.esp;
    to.cipher_mode = key.cipher_mode;
    to.hash_alg = key.hash;
    to.cipher_direction = seals ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
    to.chain_order = seals ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    to.key_len_in_bytes = key.key_bytes;
    to.src = esp;
    std::uint32_t cipher_from = job.text() - job.esp;
    std::uint32_t cipher_bytes = job.text_bytes;
    to.iv = slot.iv.data();
    to.iv_len_in_bytes = slot.iv.size();
    to.enc_keys = key.encrypt.data();
    to.dec_keys = key.decrypt.data();
    switch (key.cipher) {
      case Cipher::null: break;
      case Cipher::aes_cbc:
        if (seals) {
          cipher_from -= job.iv_bytes;
          cipher_bytes += job.iv_bytes;
        }
        break;
      case Cipher::aes_ctr:  // RFC 3686 §4: nonce, IV, and a count from 1
        std::memcpy(slot.iv.data(), key.salt.data(), 4);
        std::memcpy(slot.iv.data() + 4, base + job.iv(), 8);
        write_be32(slot.iv.data() + 12, 1);
        break;
      case Cipher::aes_gcm:  // RFC 4106 §4 and §5
        std::memcpy(slot.iv.data(), key.salt.data(), 4);
        std::memcpy(slot.iv.data() + 4, base + job.iv(), 8);
        to.iv_len_in_bytes = 12;
        to.enc_keys = to.dec_keys = &key.gcm;
        to.u.GCM.aad = esp;
        to.u.GCM.aad_len_in_bytes = 8;
        if (key.esn) {
          std::memcpy(slot.aad.data(), esp, 4);
          write_be32(slot.aad.data() + 4, static_cast<std::uint32_t>(job.sequence >> 32));
          std::memcpy(slot.aad.data() + 8, esp + 4, 4);
          to.u.GCM.aad = slot.aad.data();
          to.u.GCM.aad_len_in_bytes = 12;
        }
        break;
    }
    to.dst = esp + cipher_from;
    to.cipher_start_src_offset_in_bytes = cipher_from;
    to.msg_len_to_cipher_in_bytes = cipher_bytes;
    to.hash_start_src_offset_in_bytes = key.cipher == Cipher::aes_gcm ? cipher_from : 0;
    to.msg_len_to_hash_in_bytes = key.cipher == Cipher::aes_gcm ? cipher_bytes : job.authenticated_bytes();
    to.auth_tag_output = slot.tag.data();
    to.auth_tag_output_len_in_bytes = job.icv_bytes;
    if (key.cipher != Cipher::aes_gcm && key.hash != IMB_AUTH_NULL) {
      to.u.HMAC._hashed_auth_key_xor_ipad = key.inner.data();
      to.u.HMAC._hashed_auth_key_xor_opad = key.outer.data();
      if (key.esn) {
        // The number's upper half is authenticated behind the text, where the ICV is going to be (RFC 4303 §2.2.1).
        write_be32(base + job.icv(), static_cast<std::uint32_t>(job.sequence >> 32));
        to.msg_len_to_hash_in_bytes += 4;
      }
    }
    if (key.hash == IMB_AUTH_HMAC_SHA_256) to.auth_tag_output_len_in_bytes = 16;  // the library cuts it to no other
  }
  std::uint32_t done = IMB_SUBMIT_BURST(manager, count, jobs.data());
  while (done < count) {
    const std::uint32_t more = IMB_FLUSH_BURST(manager, count - done, jobs.data());
    if (more == 0) stop_for(*manager);
    done += more;
  }
}

}  // namespace penstock::ipsec
