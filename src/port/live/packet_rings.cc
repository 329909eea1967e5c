// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/packet_rings.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "base/capabilities.h"

namespace penstock::port {

namespace {

template <typename Value>
bool set_option(const FileDescriptor& socket, int level, int name, const Value& value) noexcept {
  return ::setsockopt(socket.get(), level, name, &value, sizeof value) == 0;
}

/// In the flags of a fanout group (linux/if_packet.h of Linux 6.2): frames that this host sends do not come back.
constexpr std::uint32_t kIgnoreOutgoing = 0x4000;

tl::unexpected<Errors> refused(const std::string& name, std::string_view what) {
  const int error = errno;
  Error message = system_error(name, what, std::system_category().message(error));
  if (error == EPERM || error == EACCES) message.expected = how_to_get(Capability::net_raw);
  return failure(std::move(message));
}

bool bind_to(const FileDescriptor& socket, int interface, std::uint16_t protocol) noexcept {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = interface;
  address.sll_protocol = htons(protocol);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// The status is shared with the kernel.
std::atomic_ref<std::uint32_t> status_of(tpacket_block_desc& block) noexcept {
  return std::atomic_ref(block.hdr.bh1.block_status);
}
std::atomic_ref<std::uint32_t> status_of(tpacket3_hdr& slot) noexcept { return std::atomic_ref(slot.tp_status); }

}  // namespace

RingMapping::~RingMapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

bool RingMapping::map(const FileDescriptor& socket, std::size_t bytes, std::uint8_t* at,
                      std::uint64_t offset) noexcept {
  void* const memory = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at != nullptr ? MAP_FIXED : 0),
                              socket.get(), static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return false;
  bytes_ = {static_cast<std::uint8_t*>(memory), bytes};
  return true;
}

Result<ReceiveRing> ReceiveRing::open(const std::string& name, const Interface& interface, const ReceiveShape& shape,
                                      const Fanout* fanout, std::uint8_t* memory) {
  ReceiveRing ring;
  ring.shape_ = shape;
  ring.blocks_.resize(shape.blocks);
  // Without a protocol, it receives nothing until it is bound to the interface.
  ring.socket_ = FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!ring.socket_) return refused(name, "cannot open a packet socket");
  const FileDescriptor& socket = ring.socket_;
  const int version = TPACKET_V3, on = 1;
  const auto reserve = static_cast<unsigned>(shape.headroom);
  tpacket_req3 request{};
  request.tp_block_size = static_cast<unsigned>(shape.block_bytes);
  request.tp_block_nr = static_cast<unsigned>(shape.blocks);
  request.tp_frame_size = static_cast<unsigned>(shape.block_bytes);  // frames lie one after another in a block
  request.tp_frame_nr = request.tp_block_nr;
  request.tp_retire_blk_tov = shape.block_timeout_ms;
  if (!set_option(socket, SOL_PACKET, PACKET_VERSION, version) ||
      !set_option(socket, SOL_PACKET, PACKET_VNET_HDR, on) ||
      !set_option(socket, SOL_PACKET, PACKET_RESERVE, reserve) ||
      !set_option(socket, SOL_PACKET, PACKET_RX_RING, request)) {
    return refused(name, "cannot make a receive ring");
  }
  if (fanout == nullptr && !set_option(socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, on))
    return refused(name, "cannot ignore frames that this host sends");
  if (!ring.mapping_.map(socket, shape.block_bytes * shape.blocks, memory))
    return refused(name, "cannot map the receive ring");
  // Until it has joined its group, a socket would get all frames of the interface.
  ring.stop();
  if (!bind_to(socket, interface.index, ETH_P_ALL)) return refused(name, "cannot bind to the interface");
  if (shape.promiscuous) {
    packet_mreq membership{};
    membership.mr_ifindex = interface.index;
    membership.mr_type = PACKET_MR_PROMISC;
    if (!set_option(socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership))
      return refused(name, "cannot make the interface promiscuous");
  }
  if (fanout != nullptr) {
    const std::uint32_t join = fanout->group | (fanout->type | kIgnoreOutgoing) << 16;
    if (!set_option(socket, SOL_PACKET, PACKET_FANOUT, join)) return refused(name, "cannot join a fanout group");
    if (fanout->program >= 0 && !set_option(socket, SOL_PACKET, PACKET_FANOUT_DATA, fanout->program))
      return refused(name, "cannot set the program of the fanout group");
  }
  return ring;
}

