// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/xdp_support.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "port/live/file_descriptor.h"

namespace penstock::port {

namespace {

// From linux/netdev.h of Linux 6.6, which many systems lack.
constexpr std::string_view kFamily{"netdev\0", 7};  // NETDEV_FAMILY_NAME
constexpr std::uint8_t kFamilyVersion = 1;          // NETDEV_FAMILY_VERSION
constexpr std::uint8_t kGetDevice = 1;              // NETDEV_CMD_DEV_GET
enum DeviceAttribute : std::uint16_t {
  kIndex = 1,             // NETDEV_A_DEV_IFINDEX
  kFeatures = 3,          // NETDEV_A_DEV_XDP_FEATURES
  kZeroCopySegments = 4,  // NETDEV_A_DEV_XDP_ZC_MAX_SEGS, since Linux 6.6, of drivers with zero-copy
};
enum Feature : std::uint64_t {
  kBasic = 1,           // NETDEV_XDP_ACT_BASIC: programs in native mode
  kRedirect = 2,        // NETDEV_XDP_ACT_REDIRECT: these may hand frames to sockets
  kZeroCopy = 8,        // NETDEV_XDP_ACT_XSK_ZEROCOPY
  kSeveralBuffers = 32  // NETDEV_XDP_ACT_RX_SG
};

template <typename Value>
std::optional<Value> value_at(std::span<const std::uint8_t> bytes) noexcept {
  Value value;
  if (bytes.size() < sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Calls `use(type, payload)` for each attribute.
template <typename Use>
void for_each_attribute(std::span<const std::uint8_t> bytes, Use use) {
  while (const auto header = value_at<nlattr>(bytes)) {
    if (header->nla_len < NLA_HDRLEN || header->nla_len > bytes.size()) return;
    use(header->nla_type & NLA_TYPE_MASK, bytes.subspan(NLA_HDRLEN, header->nla_len - NLA_HDRLEN));
    bytes = bytes.subspan(std::min<std::size_t>(NLA_ALIGN(header->nla_len), bytes.size()));
  }
}

/// Calls `use(attributes)` for each message with data. Returns whether more messages follow.
template <typename Use>
bool for_each_message(std::span<const std::uint8_t> bytes, Use use) {
  bool more = false;
  while (const auto header = value_at<nlmsghdr>(bytes)) {
    if (header->nlmsg_len < NLMSG_HDRLEN || header->nlmsg_len > bytes.size()) return false;
    if (header->nlmsg_type == NLMSG_DONE || header->nlmsg_type == NLMSG_ERROR) return false;
    if (header->nlmsg_len >= NLMSG_LENGTH(GENL_HDRLEN))
      use(bytes.subspan(NLMSG_LENGTH(GENL_HDRLEN), header->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN)));
    more = (header->nlmsg_flags & NLM_F_MULTI) != 0;
    bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(header->nlmsg_len), bytes.size()));
  }
  return more;
}

XdpSupport support_of(std::uint64_t features, std::uint32_t zero_copy_segments) noexcept {
  XdpSupport support;
  support.native = (features & kBasic) != 0 && (features & kRedirect) != 0;
  if (!support.native) return support;
  support.zero_copy = (features & kZeroCopy) != 0;
  support.several_buffers = (features & kSeveralBuffers) != 0;
  if (support.zero_copy) support.zero_copy_buffers = std::max(zero_copy_segments, 1U);
  return support;
}

/// Asks the kernel over generic netlink.
class Questions {
 public:
  Questions() : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC)) {}

  [[nodiscard]] bool ask(std::uint16_t family, std::uint16_t flags, genlmsghdr command,
                         std::span<const std::uint8_t> attributes = {}) const {
    std::array<std::uint8_t, 64> message{};
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(GENL_HDRLEN) + attributes.size());
    header.nlmsg_type = family;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + NLMSG_HDRLEN, &command, sizeof command);
    std::ranges::copy(attributes, message.begin() + NLMSG_LENGTH(GENL_HDRLEN));
    return ::send(socket_.get(), message.data(), header.nlmsg_len, 0) == static_cast<ssize_t>(header.nlmsg_len);
  }
  /// A part of the answer; empty on an error.
  [[nodiscard]] std::span<const std::uint8_t> answer() {
    const ssize_t length = ::recv(socket_.get(), answer_.data(), answer_.size(), 0);
    return std::span(answer_).first(length > 0 ? static_cast<std::size_t>(length) : 0);
  }

 private:
  FileDescriptor socket_;
  std::vector<std::uint8_t> answer_ = std::vector<std::uint8_t>(32 << 10);  // the kernel makes no longer parts
};

/// By index; empty if the kernel does not say.
std::optional<std::map<int, XdpSupport>> ask_for_support() {
  Questions questions;
  std::array<std::uint8_t, NLA_HDRLEN + NLA_ALIGN(kFamily.size())> name{};
  const nlattr header{static_cast<std::uint16_t>(NLA_HDRLEN + kFamily.size()), CTRL_ATTR_FAMILY_NAME};
  std::memcpy(name.data(), &header, sizeof header);
  std::ranges::copy(kFamily, name.begin() + NLA_HDRLEN);
  if (!questions.ask(GENL_ID_CTRL, 0, {CTRL_CMD_GETFAMILY, 1, 0}, name)) return std::nullopt;
  const auto family = family_in(questions.answer());
  if (!family || !questions.ask(*family, NLM_F_DUMP, {kGetDevice, kFamilyVersion, 0})) return std::nullopt;
  std::map<int, XdpSupport> found;
  while (add_xdp_support(questions.answer(), found)) {
  }
  return found;
}

}  // namespace

std::optional<std::uint16_t> family_in(std::span<const std::uint8_t> reply) {
  std::optional<std::uint16_t> family;
  static_cast<void>(for_each_message(reply, [&](std::span<const std::uint8_t> attributes) {
    for_each_attribute(attributes, [&](unsigned type, std::span<const std::uint8_t> value) {
      if (type == CTRL_ATTR_FAMILY_ID) family = value_at<std::uint16_t>(value);
    });
  }));
  return family;
}

bool add_xdp_support(std::span<const std::uint8_t> replies, std::map<int, XdpSupport>& found) {
  return for_each_message(replies, [&](std::span<const std::uint8_t> attributes) {
    std::optional<int> index;
    std::optional<std::uint64_t> features;
    std::optional<std::uint32_t> segments;
    for_each_attribute(attributes, [&](unsigned type, std::span<const std::uint8_t> value) {
      if (type == kIndex) index = value_at<int>(value);
      if (type == kFeatures) features = value_at<std::uint64_t>(value);
      if (type == kZeroCopySegments) segments = value_at<std::uint32_t>(value);
    });
    if (index && features) found[*index] = support_of(*features, segments.value_or(1));
  });
}

std::vector<XdpInterface> list_xdp_interfaces() {
  const auto support = ask_for_support();
  std::vector<XdpInterface> interfaces;
  for (const std::string& name : interface_names()) {
    const auto found = find_interface(name);
    if (!found || !found->is_ethernet || found->is_loopback) continue;
    XdpInterface& one = interfaces.emplace_back();
    one.name = name;
    one.driver = driver_of(name);
    one.queues = queues_of(name);
    if (!support) continue;
    if (const auto of_this = support->find(found->index); of_this != support->end()) one.support = of_this->second;
  }
  return interfaces;
}

}  // namespace penstock::port
