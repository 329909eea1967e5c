// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/namespace_thread.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "port/live/file_descriptor.h"

namespace penstock::port {

Result<void> in_network_namespace(const std::string& name, const std::function<Result<void>()>& use) {
  if (name.empty()) return use();
  const std::string path = "/run/netns/" + name;
  const FileDescriptor space(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space)
    return failure(system_error(path, "cannot open the network namespace", std::system_category().message(errno)));
  Result<void> result;
  // In a thread of its own, so that the calling thread stays where it is.
  std::thread([&] {
    if (::setns(space.get(), CLONE_NEWNET) == 0) {
      result = use();
      return;
    }
    Error error = system_error(path, "cannot enter the network namespace", std::system_category().message(errno));
    if (errno == EPERM) error.expected = "the capability CAP_SYS_ADMIN";
    result = failure(std::move(error));
  }).join();
  return result;
}

}  // namespace penstock::port
