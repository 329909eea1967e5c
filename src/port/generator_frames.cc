// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/generator_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "packet/transport.h"
#include "port/capture_reader.h"

namespace penstock::port {

namespace {

using Bytes = std::vector<std::uint8_t>;

// Small enough for the caches, and large enough for the variety of a capture.
constexpr std::size_t kMostTemplateBytes = 4 << 20;
constexpr std::size_t kMostVariants = 1024;
constexpr std::size_t kRandomVariants = 64;

std::uint32_t link_bytes(const FramePlan& plan) noexcept {
  return sizeof(EthernetHeader) + (plan.vlan ? sizeof(VlanTag) : 0);
}
std::uint32_t network_bytes(const FramePlan& plan) noexcept {
  return plan.ipv6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header);
}
std::uint32_t transport_bytes(const FramePlan& plan) noexcept {
  return plan.tcp ? sizeof(TcpHeader) : sizeof(UdpHeader);
}
std::uint32_t header_bytes(const FramePlan& plan) noexcept {
  return link_bytes(plan) + network_bytes(plan) + transport_bytes(plan);
}

template <typename Header>
Header& at(Bytes& frame, std::size_t offset) noexcept {
  return *reinterpret_cast<Header*>(frame.data() + offset);
}

/// A complete POST request of exactly `length` bytes; truncated if `length` is too short for the header.
Bytes http_payload(std::size_t length, std::size_t variant) {
  static constexpr std::string_view kText = "The quick brown fox jumps over the lazy dog. ";
  const auto header = [&](std::size_t body, std::size_t width) {
    return fmt::format(
        "POST /item/{} HTTP/1.1\r\nHost: www{}.example.com\r\nUser-Agent: penstock\r\nAccept: */*\r\n"
        "Content-Type: text/plain\r\nContent-Length: {:>{}}\r\n\r\n",
        variant, variant % 10, body, width);
  };
  // for the longest body; shorter numbers get leading spaces, which RFC 9110 §5.5 allows
  constexpr std::size_t kDigits = 4;
  const std::size_t body = length - std::min(length, header(0, kDigits).size());
  std::string text = header(body, kDigits);
  for (std::size_t i = 0; text.size() < length; ++i) text.push_back(kText[i % kText.size()]);
  return Bytes(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
}

Bytes random_payload(std::size_t length, std::mt19937_64& random) {
  Bytes bytes(length);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 32);
  return bytes;
}

/// `payload`, truncated or repeated to `length`.
Bytes fitted(const Bytes& payload, std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = payload[i % payload.size()];
  return bytes;
}

/// The transport payloads of a capture's packets, up to the maximum number of variants.
Result<std::vector<Bytes>> payloads_of(const std::string& path, int stop_fd) {
  ReadControl control;
  control.stop_fd = stop_fd;
  auto captures = CaptureSequence::open({path}, control);
  if (!captures) return tl::unexpected(std::move(captures.error()));
  std::vector<Bytes> payloads;
  for (CapturedFrame frame; payloads.size() < kMostVariants && captures->next(frame);) {
    const PacketLayout layout =
        parse(frame.bytes.data(), static_cast<std::uint32_t>(frame.bytes.size()), frame.wire_length, frame.link_type);
    if (!layout.has(PacketLayout::kTransportHeader) || layout.payload_offset >= layout.end) continue;
    const auto payload = frame.bytes.subspan(layout.payload_offset, layout.end - layout.payload_offset);
    payloads.emplace_back(payload.begin(), payload.end());
  }
  if (!captures->errors().empty()) return failure(captures->errors());
  if (control.stopped.load()) return failure({{path, 0, 0}, "stopped while its payloads were read", "", ""});
  if (payloads.empty()) {
    return failure({{path, 0, 0}, "no packet with a payload", "", "TCP, UDP, SCTP or ICMP packets with data"});
  }
  return payloads;
}

void put_link_header(const FramePlan& plan, Bytes& frame) {
  const std::uint16_t type = plan.ipv6 ? ether_type::kIpv6 : ether_type::kIpv4;
  auto& link = at<EthernetHeader>(frame, 0);
  link.destination = {{2, 0, 0, 0, 0, 2}};  // locally administered
  link.source = {{2, 0, 0, 0, 0, 1}};
  link.type.set(type);
  if (!plan.vlan) return;
  link.type.set(ether_type::kVlan);
  auto& tag = at<VlanTag>(frame, sizeof link);
  tag.tci.set(*plan.vlan);
  tag.type.set(type);
}

void put_network_header(const FramePlan& plan, Bytes& frame, std::uint8_t protocol) {
  const std::size_t offset = link_bytes(plan);
  if (plan.ipv6) {
    auto& ip = at<Ipv6Header>(frame, offset);
    ip.version_class_label.set(std::uint32_t{6} << 28);
    ip.payload_length.set(static_cast<std::uint16_t>(frame.size() - offset - sizeof ip));
    ip.next_header = protocol;
    ip.hop_limit = 64;
    return;
  }
  auto& ip = at<Ipv4Header>(frame, offset);
  ip.version_ihl = 0x45;
  ip.total_length.set(static_cast<std::uint16_t>(frame.size() - offset));
  ip.fragment.set(Ipv4Header::kDontFragment);  // so the identification may be 0 (RFC 6864)
  ip.ttl = 64;
  ip.protocol = protocol;
}

FrameTemplate make_template(const FramePlan& plan, std::uint32_t size, const Bytes& payload) {
  FrameTemplate result;
  Bytes& frame = result.bytes;
  frame.assign(size - kFrameCheckBytes, 0);
  const std::uint8_t protocol = plan.tcp ? ip_protocol::kTcp : ip_protocol::kUdp;
  put_link_header(plan, frame);
  put_network_header(plan, frame, protocol);
  const std::size_t transport_at = link_bytes(plan) + network_bytes(plan);
  const auto transport_length = static_cast<std::uint32_t>(frame.size() - transport_at);
  if (plan.tcp) {
    auto& tcp = at<TcpHeader>(frame, transport_at);
    tcp.data_offset = sizeof tcp / 4 << 4;
    tcp.flags = TcpHeader::kAck | TcpHeader::kPsh;
    tcp.acknowledgment.set(1);
    tcp.window.set(65535);
  } else {
    at<UdpHeader>(frame, transport_at).length.set(static_cast<std::uint16_t>(transport_length));
  }
  std::copy(payload.begin(), payload.end(), frame.end() - static_cast<std::ptrdiff_t>(payload.size()));

  if (!plan.ipv6) result.network_sum = checksum_add(frame.data() + link_bytes(plan), sizeof(Ipv4Header));
  result.transport_sum = checksum_add(frame.data() + transport_at, transport_length) + transport_length + protocol;
  result.payload_bytes = transport_length - transport_bytes(plan);
  return result;
}

}  // namespace

