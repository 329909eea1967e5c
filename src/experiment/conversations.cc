// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiment/conversations.h"

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

namespace penstock::experiment {
namespace {

constexpr std::size_t kHeaders = 14 + 20 + 20;
constexpr std::uint8_t kFin = 1, kSyn = 2, kPush = 8, kAck = 16;

/// Text as pages have it, to cut payloads from.
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

  /// Writes the next packet; false where there is none any more.
  bool next(Writer& writer) {
    const std::size_t step = step_++;
    if (step == 0) return send(writer, 0, kSyn, {});
    if (step == 1) return send(writer, 1, kSyn | kAck, {});
    if (step == 2) return send(writer, 0, kAck, {});
    if (step == 3) {
      return send(
          writer, 0, kPush | kAck,
          fmt::format("GET /page/{} HTTP/1.1\r\nHost: www{}.example\r\nAccept: */*\r\n\r\n", number_, number_ % 10));
    }
    // Two responses and an acknowledgement, again and again.
    const std::size_t rest = step - 4;
    const std::size_t rounds = (plan_->responses + 1) / 2 * 3;
    if (rest < rounds) {
      if (rest % 3 == 2) return send(writer, 0, kAck, {});
      const std::size_t response = rest / 3 * 2 + rest % 3;
      if (response >= plan_->responses) return next(writer);
      const std::size_t bytes = plan_->frame_bytes - kHeaders;
      const std::string_view payload =
          std::string_view(*text_).substr((number_ * 131 + response * 977) % (text_->size() - bytes), bytes);
      return send(writer, 1, kAck, payload);
    }
    if (rest == rounds) return send(writer, 1, kFin | kAck, {});
    if (rest == rounds + 1) return send(writer, 0, kFin | kAck, {});
    if (rest == rounds + 2) return send(writer, 1, kAck, {});
    return false;
  }

 private:
  bool send(Writer& writer, unsigned from, std::uint8_t flags, std::string_view payload) {
    std::array<std::uint8_t, kHeaders> header{};
    header[12] = 8;  // IPv4
    header[5] = static_cast<std::uint8_t>(1 + from);
    header[11] = static_cast<std::uint8_t>(2 - from);
    std::uint8_t* const ip = header.data() + 14;
    std::uint8_t* const tcp = ip + 20;
    const auto put16 = [](std::uint8_t* to, std::size_t value) {
      to[0] = static_cast<std::uint8_t>(value >> 8);
      to[1] = static_cast<std::uint8_t>(value);
    };
    const auto put32 = [&](std::uint8_t* to, std::uint32_t value) {
      put16(to, value >> 16);
      put16(to + 2, value);
    };
    const std::array<std::uint32_t, 2> address{0x0a000000 + number_ / 60000 * 251 + 1, 0xc6120000 + number_ % 4096};
    const std::array<std::uint32_t, 2> port{1024 + number_ % 60000, 80};
    ip[0] = 0x45;
    put16(ip + 2, 40 + payload.size());
    ip[8] = 64;
    ip[9] = 6;
    put32(ip + 12, address[from]);
    put32(ip + 16, address[1 - from]);
    put16(ip + 10, checksum(ip, 20));
    put16(tcp, port[from]);
    put16(tcp + 2, port[1 - from]);
    put32(tcp + 4, sequence_[from]);
    if ((flags & kAck) != 0) put32(tcp + 8, sequence_[1 - from]);
    tcp[12] = 0x50;
    tcp[13] = flags;
    put16(tcp + 14, 0xffff);
    std::uint32_t sum = checksum_add(ip + 12, 8) + 6 + static_cast<std::uint32_t>(20 + payload.size());
    sum = checksum_add(tcp, 20, sum);
    sum = checksum_add(reinterpret_cast<const std::uint8_t*>(payload.data()),
                       static_cast<std::uint32_t>(payload.size()), sum);
    put16(tcp + 16, checksum_finish(sum));
    sequence_[from] += static_cast<std::uint32_t>(payload.size()) + ((flags & (kSyn | kFin)) != 0 ? 1 : 0);
    frame_.assign(reinterpret_cast<const char*>(header.data()), header.size());
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

}  // namespace

std::string conversations_capture(const ConversationPlan& plan) {
  assert(plan.frame_bytes >= 66);
  const std::string text = page_text();
  std::string capture;
  capture.reserve(plan.connections * (plan.responses * (plan.frame_bytes + 16) + (plan.responses + 10) * 80));
  Writer writer(capture);
  std::vector<Conversation> open;
  std::size_t begun = 0;
  while (begun < plan.connections || !open.empty()) {
    while (open.size() < plan.at_once && begun < plan.connections) open.emplace_back(begun++, plan, text);
    std::erase_if(open, [&](Conversation& conversation) { return !conversation.next(writer); });
  }
  return capture;
}

}  // namespace penstock::experiment
