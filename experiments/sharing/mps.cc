// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/mps.h"

#include <filesystem>
#include <string>
#include <system_error>

namespace penstock::experiments {
namespace {

constexpr const char* kControl = "nvidia-cuda-mps-control";

/// Words that send the daemon a command.
Words asking(const Words& client, const std::string& command) {
  return joined(client, {"sh", "-c", "echo " + command + " | " + kControl});
}

}  // namespace

Result<std::unique_ptr<Mps>> Mps::start(const Workplace& folder, const std::atomic<bool>& stop) {
  constexpr std::chrono::seconds kPatience{10};
  if (!is_installed(kControl)) return failure({{}, std::string(kControl) + " is not installed", "", ""});
  const std::string pipes = folder.path("mps");
  std::error_code none;
  std::filesystem::create_directory(pipes, none);
  const std::string output = folder.path("mps.txt");
  const Words client{"env", "CUDA_MPS_PIPE_DIRECTORY=" + pipes, "CUDA_MPS_LOG_DIRECTORY=" + pipes};
  auto daemon = Program::start(joined(client, {kControl, "-f"}), output);
  if (!daemon) return tl::unexpected(std::move(daemon.error()));
  const auto ready = wait_until_ready(*daemon, {kControl, output, folder.path(""), kPatience, &stop}, [&] {
    return run_program(asking(client, "get_server_list"), folder.path("mps_answer.txt")).has_value();
  });
  if (!ready) return tl::unexpected(ready.error());
  return std::unique_ptr<Mps>(new Mps(std::move(*daemon), client, folder.path("mps_answer.txt")));
}

Words Mps::client(unsigned percent) const {
  constexpr unsigned kAll = 100;
  if (percent >= kAll) return client_;
  return joined(client_, {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=" + std::to_string(percent)});
}

Mps::~Mps() {
  constexpr std::chrono::seconds kPatience{10};
  // Ends the server too, which the daemon has started for the clients. Without the limit of 3 s it would wait for a
  // client that hangs, and the server would outlive a daemon that is killed.
  static_cast<void>(run_program(asking(client_, "quit -t 3"), output_));
  static_cast<void>(daemon_.ended_within(kPatience));
}

}  // namespace penstock::experiments
