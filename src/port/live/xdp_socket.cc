// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/xdp_socket.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/capabilities.h"

namespace penstock::port {

namespace {

template <typename Value>
bool set_option(const FileDescriptor& socket, int level, int name, const Value& value) noexcept {
  return ::setsockopt(socket.get(), level, name, &value, sizeof value) == 0;
}

tl::unexpected<Errors> refused(const std::string& name, std::string_view what, std::string expected = {}) {
  const int error = errno;
  Error message = system_error(name, what, std::system_category().message(error));
  message.expected = std::move(expected);
  if (error == EPERM || error == EACCES) message.expected = how_to_get(Capability::net_raw);
  if (error == EAFNOSUPPORT) message.expected = "a kernel with AF_XDP (CONFIG_XDP_SOCKETS)";
  return failure(std::move(message));
}

std::uint32_t entries_for(std::uint32_t chunks) noexcept { return std::bit_ceil(std::max(chunks, 2U)); }

/// Why `bind` failed, as far as its error says.
std::string hint_for(int error, const XdpShape& shape, XdpCopies copies) {
  if (error == EBUSY) return "a queue that no other AF_XDP socket uses";
  if (copies == XdpCopies::never) return "zero_copy: auto, or a driver with zero-copy AF_XDP";
  if (shape.needs_several_chunks) return "an MTU whose frames fit into a page, or Linux 6.6";
  return {};
}

}  // namespace

Result<XdpSocket> XdpSocket::open(const std::string& name, const Interface& interface, std::uint32_t queue,
                                  std::span<std::uint8_t> memory, const XdpShape& shape, XdpCopies copies) {
  XdpSocket result;
  result.socket_ = FileDescriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!result.socket_) return refused(name, "cannot open an AF_XDP socket");
  const FileDescriptor& socket = result.socket_;
  xdp_umem_reg umem{};
  umem.addr = reinterpret_cast<std::uint64_t>(memory.data());
  umem.len = shape.bytes();
  umem.chunk_size = shape.chunk_bytes;
  umem.headroom = shape.headroom;
  if (!set_option(socket, SOL_XDP, XDP_UMEM_REG, umem)) {
    return refused(name, "cannot register memory for frames",
                   errno == ENOBUFS ? how_to_get(Capability::ipc_lock) + ", or a higher limit of locked memory" : "");
  }
  if (!result.make_rings(shape)) return refused(name, "cannot make the rings of an AF_XDP socket");
  if (shape.busy_poll_budget > 0) {
    const int prefer = 1, microseconds = 20, budget = static_cast<int>(shape.busy_poll_budget);
    if (!set_option(socket, SOL_SOCKET, SO_PREFER_BUSY_POLL, prefer) ||
        !set_option(socket, SOL_SOCKET, SO_BUSY_POLL, microseconds) ||
        !set_option(socket, SOL_SOCKET, SO_BUSY_POLL_BUDGET, budget)) {
      const std::string expected = errno == EPERM ? how_to_get(Capability::net_admin) : "";
      Error error = system_error(name, "cannot busy-poll", std::system_category().message(errno));
      error.expected = expected;
      return failure(std::move(error));
    }
  }
  // So that the socket's limit does not hold up a full ring. Without CAP_NET_ADMIN, up to net.core.wmem_max.
  const int buffer =
      static_cast<int>(std::min<std::size_t>(std::size_t{2} * shape.send_chunks * shape.chunk_bytes, 1U << 30));
  if (!set_option(socket, SOL_SOCKET, SO_SNDBUFFORCE, buffer))
    static_cast<void>(set_option(socket, SOL_SOCKET, SO_SNDBUF, buffer));
  if (!result.bind(interface, queue, shape, copies))
    return refused(name, fmt::format("cannot bind an AF_XDP socket to queue {}", queue),
                   hint_for(errno, shape, copies));
  return result;
}

