// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/conversations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::experiments {
namespace {

constexpr std::size_t kHeaders = sizeof(EthernetHeader) + sizeof(Ipv4Header) + sizeof(TcpHeader);

template <typename Header>
const std::uint8_t* bytes_of(const Header& header) {
  return reinterpret_cast<const std::uint8_t*>(&header);
}

/// Text like that of web pages, from which payloads are cut.
std::string page_text() {
  static constexpr std::array<std::string_view, 24> kWords{"<div class=\"item\">",
                                                           "</div>\n",
                                                           "<a href=\"/page/",
                                                           "\">",
                                                           "</a> ",
                                                           "the ",
                                                           "of ",
                                                           "and ",
                                                           "a network ",
                                                           "to ",
                                                           "packet ",
                                                           "in ",
                                                           "that ",
                                                           "function",
                                                           "data ",
                                                           "<p>",
                                                           "</p>\n",
                                                           "with ",
                                                           "<span style=\"c\">",
                                                           "is ",
                                                           "1234",
                                                           "56, ",
                                                           "for ",
                                                           "it "};
  std::mt19937_64 random(5);
  std::string text;
  while (text.size() < 1 << 16) text += kWords[random() % kWords.size()];
  return text;
}

class Writer {
 public:
  explicit Writer(std::string& to) : to_(to) {
    const std::array<std::uint32_t, 6> header{0xa1b2c3d4, 4U << 16 | 2U, 0, 0, 262144, 1};
    to_.append(reinterpret_cast<const char*>(header.data()), sizeof header);
  }

  void pause(std::uint32_t seconds) { time_us_ += seconds * 1'000'000; }

  void frame(std::string_view bytes) {
    time_us_ += 1;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    const std::array<std::uint32_t, 4> header{1'700'000'000 + time_us_ / 1'000'000, time_us_ % 1'000'000, length,
                                              length};
    to_.append(reinterpret_cast<const char*>(header.data()), sizeof header);
    to_.append(bytes);
  }

 private:
  std::string& to_;
  std::uint32_t time_us_ = 0;
};

class Conversation {
 public:
  Conversation(std::size_t number, const ConversationPlan& plan, const std::string& text)
      : number_(static_cast<std::uint32_t>(number)),
        plan_(&plan),
        text_(&text),
        sequence_{0x1000 + number_ * 7919, 0x90000000 + number_ * 104729} {}

  /// Writes the next packet; returns false if there is none.
  bool next(Writer& writer) {
    const std::size_t step = step_++;
    if (step == 0) return send(writer, 0, TcpHeader::kSyn, {});
    if (step == 1) return send(writer, 1, TcpHeader::kSyn | TcpHeader::kAck, {});
    if (step == 2) return send(writer, 0, TcpHeader::kAck, {});
    if (step == 3) {
      const std::string request =
          fmt::format("GET /page/{} HTTP/1.1\r\nHost: www{}.example\r\nAccept: */*\r\n\r\n", number_, number_ % 10);
      return send(writer, 0, TcpHeader::kPsh | TcpHeader::kAck,
                  std::string_view(request).substr(0, plan_->frame_bytes - kHeaders));
    }
    // Repeatedly two responses and an acknowledgement.
    const std::size_t rest = step - 4;
    const std::size_t rounds = (plan_->responses + 1) / 2 * 3;
    if (rest < rounds) {
      if (rest % 3 == 2) return send(writer, 0, TcpHeader::kAck, {});
      const std::size_t response = rest / 3 * 2 + rest % 3;
      if (response >= plan_->responses) return next(writer);
      const std::size_t bytes = plan_->frame_bytes - kHeaders;
      const std::string_view payload =
          std::string_view(*text_).substr((number_ * 131 + response * 977) % (text_->size() - bytes), bytes);
      return send(writer, 1, TcpHeader::kAck, payload);
    }
    if (rest == rounds) return send(writer, 1, TcpHeader::kFin | TcpHeader::kAck, {});
    if (rest == rounds + 1) return send(writer, 0, TcpHeader::kFin | TcpHeader::kAck, {});
    if (rest == rounds + 2) return send(writer, 1, TcpHeader::kAck, {});
    return false;
  }

