// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds frames that are to be split, and parses segments, byte by byte and without any of our packet code.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "port/live/offload.h"

namespace penstock::port::offload_oracle {

using Bytes = std::vector<std::uint8_t>;

inline void put16(Bytes& bytes, std::size_t at, unsigned value) {
  bytes.at(at) = static_cast<std::uint8_t>(value >> 8);
  bytes.at(at + 1) = static_cast<std::uint8_t>(value);
}
inline unsigned get16(const Bytes& bytes, std::size_t at) { return bytes.at(at) * 256U + bytes.at(at + 1); }
inline std::uint32_t get32(const Bytes& bytes, std::size_t at) {
  return static_cast<std::uint32_t>(get16(bytes, at)) << 16 | get16(bytes, at + 2);
}

/// RFC 1071, word by word, from `start` to `end`, after the words of `before`.
inline unsigned naive_checksum(const Bytes& bytes, std::size_t start, std::size_t end = SIZE_MAX,
                               const Bytes& before = {}) {
  Bytes all = before;
  all.insert(all.end(), bytes.begin() + static_cast<std::ptrdiff_t>(start),
             bytes.begin() + static_cast<std::ptrdiff_t>(std::min(end, bytes.size())));
  if (all.size() % 2 != 0) all.push_back(0);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < all.size(); i += 2) sum += get16(all, i);
  while (sum > 0xffff) sum = sum % 0x10000 + sum / 0x10000;
  return static_cast<unsigned>(0xffff - sum);
}
inline unsigned nonzero_if(bool condition, unsigned value) { return condition && value == 0 ? 0xffff : value; }

/// Bit by bit.
inline std::uint32_t naive_crc32c(const Bytes& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool odd = ((crc ^ byte >> bit) & 1) != 0;
      crc = crc >> 1 ^ (odd ? 0x82f63b78U : 0);
    }
  }
  return ~crc;
}

enum class Tunnel : unsigned { none, ip, vxlan, geneve, gre, gretap };
inline constexpr Tunnel kTunnels[] = {Tunnel::none,   Tunnel::ip,  Tunnel::vxlan,
                                      Tunnel::geneve, Tunnel::gre, Tunnel::gretap};

struct Shape {
  bool ipv4 = true, tcp = true;
  std::size_t tags = 0, ip_options = 0, tcp_options = 0, extensions = 0;
  bool routing = false, jumbo = false, ecn = false;
  std::uint8_t flags = 0x18;
  Tunnel tunnel = Tunnel::none;
  bool outer_ipv4 = true, tunnel_checksum = false;
  std::size_t payload = 3000;
  std::uint16_t gso_size = 1000;
  unsigned seed = 1;
};

struct Frame {
  Bytes bytes;
  VirtioHeader header;
  Shape shape;

  [[nodiscard]] std::string description() const {
    const auto number = [](auto value) { return std::to_string(static_cast<std::size_t>(value)) + ' '; };
    return "ipv4 " + number(shape.ipv4) + "tcp " + number(shape.tcp) + "tags " + number(shape.tags) + "options " +
           number(shape.ip_options) + number(shape.tcp_options) + "extensions " + number(shape.extensions) +
           number(shape.routing) + "tunnel " + number(shape.tunnel) + number(shape.outer_ipv4) +
           number(shape.tunnel_checksum) + "payload " + number(shape.payload) + "by " + number(shape.gso_size) +
           "seed " + number(shape.seed);
  }
};

/// Writes a frame from its first byte on. Lengths are set at the end.
class FrameMaker {
 public:
  explicit FrameMaker(const Shape& shape) : shape_(shape), random_(shape.seed) {}