bool XdpSocket::make_rings(const XdpShape& shape) noexcept {
  // The kernel requires a fill and a completion ring of every socket with memory.
  const std::uint32_t fills = entries_for(shape.receive_chunks), sends = entries_for(shape.send_chunks);
  if (!set_option(socket_, SOL_XDP, XDP_UMEM_FILL_RING, fills) ||
      !set_option(socket_, SOL_XDP, XDP_UMEM_COMPLETION_RING, sends) ||
      (shape.reads && !set_option(socket_, SOL_XDP, XDP_RX_RING, fills)) ||
      (shape.writes && !set_option(socket_, SOL_XDP, XDP_TX_RING, sends))) {
    return false;
  }
  xdp_mmap_offsets offsets{};
  socklen_t length = sizeof offsets;
  if (::getsockopt(socket_.get(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0) return false;
  const auto map = [&](RingMapping& mapping, std::uint64_t ring, const xdp_ring_offset& at, std::size_t entry_bytes,
                       std::uint32_t entries) {
    return mapping.map(socket_, at.desc + entry_bytes * entries, nullptr, ring);
  };
  if (!map(mappings_[0], XDP_UMEM_PGOFF_FILL_RING, offsets.fr, sizeof(std::uint64_t), fills) ||
      !map(mappings_[1], XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, sizeof(std::uint64_t), sends)) {
    return false;
  }
  fill_ = {mappings_[0].bytes().data(), offsets.fr, fills};
  completion_ = {mappings_[1].bytes().data(), offsets.cr, sends};
  if (shape.reads) {
    if (!map(mappings_[2], XDP_PGOFF_RX_RING, offsets.rx, sizeof(xdp_desc), fills)) return false;
    receive_ = {mappings_[2].bytes().data(), offsets.rx, fills};
  }
  if (shape.writes) {
    if (!map(mappings_[3], XDP_PGOFF_TX_RING, offsets.tx, sizeof(xdp_desc), sends)) return false;
    send_ = {mappings_[3].bytes().data(), offsets.tx, sends};
  }
  return true;
}

bool XdpSocket::bind(const Interface& interface, std::uint32_t queue, const XdpShape& shape,
                     XdpCopies copies) noexcept {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_ifindex = static_cast<std::uint32_t>(interface.index);
  address.sxdp_queue_id = queue;
  const auto try_with = [&](std::uint16_t how, std::uint16_t frags) {
    address.sxdp_flags = static_cast<std::uint16_t>(XDP_USE_NEED_WAKEUP | how | frags);
    has_frags_ = frags != 0;
    return ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  };
  const auto try_both = [&](std::uint16_t how) {
    return try_with(how, kXdpUseSg) || (!shape.needs_several_chunks && try_with(how, 0));
  };
  const bool bound =
      (copies != XdpCopies::always && try_both(XDP_ZEROCOPY)) || (copies != XdpCopies::never && try_both(XDP_COPY));
  if (!bound) return false;
  xdp_options options{};
  socklen_t length = sizeof options;
  is_zero_copy_ = ::getsockopt(socket_.get(), SOL_XDP, XDP_OPTIONS, &options, &length) == 0 &&
                  (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
  return true;
}

bool XdpSocket::has_queue(const std::string& name, const Interface& interface, std::uint32_t queue) {
  XdpShape shape;
  shape.receive_chunks = 2;
  shape.writes = false;
  void* const memory = ::mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool has =
      open(name, interface, queue, {static_cast<std::uint8_t*>(memory), shape.bytes()}, shape, XdpCopies::always)
          .has_value();
  ::munmap(memory, shape.bytes());
  return has;
}

XdpStatistics XdpSocket::statistics() const noexcept {
  xdp_statistics from{};
  socklen_t length = sizeof from;
  if (::getsockopt(socket_.get(), SOL_XDP, XDP_STATISTICS, &from, &length) != 0) return {};
  return {from.rx_dropped, from.rx_ring_full, from.rx_fill_ring_empty_descs, from.rx_invalid_descs,
          from.tx_invalid_descs};
}

}  // namespace penstock::port