Result<ReceiveRing> ReceiveRing::continue_at(const std::string& name, FileDescriptor socket, const Position& position,
                                             const ReceiveShape& shape, std::uint8_t* memory) {
  ReceiveRing ring;
  ring.shape_ = shape;
  ring.blocks_.resize(shape.blocks);
  ring.socket_ = std::move(socket);
  if (!ring.mapping_.map(ring.socket_, shape.block_bytes * shape.blocks, memory))
    return refused(name, "cannot map the receive ring of the other process");
  if (position.block >= shape.blocks || position.offset >= shape.block_bytes)
    return failure(Error{{name, 0, 0}, "not a position in the receive ring of the other process", "", ""});
  ring.current_ = ring.oldest_ = position.block;
  ring.reading_ = position.left > 0;
  ring.left_ = static_cast<std::uint32_t>(position.left);
  ring.next_ = reinterpret_cast<std::uint8_t*>(&ring.block(ring.current_)) + position.offset;
  return ring;
}

ReceiveRing::Position ReceiveRing::position() noexcept {
  if (reading_ && left_ == 0) end_block();
  if (!reading_) return {current_, 0, 0};
  return {current_, left_, static_cast<std::uint64_t>(next_ - reinterpret_cast<std::uint8_t*>(&block(current_)))};
}

tpacket3_hdr* ReceiveRing::front() noexcept {
  while (!reading_ || left_ == 0) {
    if (reading_) end_block();
    if (starved()) return nullptr;
    tpacket_block_desc& next = block(current_);
    if ((status_of(next).load(std::memory_order_acquire) & TP_STATUS_USER) == 0) return nullptr;
    reading_ = true;
    left_ = next.hdr.bh1.num_pkts;
    next_ = reinterpret_cast<std::uint8_t*>(&next) + next.hdr.bh1.offset_to_first_pkt;
  }
  return reinterpret_cast<tpacket3_hdr*>(next_);
}

void ReceiveRing::end_block() noexcept {
  reading_ = false;
  current_ = current_ + 1 == shape_.blocks ? 0 : current_ + 1;
  ++held_;
  give_blocks_back();
}

void ReceiveRing::pop(bool lent) noexcept {
  const auto& header = *reinterpret_cast<const tpacket3_hdr*>(next_);
  --left_;
  if (lent) {
    ++blocks_[current_].lent;
    ++lent_;
  }
  next_ += header.tp_next_offset;
}

void ReceiveRing::take_back(std::size_t frames) noexcept {
  lent_ -= frames;
  // In the order of lending: the held blocks from the oldest, and the current one.
  for (std::size_t i = 0, number = oldest_; frames > 0 && i <= held_ && i < shape_.blocks; ++i) {
    Block& one = blocks_[number];
    const auto part = static_cast<std::uint32_t>(std::min<std::size_t>(frames, one.lent - one.back));
    one.back += part;
    frames -= part;
    number = number + 1 == shape_.blocks ? 0 : number + 1;
  }
  give_blocks_back();
}

void ReceiveRing::give_blocks_back() noexcept {
  while (held_ > 0 && blocks_[oldest_].back == blocks_[oldest_].lent) {
    blocks_[oldest_] = {};
    status_of(block(oldest_)).store(TP_STATUS_KERNEL, std::memory_order_release);
    oldest_ = oldest_ + 1 == shape_.blocks ? 0 : oldest_ + 1;
    --held_;
  }
}

bool ReceiveRing::start() noexcept {
  const int none = 0;
  return set_option(socket_, SOL_SOCKET, SO_DETACH_FILTER, none);
}

void ReceiveRing::stop() noexcept {
  sock_filter reject{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog program{1, &reject};
  static_cast<void>(set_option(socket_, SOL_SOCKET, SO_ATTACH_FILTER, program));
}

ReceiveRing::Arrivals ReceiveRing::arrivals() const noexcept {
  tpacket_stats_v3 stats{};
  socklen_t length = sizeof stats;
  if (::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &length) != 0) return {};
  return {stats.tp_packets, stats.tp_drops};
}

Result<SendRing> SendRing::open(const std::string& name, const Interface& interface, std::size_t slots,
                                std::uint32_t longest_frame, bool bypass_qdisc) {
  SendRing ring;
  ring.slot_bytes_ = std::bit_ceil(TPACKET3_HDRLEN + std::size_t{longest_frame});
  ring.longest_frame_ = static_cast<std::uint32_t>(ring.slot_bytes_ - TPACKET3_HDRLEN);
  ring.slots_ = slots;
  ring.socket_ = FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!ring.socket_) return refused(name, "cannot open a packet socket");
  const FileDescriptor& socket = ring.socket_;
  const int version = TPACKET_V3;
  tpacket_req3 request{};
  const std::size_t block_bytes = std::max<std::size_t>(ring.slot_bytes_, std::size_t{1} << 16);
  request.tp_block_size = static_cast<unsigned>(block_bytes);
  request.tp_block_nr = static_cast<unsigned>((slots * ring.slot_bytes_ + block_bytes - 1) / block_bytes);
  request.tp_frame_size = static_cast<unsigned>(ring.slot_bytes_);
  request.tp_frame_nr = static_cast<unsigned>(request.tp_block_nr * (block_bytes / ring.slot_bytes_));
  ring.slots_ = request.tp_frame_nr;
  if (!set_option(socket, SOL_PACKET, PACKET_VERSION, version) ||
      !set_option(socket, SOL_PACKET, PACKET_TX_RING, request)) {
    return refused(name, "cannot make a transmit ring");
  }
  // So that the socket's limit does not hold up a full ring. Without CAP_NET_ADMIN, up to net.core.wmem_max.
  const int buffer = static_cast<int>(std::min<std::size_t>(2 * ring.slots_ * ring.slot_bytes_, 1U << 30));
  if (!set_option(socket, SOL_SOCKET, SO_SNDBUFFORCE, buffer))
    static_cast<void>(set_option(socket, SOL_SOCKET, SO_SNDBUF, buffer));
  const int on = 1;
  if (bypass_qdisc && !set_option(socket, SOL_PACKET, PACKET_QDISC_BYPASS, on))
    return refused(name, "cannot bypass the queueing discipline");
  if (!ring.mapping_.map(socket, block_bytes * request.tp_block_nr, nullptr))
    return refused(name, "cannot map the transmit ring");
  if (!bind_to(socket, interface.index, 0)) return refused(name, "cannot bind to the interface");
  return ring;
}

