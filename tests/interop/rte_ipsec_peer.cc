// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A second implementation of ESP: DPDK's librte_ipsec with OpenSSL's ciphers (crypto_openssl). Protects or opens the
// packets of a capture with one SA, and shares no code with ours. Input and output are raw IP, so that no link layer is
// involved.
//
// usage: rte_ipsec_peer protect|open IN.pcap OUT.pcap NAME=VALUE...
//   cipher=aes-cbc|aes-ctr|aes-gcm  key=HEX  salt=HEX  auth=sha1|sha256  auth-key=HEX  spi=N  sequence=N
//   mode=tunnel|transport  source=ADDRESS  destination=ADDRESS  inner=4|6  esn=0|1
// Prints how many packets were processed, and how many were not.

#include <arpa/inet.h>
#include <pcap/pcap.h>
#include <rte_bus_vdev.h>
#include <rte_cryptodev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ipsec.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Options {
  std::map<std::string, std::string> values;

  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise = "") const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
  [[nodiscard]] std::uint64_t number(const std::string& name) const {
    return std::strtoull(text(name, "0").c_str(), nullptr, 0);
  }
  [[nodiscard]] Bytes bytes(const std::string& name) const {
    const std::string hex = text(name);
    Bytes result;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      result.push_back(static_cast<std::uint8_t>(std::strtoul(hex.substr(i, 2).c_str(), nullptr, 16)));
    return result;
  }
};

void need(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what + ": " + rte_strerror(rte_errno));
}

constexpr std::uint16_t kIvOffset = sizeof(rte_crypto_op) + sizeof(rte_crypto_sym_op);
constexpr std::uint16_t kRoom = 256;  // headroom and tailroom of a packet
constexpr std::uint16_t kMostBytes = 9000;

/// The transforms in the order in which DPDK applies them.
struct Transforms {
  rte_crypto_sym_xform cipher{};
  rte_crypto_sym_xform auth{};
  Bytes key, auth_key;
  rte_crypto_sym_xform* first = nullptr;
};

std::unique_ptr<Transforms> make_transforms(const Options& options, bool protects) {
  auto made = std::make_unique<Transforms>();
  const std::string cipher = options.text("cipher");
  const std::string auth = options.text("auth", "none");
  made->key = options.bytes("key");
  made->auth_key = options.bytes("auth-key");
  if (cipher == "aes-gcm") {
    rte_crypto_sym_xform& x = made->cipher;
    x.type = RTE_CRYPTO_SYM_XFORM_AEAD;
    x.aead.op = protects ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT;
    x.aead.algo = RTE_CRYPTO_AEAD_AES_GCM;
    x.aead.key = {made->key.data(), static_cast<std::uint16_t>(made->key.size())};
    x.aead.iv = {kIvOffset, 12};
    x.aead.digest_length = 16;
    x.aead.aad_length = options.number("esn") != 0 ? 12 : 8;
    made->first = &x;
    return made;
  }
  rte_crypto_sym_xform& c = made->cipher;
  c.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
  c.cipher.op = protects ? RTE_CRYPTO_CIPHER_OP_ENCRYPT : RTE_CRYPTO_CIPHER_OP_DECRYPT;
  c.cipher.algo = cipher == "aes-cbc" ? RTE_CRYPTO_CIPHER_AES_CBC : RTE_CRYPTO_CIPHER_AES_CTR;
  c.cipher.key = {made->key.data(), static_cast<std::uint16_t>(made->key.size())};
  c.cipher.iv = {kIvOffset, 16};
  rte_crypto_sym_xform& a = made->auth;
  a.type = RTE_CRYPTO_SYM_XFORM_AUTH;
  a.auth.op = protects ? RTE_CRYPTO_AUTH_OP_GENERATE : RTE_CRYPTO_AUTH_OP_VERIFY;
  a.auth.algo = auth == "sha1" ? RTE_CRYPTO_AUTH_SHA1_HMAC : RTE_CRYPTO_AUTH_SHA256_HMAC;
  a.auth.key = {made->auth_key.data(), static_cast<std::uint16_t>(made->auth_key.size())};
  a.auth.digest_length = auth == "sha1" ? 12 : 16;
  made->first = protects ? &c : &a;
  made->first->next = protects ? &a : &c;
  return made;
}