  Frame make() {
    noise(12);
    for (std::size_t i = 0; i < shape_.tags; ++i) word(i == 0 ? 0x88a8 : 0x8100).noise(2);
    const unsigned transport = shape_.tcp ? 6 : 17, inner_protocol = shape_.ipv4 ? 4 : 41;
    const unsigned inner_type = shape_.ipv4 ? 0x0800 : 0x86dd;
    if (shape_.tunnel != Tunnel::none) {
      word(shape_.outer_ipv4 ? 0x0800 : 0x86dd);
      const bool over_udp = shape_.tunnel == Tunnel::vxlan || shape_.tunnel == Tunnel::geneve;
      ip(shape_.outer_ipv4, shape_.tunnel == Tunnel::ip ? inner_protocol : over_udp ? 17 : 47, false);
      if (over_udp) {
        lengths_.push_back({bytes_.size() + 4, bytes_.size()});
        noise(4).word(0).word(shape_.tunnel_checksum ? 0x1234 : 0);
        noise(shape_.tunnel == Tunnel::vxlan ? 8 : 16).noise(12).word(inner_type);
      } else if (shape_.tunnel != Tunnel::ip) {
        word((shape_.tunnel_checksum ? 0x8000 : 0) | (shape_.tunnel == Tunnel::gretap ? 0x2000 : 0));
        word(shape_.tunnel == Tunnel::gretap ? 0x6558 : inner_type);
        if (shape_.tunnel_checksum) noise(2).word(0);
        if (shape_.tunnel == Tunnel::gretap) noise(4).noise(12).word(inner_type);
      }
    } else {
      word(inner_type);
    }
    ip(shape_.ipv4, transport, true);
    const std::size_t start = bytes_.size();
    if (shape_.tcp) {
      noise(12).byte(static_cast<unsigned>((20 + shape_.tcp_options) / 4 * 16)).byte(shape_.flags);
      noise(6 + shape_.tcp_options);
    } else {
      lengths_.push_back({start + 4, start});
      noise(4).word(0).noise(2);
    }
    noise(shape_.payload);
    for (const auto& [at, from] : lengths_)
      put16(bytes_, at, bytes_.size() - from > 65535 ? 0 : static_cast<unsigned>(bytes_.size() - from));
    for (const auto& [at, length] : checksums_) put16(bytes_, at + 10, naive_checksum(bytes_, at, at + length));
    Frame frame{bytes_, {}, shape_};
    frame.header.flags = VirtioHeader::kNeedsChecksum;
    const unsigned kind = !shape_.tcp ? VirtioHeader::kUdp : shape_.ipv4 ? VirtioHeader::kTcp4 : VirtioHeader::kTcp6;
    frame.header.gso_type = static_cast<std::uint8_t>(kind | (shape_.ecn ? VirtioHeader::kEcn : 0));
    frame.header.gso_size = shape_.gso_size;
    frame.header.checksum_start = static_cast<std::uint16_t>(start);
    frame.header.checksum_offset = shape_.tcp ? 16 : 6;
    return frame;
  }

 private:
  FrameMaker& byte(unsigned value) {
    bytes_.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  FrameMaker& word(unsigned value) { return byte(value >> 8).byte(value & 255); }
  FrameMaker& noise(std::size_t count) {
    for (; count > 0; --count) byte(random_() & 255);
    return *this;
  }

  void ip(bool ipv4, unsigned protocol, bool innermost) {
    const std::size_t at = bytes_.size();
    if (ipv4) {
      const std::size_t length = 20 + (innermost ? shape_.ip_options : 0);
      lengths_.push_back({at + 2, at});
      checksums_.push_back({at, length});
      byte(static_cast<unsigned>(0x40 + length / 4)).noise(1).word(0).noise(2).word(0x4000).noise(1).byte(protocol);
      word(0).noise(length - 12);
      return;
    }
    std::vector<unsigned> next;
    if (innermost && shape_.jumbo) next.push_back(0);
    for (std::size_t i = 0; innermost && i < shape_.extensions; ++i) next.push_back(next.empty() ? 0 : 60);
    if (innermost && shape_.routing) next.push_back(43);
    next.push_back(protocol);
    byte(0x60).noise(3);
    lengths_.push_back({bytes_.size(), at + 40});
    word(0).byte(next[0]).noise(33);
    for (std::size_t i = 0; i + 1 < next.size(); ++i) {
      byte(next[i + 1]);
      if (i == 0 && shape_.jumbo) {
        byte(0).byte(0xc2).byte(4).noise(4);
      } else if (next[i] == 43) {
        byte(4).byte(4).byte(1).noise(4).noise(32);  // segment routing, with two addresses
      } else {
        byte(static_cast<unsigned>(i % 3)).byte(1).byte(static_cast<unsigned>(4 + i % 3 * 8)).noise(4 + i % 3 * 8);
      }
    }
  }

  const Shape shape_;
  std::mt19937 random_;
  Bytes bytes_;
  struct Place {
    std::size_t at, value;
  };
  std::vector<Place> lengths_, checksums_;
};

inline Frame make_frame(const Shape& shape) { return FrameMaker(shape).make(); }

/// What a frame says. `error`: the first length or checksum that is wrong.
struct Parsed {
  std::string error;
  Bytes link, addresses, extensions, ports, options, payload;
  std::vector<unsigned> ids;
  std::uint32_t sequence = 0, acknowledgment = 0;
  std::uint8_t flags = 0;
};

class Parser {
 public:
  Parser(const Bytes& bytes, const Shape& shape) : bytes_(bytes), shape_(shape) {}

  Parsed parse() {
    take(result_.link, 12);
    unsigned type = word();
    while (type == 0x88a8 || type == 0x8100) {
      take(result_.link, 2);
      type = word();
    }
    unsigned protocol = ip(type == 0x0800);
    while (ip_headers_ < (shape_.tunnel == Tunnel::none ? 1 : 2)) {
      if (protocol == 4 || protocol == 41) {
        protocol = ip(protocol == 4);
      } else {
        protocol = ip(protocol == 17 ? udp_tunnel() : gre());
      }
    }
    check(protocol == (shape_.tcp ? 6U : 17U), "protocol");
    shape_.tcp ? tcp() : udp();
    return result_;
  }