std::uint32_t smallest_size(const FramePlan& plan) noexcept {
  return std::max(std::uint32_t{64}, header_bytes(plan) + kFrameCheckBytes);
}

Result<FrameSet> make_frames(const FramePlan& plan, int stop_fd) {
  std::vector<Bytes> captured;
  if (plan.payload == Payload::capture) {
    auto payloads = payloads_of(plan.capture, stop_fd);
    if (!payloads) return tl::unexpected(std::move(payloads.error()));
    captured = std::move(*payloads);
  }
  std::map<std::uint32_t, std::size_t> first_of_size;  // index of the first template of each size
  std::size_t bytes_of_all = 0;
  for (const std::uint32_t size : plan.sizes) {
    if (first_of_size.try_emplace(size, 0).second) bytes_of_all += size;
  }
  const std::size_t wanted = plan.payload == Payload::zero      ? 1
                             : plan.payload == Payload::capture ? captured.size()
                                                                : kRandomVariants;
  const std::size_t variants = std::clamp<std::size_t>(kMostTemplateBytes / bytes_of_all, 1, wanted);

  FrameSet set;
  std::mt19937_64 random(plan.seed);
  for (auto& [size, first] : first_of_size) {
    first = set.templates.size();
    const std::size_t length = size - kFrameCheckBytes - header_bytes(plan);
    for (std::size_t i = 0; i < variants; ++i) {
      Bytes payload(length);
      if (plan.payload == Payload::random) payload = random_payload(length, random);
      if (plan.payload == Payload::http) payload = http_payload(length, i);
      if (plan.payload == Payload::capture) payload = fitted(captured[i], length);
      set.templates.push_back(make_template(plan, size, payload));
    }
  }
  for (std::size_t i = 0; i < variants; ++i) {
    for (const std::uint32_t size : plan.sizes) {
      set.turns.push_back(static_cast<std::uint32_t>(first_of_size[size] + i));
    }
  }
  set.network_at = link_bytes(plan);
  set.transport_at = set.network_at + network_bytes(plan);
  set.tuple_at = set.transport_at - (plan.ipv6 ? 32 : 8);
  set.payload_at = set.transport_at + static_cast<std::uint32_t>(plan.tcp ? sizeof(TcpHeader) : sizeof(UdpHeader));
  return set;
}

}  // namespace penstock::port