/// Passes packets through the SA, one at a time.
class Peer {
 public:
  Peer(const Options& options, bool protects) : protects_(protects), transforms_(make_transforms(options, protects)) {
    device_ = static_cast<std::uint8_t>(rte_cryptodev_get_dev_id("crypto_openssl"));
    need(rte_cryptodev_count() == 1, "no crypto_openssl");
    sessions_ = rte_cryptodev_sym_session_pool_create(
        "sessions", 8, rte_cryptodev_sym_get_private_session_size(device_), 0, 0, SOCKET_ID_ANY);
    need(sessions_ != nullptr, "session pool");
    rte_cryptodev_config config{};
    config.nb_queue_pairs = 1;
    need(rte_cryptodev_configure(device_, &config) == 0, "device");
    rte_cryptodev_qp_conf queue{};
    queue.nb_descriptors = 64;
    queue.mp_session = sessions_;
    need(rte_cryptodev_queue_pair_setup(device_, 0, &queue, SOCKET_ID_ANY) == 0, "queue");
    need(rte_cryptodev_start(device_) == 0, "start");
    packets_ =
        rte_pktmbuf_pool_create("packets", 64, 0, 0, RTE_PKTMBUF_HEADROOM + kMostBytes + 2 * kRoom, SOCKET_ID_ANY);
    need(packets_ != nullptr, "packet pool");
    operations_ = rte_crypto_op_pool_create("operations", RTE_CRYPTO_OP_TYPE_SYMMETRIC, 64, 0, 64, SOCKET_ID_ANY);
    need(operations_ != nullptr, "operation pool");
    make_sa(options);
  }

  /// Returns an empty packet if it was not processed.
  Bytes take(const Bytes& packet) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(packets_);
    need(mbuf != nullptr, "packet");
    mbuf->data_off = RTE_PKTMBUF_HEADROOM + kRoom;
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(packet.size())), packet.data(), packet.size());
    mbuf->l2_len = 0;
    mbuf->l3_len = (packet[0] >> 4) == 4 ? static_cast<std::uint64_t>(packet[0] & 15) * 4 : 40;
    rte_crypto_op* operation = rte_crypto_op_alloc(operations_, RTE_CRYPTO_OP_TYPE_SYMMETRIC);
    need(operation != nullptr, "operation");
    Bytes result;
    if (rte_ipsec_pkt_crypto_prepare(&session_, &mbuf, &operation, 1) == 1 &&
        rte_cryptodev_enqueue_burst(device_, 0, &operation, 1) == 1) {
      while (rte_cryptodev_dequeue_burst(device_, 0, &operation, 1) != 1) continue;
      if (operation->status != RTE_CRYPTO_OP_STATUS_SUCCESS) mbuf->ol_flags |= RTE_MBUF_F_RX_SEC_OFFLOAD_FAILED;
      if (rte_ipsec_pkt_process(&session_, &mbuf, 1) == 1) {
        const auto* const data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
        result.assign(data, data + rte_pktmbuf_data_len(mbuf));
        fill_in_lengths(result);
      }
    }
    rte_crypto_op_free(operation);
    rte_pktmbuf_free(mbuf);
    return result;
  }

 private:
  void make_sa(const Options& options) {
    rte_ipsec_sa_prm parameters{};
    const bool tunnel = options.text("mode", "tunnel") == "tunnel";
    rte_security_ipsec_xform& ipsec = parameters.ipsec_xform;
    ipsec.spi = static_cast<std::uint32_t>(options.number("spi"));
    const Bytes salt = options.bytes("salt");
    if (salt.size() == 4) std::memcpy(&ipsec.salt, salt.data(), 4);
    ipsec.options.esn = options.number("esn") != 0 ? 1 : 0;
    ipsec.esn.value = options.number("sequence");
    ipsec.direction = protects_ ? RTE_SECURITY_IPSEC_SA_DIR_EGRESS : RTE_SECURITY_IPSEC_SA_DIR_INGRESS;
    ipsec.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP;
    ipsec.mode = tunnel ? RTE_SECURITY_IPSEC_SA_MODE_TUNNEL : RTE_SECURITY_IPSEC_SA_MODE_TRANSPORT;
    ipsec.replay_win_sz = protects_ ? 0 : 128;
    parameters.crypto_xform = transforms_->first;
    const std::string source = options.text("source");
    const std::string destination = options.text("destination");
    const bool ipv6 = source.find(':') != std::string::npos;
    const std::uint8_t inner = options.text("inner", "4") == "6" ? IPPROTO_IPV6 : IPPROTO_IPIP;
    ipsec.tunnel.type = ipv6 ? RTE_SECURITY_IPSEC_TUNNEL_IPV6 : RTE_SECURITY_IPSEC_TUNNEL_IPV4;
    if (tunnel) {
      parameters.flags = (ipv6 ? RTE_IPSEC_SATP_MODE_TUNLV6 : RTE_IPSEC_SATP_MODE_TUNLV4);
      make_header(ipv6, source, destination);
      parameters.tun.hdr_len = static_cast<std::uint8_t>(header_.size());
      parameters.tun.hdr_l3_off = 0;
      parameters.tun.next_proto = inner;
      parameters.tun.hdr = header_.data();
      ipsec.tunnel.ipv4.ttl = 64;
    } else {
      parameters.trs.proto = inner;  // the packets' address family, not their payload
    }
    const int size = rte_ipsec_sa_size(&parameters);
    need(size > 0, "size of an SA");
    sa_ = static_cast<rte_ipsec_sa*>(std::aligned_alloc(64, (static_cast<std::size_t>(size) + 63) / 64 * 64));
    std::memset(sa_, 0, static_cast<std::size_t>(size));
    need(rte_ipsec_sa_init(sa_, &parameters, static_cast<std::uint32_t>(size)) >= 0, "SA");
    session_.sa = sa_;
    session_.type = RTE_SECURITY_ACTION_TYPE_NONE;
    session_.crypto.dev_id = device_;
    session_.crypto.ses = static_cast<rte_cryptodev_sym_session*>(
        rte_cryptodev_sym_session_create(device_, transforms_->first, sessions_));
    need(session_.crypto.ses != nullptr, "session");
    need(rte_ipsec_session_prepare(&session_) == 0, "preparing the session");
  }

  void make_header(bool ipv6, const std::string& source, const std::string& destination) {
    header_.assign(ipv6 ? 40 : 20, 0);
    const int family = ipv6 ? AF_INET6 : AF_INET;
    if (ipv6) {
      header_[0] = 0x60;
      header_[6] = IPPROTO_ESP;
      header_[7] = 64;
    } else {
      header_[0] = 0x45;
      header_[8] = 64;
      header_[9] = IPPROTO_ESP;
    }
    need(inet_pton(family, source.c_str(), &header_[ipv6 ? 8 : 12]) == 1, source);
    need(inet_pton(family, destination.c_str(), &header_[ipv6 ? 24 : 16]) == 1, destination);
  }

  /// The library leaves the IP header's lengths and checksums to the NIC.
  static void fill_in_lengths(Bytes& packet) {
    if ((packet[0] >> 4) == 6) {
      const std::size_t length = packet.size() - 40;
      packet[4] = static_cast<std::uint8_t>(length >> 8);
      packet[5] = static_cast<std::uint8_t>(length);
      return;
    }
    packet[2] = static_cast<std::uint8_t>(packet.size() >> 8);
    packet[3] = static_cast<std::uint8_t>(packet.size());
    packet[10] = packet[11] = 0;
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(packet[0] & 15) * 4; i += 2)
      sum += static_cast<std::uint32_t>(packet[i] << 8 | packet[i + 1]);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    packet[10] = static_cast<std::uint8_t>(~sum >> 8);
    packet[11] = static_cast<std::uint8_t>(~sum);
  }

  bool protects_;
  std::unique_ptr<Transforms> transforms_;
  std::uint8_t device_ = 0;
  rte_mempool* sessions_ = nullptr;
  rte_mempool* packets_ = nullptr;
  rte_mempool* operations_ = nullptr;
  Bytes header_;
  rte_ipsec_sa* sa_ = nullptr;
  rte_ipsec_session session_{};
};

