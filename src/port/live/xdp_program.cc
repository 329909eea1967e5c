// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/xdp_program.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/capabilities.h"
#include "port/live/bpf_assembler.h"
#include "port/live/xdp_rings.h"

namespace penstock::port {

namespace {

tl::unexpected<Errors> refused(const std::string& name, std::string_view what, std::string expected = {}) {
  const int error = errno;
  Error message = system_error(name, what, std::system_category().message(error));
  message.expected = std::move(expected);
  if (error == EPERM || error == EACCES)
    message.expected = how_to_get(Capability::bpf) + ", and " + how_to_get(Capability::net_admin);
  return failure(std::move(message));
}

/// if (is_for_host(context)) return XDP_PASS;  // if there are host addresses
/// return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
FileDescriptor load(const FileDescriptor& sockets, const HostAddresses* host, std::uint32_t flags) {
  using enum BpfAssembler::Register;
  BpfAssembler code;
  code.move(r6, r1);
  if (host != nullptr) leave_to_host(code, host->map());
  code.load(BPF_W, r2, r6, offsetof(xdp_md, rx_queue_index));
  code.move_map(r1, sockets.get());
  code.move(r3, XDP_PASS);
  code.call(BPF_FUNC_redirect_map);
  code.exit();
  bpf_prog_load_opts options{};
  options.sz = sizeof options;
  options.prog_flags = flags;
  // The licence only decides which helpers a program may call; this one is open to all.
  return FileDescriptor(::bpf_prog_load(BPF_PROG_TYPE_XDP, "penstock_xdp", "Apache-2.0", code.code().data(),
                                        code.code().size(), &options));
}

FileDescriptor link(const FileDescriptor& program, const Interface& interface, std::uint32_t flags) noexcept {
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.flags = flags;
  return FileDescriptor(::bpf_link_create(program.get(), interface.index, BPF_XDP, &options));
}

/// Drivers give these reasons (veth, among others), and the kernel's messages do not mention them.
std::string hint_for(int error) {
  switch (error) {
    case EOPNOTSUPP: return "mode: generic, or a driver with XDP";
    case ERANGE:
    case EINVAL: return "mode: generic, or a smaller MTU (of a veth interface: at its other end)";
    case ENOSPC: return "mode: generic, or fewer queues (of a veth interface: as many send queues at its other end)";
    default: return {};
  }
}

}  // namespace

Result<XdpProgram> XdpProgram::attach(const std::string& name, const Interface& interface, std::uint32_t queues,
                                      XdpMode mode, const HostAddresses* host) {
  XdpProgram result;
  result.sockets_ = FileDescriptor(
      ::bpf_map_create(BPF_MAP_TYPE_XSKMAP, "penstock_xsk", sizeof(std::uint32_t), sizeof(int), queues, nullptr));
  if (!result.sockets_) return refused(name, "cannot make a map for AF_XDP sockets");
  result.program_ = load(result.sockets_, host, kXdpHasFrags);
  result.has_frags_ = static_cast<bool>(result.program_);
  if (!result.program_) result.program_ = load(result.sockets_, host, 0);
  if (!result.program_) return refused(name, "cannot load the XDP program");

  const auto has_one = [](int error) { return error == EBUSY || error == EEXIST; };
  if (mode != XdpMode::generic) {
    result.link_ = link(result.program_, interface, XDP_FLAGS_DRV_MODE);
    result.is_native_ = static_cast<bool>(result.link_);
    const bool is_final = has_one(errno) || errno == EPERM || mode == XdpMode::native;
    if (!result.link_ && is_final && !has_one(errno))
      return refused(name, "cannot attach an XDP program in native mode", hint_for(errno));
  }
  if (!result.link_ && (mode == XdpMode::generic || !has_one(errno)))
    result.link_ = link(result.program_, interface, XDP_FLAGS_SKB_MODE);
  if (result.link_) return result;
  if (has_one(errno))
    return refused(name, "the interface already has an XDP program",
                   "an interface without one (see `ip link show` and `bpftool net`)");
  return refused(name, "cannot attach an XDP program");
}

Result<void> XdpProgram::hand_over(const std::string& name, std::uint32_t queue, const FileDescriptor& socket) {
  const int value = socket.get();
  if (::bpf_map_update_elem(sockets_.get(), &queue, &value, BPF_ANY) != 0)
    return refused(name, "cannot hand a receive queue over to its AF_XDP socket");
  return {};
}

void XdpProgram::give_to_system(std::uint32_t queue) noexcept {
  static_cast<void>(::bpf_map_delete_elem(sockets_.get(), &queue));
}

}  // namespace penstock::port