 private:
  bool send(Writer& writer, unsigned from, std::uint8_t flags, std::string_view payload) {
    struct {
      EthernetHeader ethernet;
      Ipv4Header ip;
      TcpHeader tcp;
    } headers{};
    static_assert(sizeof headers == kHeaders);
    auto& [ethernet, ip, tcp] = headers;
    const auto& servers = plan_->servers;
    const std::array<std::uint32_t, 2> address{
        0x0a000000 + number_ / 60000 * 251 + 1,
        servers.empty() ? 0xc6120000 + number_ % 4096 : servers[number_ % servers.size()]};
    const std::array<std::uint16_t, 2> port{static_cast<std::uint16_t>(1024 + number_ % 60000), 80};
    const auto tcp_bytes = static_cast<std::uint16_t>(sizeof tcp + payload.size());
    ethernet.destination.bytes[5] = static_cast<std::uint8_t>(1 + from);
    ethernet.source.bytes[5] = static_cast<std::uint8_t>(2 - from);
    ethernet.type.set(ether_type::kIpv4);
    ip.version_ihl = 0x45;
    ip.total_length.set(static_cast<std::uint16_t>(sizeof ip + tcp_bytes));
    ip.ttl = 64;
    ip.protocol = ip_protocol::kTcp;
    ip.source.set(address[from]);
    ip.destination.set(address[1 - from]);
    ip.checksum.set(checksum(bytes_of(ip), sizeof ip));
    tcp.source_port.set(port[from]);
    tcp.destination_port.set(port[1 - from]);
    tcp.sequence.set(sequence_[from]);
    if ((flags & TcpHeader::kAck) != 0) tcp.acknowledgment.set(sequence_[1 - from]);
    tcp.data_offset = sizeof tcp / 4 << 4;
    tcp.flags = flags;
    tcp.window.set(0xffff);
    // With the pseudo-header (RFC 9293 §3.1), whose addresses are adjacent in the IP header.
    std::uint32_t sum = checksum_add(ip.source.bytes, 2 * sizeof(Be32)) + ip_protocol::kTcp + tcp_bytes;
    sum = checksum_add(bytes_of(tcp), sizeof tcp, sum);
    sum = checksum_add(reinterpret_cast<const std::uint8_t*>(payload.data()),
                       static_cast<std::uint32_t>(payload.size()), sum);
    tcp.checksum.set(checksum_finish(sum));
    const bool counts = (flags & (TcpHeader::kSyn | TcpHeader::kFin)) != 0;
    sequence_[from] += static_cast<std::uint32_t>(payload.size()) + (counts ? 1 : 0);
    frame_.assign(reinterpret_cast<const char*>(&headers), sizeof headers);
    frame_.append(payload);
    frame_.resize(std::max<std::size_t>(frame_.size(), 60));
    writer.frame(frame_);
    return true;
  }

  std::uint32_t number_;
  const ConversationPlan* plan_;
  const std::string* text_;
  std::array<std::uint32_t, 2> sequence_;
  std::size_t step_ = 0;
  std::string frame_;
};

/// Longer than functions remember closed connections.
constexpr std::uint32_t kPauseSeconds = 120;

}  // namespace

double stream_bytes_per_packet(const ConversationPlan& plan) {
  constexpr std::size_t kOpenAndClose = 7;  // including the request
  const std::size_t packets = plan.responses + (plan.responses + 1) / 2 + kOpenAndClose;
  return static_cast<double>(plan.responses * (plan.frame_bytes - kHeaders)) / static_cast<double>(packets);
}

std::string conversations_capture(const ConversationPlan& plan) {
  assert(plan.frame_bytes >= 60);
  const std::string text = page_text();
  std::string capture;
  capture.reserve(plan.connections * (plan.responses * (plan.frame_bytes + 16) + (plan.responses + 10) * 80));
  Writer writer(capture);
  std::vector<Conversation> open;
  std::size_t begun = 0;
  while (begun < plan.connections || !open.empty()) {
    while (open.size() < plan.at_once && begun + 1 < plan.connections) open.emplace_back(begun++, plan, text);
    if (begun + 1 == plan.connections && open.empty()) {
      writer.pause(kPauseSeconds);
      open.emplace_back(begun++, plan, text);
    }
    std::erase_if(open, [&](Conversation& conversation) { return !conversation.next(writer); });
  }
  return capture;
}

}  // namespace penstock::experiments