 private:
  void check(bool condition, const char* what) {
    if (!condition && result_.error.empty()) result_.error = what;
  }
  void take(Bytes& to, std::size_t count) {
    for (; count > 0; --count) to.push_back(bytes_.at(at_++));
  }
  unsigned word() { return at_ += 2, get16(bytes_, at_ - 2); }
  void pseudo(unsigned protocol) {
    const std::size_t length = bytes_.size() - at_;
    pseudo_ = ends_;
    for (const std::size_t byte :
         {length >> 24, length >> 16, length >> 8, length, std::size_t{0}, std::size_t{protocol}})
      pseudo_.push_back(static_cast<std::uint8_t>(byte));
  }

  /// Returns the protocol of what follows.
  unsigned ip(bool ipv4) {
    ++ip_headers_;
    const std::size_t start = at_;
    if (ipv4) {
      const std::size_t length = bytes_.at(at_) % 16 * 4U;
      check(get16(bytes_, at_ + 2) == bytes_.size() - start, "IPv4 length");
      check(naive_checksum(bytes_, at_, at_ + length) == 0, "IPv4 checksum");
      take(result_.addresses, 2);
      at_ += 2;
      result_.ids.push_back(word());
      take(result_.addresses, 4);
      at_ += 2;
      take(result_.addresses, length - 12);
      ends_ = Bytes(bytes_.begin() + static_cast<std::ptrdiff_t>(start + 12),
                    bytes_.begin() + static_cast<std::ptrdiff_t>(start + 20));
      return bytes_.at(start + 9);
    }
    const unsigned length = get16(bytes_, at_ + 4);
    check(length == bytes_.size() - start - 40, "IPv6 length");
    unsigned next = bytes_.at(at_ + 6);
    take(result_.addresses, 4);
    at_ += 3;
    take(result_.addresses, 33);
    ends_ = Bytes(bytes_.begin() + static_cast<std::ptrdiff_t>(start + 8),
                  bytes_.begin() + static_cast<std::ptrdiff_t>(start + 40));
    while (next == 0 || next == 43 || next == 60) {
      const std::size_t bytes = (bytes_.at(at_ + 1) + 1U) * 8;
      const bool jumbo = next == 0 && bytes_.at(at_ + 2) == 0xc2;
      check(!jumbo, "a jumbo payload option");
      if (next == 43) std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_ + 8), 16, ends_.begin() + 16);
      next = bytes_.at(at_);
      Bytes ignored;
      take(jumbo ? ignored : result_.extensions, bytes);
    }
    return next;
  }

  /// Returns whether IPv4 follows.
  bool udp_tunnel() {
    check(get16(bytes_, at_ + 4) == bytes_.size() - at_, "length of the tunnel's UDP");
    const bool has_checksum = get16(bytes_, at_ + 6) != 0;
    check(has_checksum == shape_.tunnel_checksum, "a checksum of the tunnel's UDP where there was none, or none");
    pseudo(17);
    check(!has_checksum || naive_checksum(bytes_, at_, SIZE_MAX, pseudo_) == 0, "checksum of the tunnel's UDP");
    take(result_.link, 4);
    at_ += 4;
    take(result_.link, (shape_.tunnel == Tunnel::vxlan ? 8 : 16) + 12);
    return word() == 0x0800;
  }
  bool gre() {
    if (shape_.tunnel_checksum) check(naive_checksum(bytes_, at_) == 0, "checksum of GRE");
    const unsigned flags = word(), type = word();
    if ((flags & 0x8000) != 0) at_ += 4;
    if ((flags & 0x2000) == 0) return type == 0x0800;
    take(result_.link, 4 + 12);
    return word() == 0x0800;
  }

  void tcp() {
    pseudo(6);
    check(naive_checksum(bytes_, at_, SIZE_MAX, pseudo_) == 0, "TCP checksum");
    const std::size_t length = bytes_.at(at_ + 12) / 16 * 4U;
    result_.sequence = get32(bytes_, at_ + 4);
    result_.acknowledgment = get32(bytes_, at_ + 8);
    result_.flags = bytes_.at(at_ + 13);
    take(result_.ports, 4);
    at_ += 8;
    take(result_.ports, 1);
    at_ += 1;
    take(result_.ports, 2);
    at_ += 2;
    take(result_.ports, 2);
    take(result_.options, length - 20);
    take(result_.payload, bytes_.size() - at_);
  }
  void udp() {
    pseudo(17);
    check(get16(bytes_, at_ + 6) != 0 && naive_checksum(bytes_, at_, SIZE_MAX, pseudo_) == 0, "UDP checksum");
    check(get16(bytes_, at_ + 4) == bytes_.size() - at_, "UDP length");
    take(result_.ports, 4);
    at_ += 4;
    take(result_.payload, bytes_.size() - at_);
  }

  const Bytes& bytes_;
  const Shape& shape_;
  Parsed result_;
  std::size_t at_ = 0;
  int ip_headers_ = 0;
  Bytes ends_, pseudo_;
};

inline Parsed parse(const Bytes& bytes, const Shape& shape) { return Parser(bytes, shape).parse(); }

}  // namespace penstock::port::offload_oracle