int work(const std::string& what, const std::string& in, const std::string& out, const Options& options) {
  need(what == "protect" || what == "open", "protect or open");
  Peer peer(options, what == "protect");
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  pcap_t* const from = pcap_open_offline(in.c_str(), error.data());
  if (from == nullptr) throw std::runtime_error(error.data());
  pcap_t* const raw = pcap_open_dead(DLT_RAW, 65535);
  pcap_dumper_t* const to = pcap_dump_open(raw, out.c_str());
  need(to != nullptr, out);
  unsigned done = 0;
  unsigned refused = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(from, &header, &data) == 1) {
    const Bytes result = peer.take(Bytes(data, data + header->caplen));
    if (result.empty()) {
      ++refused;
      continue;
    }
    ++done;
    pcap_pkthdr written = *header;
    written.caplen = written.len = static_cast<bpf_u_int32>(result.size());
    pcap_dump(reinterpret_cast<u_char*>(to), &written, result.data());
  }
  pcap_dump_close(to);
  pcap_close(raw);
  pcap_close(from);
  std::printf("%u came out, %u did not\n", done, refused);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: rte_ipsec_peer protect|open IN.pcap OUT.pcap NAME=VALUE...\n");
    return 2;
  }
  Options options;
  for (int i = 4; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t sign = argument.find('=');
    options.values[argument.substr(0, sign)] = sign == std::string::npos ? "" : argument.substr(sign + 1);
  }
  std::string arguments[] = {
      "rte_ipsec_peer", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-l", "0", "--log-level",
      "error",          "-m",        "64",       "--vdev",      "crypto_openssl"};
  char* eal[std::size(arguments) + 1] = {};
  for (std::size_t i = 0; i < std::size(arguments); ++i) eal[i] = arguments[i].data();
  try {
    need(rte_eal_init(static_cast<int>(std::size(arguments)), eal) >= 0, "rte_eal_init");
    return work(argv[1], argv[2], argv[3], options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rte_ipsec_peer: %s\n", error.what());
    return 1;
  }
}
