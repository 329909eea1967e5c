// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The XDP program that hands an interface's frames to AF_XDP sockets. It is attached by a link, which ends with the
// process that holds it, even if that is killed.

#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "port/live/file_descriptor.h"
#include "port/live/host_frames.h"
#include "port/live/interface.h"

namespace penstock::port {

enum class XdpMode : std::uint8_t {
  automatic,  // native, or else generic
  native,     // in the driver
  generic,    // in the system's receive path, after it has made a buffer for the frame
};

/// Frames of queues without a socket go on to the system. Frames that come while there is no program do so too.
class XdpProgram {
 public:
  /// In the calling thread's network namespace. Refused if the interface has a program already. With `host`, frames for
  /// the host go on to the system (host_frames.h).
  [[nodiscard]] static Result<XdpProgram> attach(const std::string& name, const Interface& interface,
                                                 std::uint32_t queues, XdpMode mode, const HostAddresses* host);

  /// From now on, `socket` gets the frames of this receive queue, to which it is bound.
  [[nodiscard]] Result<void> hand_over(const std::string& name, std::uint32_t queue, const FileDescriptor& socket);
  /// Frames of the receive queue go to the system again.
  void give_to_system(std::uint32_t queue) noexcept;

  [[nodiscard]] bool is_native() const noexcept { return is_native_; }
  /// Whether it accepts frames of several chunks: the kernel knows them (Linux 5.18).
  [[nodiscard]] bool has_frags() const noexcept { return has_frags_; }

 private:
  FileDescriptor sockets_;  // the map of sockets by queue
  FileDescriptor program_, link_;
  bool is_native_ = false, has_frags_ = false;
};

}  // namespace penstock::port