bool SendRing::exists_on(const Interface& interface) {
  std::ifstream sockets("/proc/thread-self/net/packet");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string address, references, type, protocol;
    int index = 0;
    if (words >> address >> references >> type >> protocol >> index && protocol == "0000" && index == interface.index)
      return true;
  }
  return false;
}

/// The kernel expects the frame where a received one would have its socket address.
std::uint8_t* SendRing::frame_of(tpacket3_hdr& slot) const noexcept {
  return reinterpret_cast<std::uint8_t*>(&slot) + TPACKET3_HDRLEN - sizeof(sockaddr_ll);
}

bool SendRing::put(std::span<const std::uint8_t> frame) noexcept {
  tpacket3_hdr& to = slot(next_);
  // Not available: the kernel is still sending the frame that was there.
  if (pending_ == slots_ || status_of(to).load(std::memory_order_acquire) != TP_STATUS_AVAILABLE) return false;
  std::memcpy(frame_of(to), frame.data(), frame.size());
  to.tp_len = static_cast<std::uint32_t>(frame.size());
  to.tp_next_offset = 0;
  status_of(to).store(TP_STATUS_SEND_REQUEST, std::memory_order_release);
  next_ = next_ + 1 == slots_ ? 0 : next_ + 1;
  ++pending_;
  return true;
}

/// The kernel takes frames in order.
void SendRing::note_sent() noexcept {
  while (pending_ > 0) {
    const std::uint32_t status = status_of(slot((next_ + slots_ - pending_) % slots_)).load(std::memory_order_acquire);
    if ((status & (TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT)) != 0) return;
    --pending_;
  }
}

SendRing::Sent SendRing::send() noexcept {
  Sent sent;
  for (std::size_t tries = pending_ + 1; pending_ > 0 && tries > 0; --tries) {
    const bool worked = ::sendto(socket_.get(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0;
    const int error = worked ? 0 : errno;
    note_sent();
    if (worked || error == EAGAIN || error == ENOBUFS || error == EINTR) break;  // what is pending is tried again later
    if (error == EMSGSIZE || error == EINVAL) {
      sent.reason = Refused::too_long;
      remove_first(sent);
      continue;
    }
    const Sent rest = discard(Refused::down);
    sent.lost += rest.lost;
    sent.lost_bytes += rest.lost_bytes;
    sent.reason = rest.reason;
  }
  return sent;
}

/// The kernel goes on at this slot, so the frames after it move up.
void SendRing::remove_first(Sent& sent) noexcept {
  if (pending_ == 0) return;
  std::size_t at = (next_ + slots_ - pending_) % slots_;
  ++sent.lost;
  sent.lost_bytes += slot(at).tp_len;
  for (std::size_t i = 1; i < pending_; ++i) {
    const std::size_t after = at + 1 == slots_ ? 0 : at + 1;
    std::memcpy(frame_of(slot(at)), frame_of(slot(after)), slot(after).tp_len);
    slot(at).tp_len = slot(after).tp_len;
    status_of(slot(at)).store(TP_STATUS_SEND_REQUEST, std::memory_order_release);
    at = after;
  }
  status_of(slot(at)).store(TP_STATUS_AVAILABLE, std::memory_order_release);
  next_ = at;
  --pending_;
}

SendRing::Sent SendRing::discard(Refused reason) noexcept {
  Sent sent{0, 0, reason};
  while (pending_ > 0) {
    next_ = next_ == 0 ? slots_ - 1 : next_ - 1;
    tpacket3_hdr& last = slot(next_);
    ++sent.lost;
    sent.lost_bytes += last.tp_len;
    status_of(last).store(TP_STATUS_AVAILABLE, std::memory_order_release);
    --pending_;
  }
  return sent;
}

}  // namespace penstock::port
