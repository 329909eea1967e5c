// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A process continues the run of another one, at the other one's control socket (docs/control.md):
//
//     successor                              predecessor
//     hand-over, dry run     ────────────▶   goes on
//     compares               ◀────────────   format, workers, ports
//     prepares everything
//     hand-over              ────────────▶   receives no more
//     maps the ports         ◀────────────   what ports hand over, with their descriptors
//     "ready"                ────────────▶   will not go on
//     packets flow           ◀────────────   "yours", and ends
//
// Until "ready", the predecessor goes on if anything fails. From then on, the successor begins in any case: it begins
// without "yours" only if the predecessor has died.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "control/client.h"
#include "control/request.h"
#include "port/live/file_descriptor.h"
#include "run/run.h"

namespace penstock::control {

/// Of what ports hand over. Processes with different ones cannot take over from each other.
inline constexpr int kHandOverFormat = 1;

/// The result of the dry run.
[[nodiscard]] Json to_json(const run::Continuity& continuity);
/// The result of the command; its descriptors, port by port, come with its first byte.
[[nodiscard]] Json to_json(const run::HandedPorts& ports);
/// Reads such a result, which may be anything.
[[nodiscard]] Result<run::HandedPorts> read_handed(const Json& result, std::vector<port::FileDescriptor> descriptors);

struct HandOverOutcome {
  pid_t successor = 0;  // 0: unknown
  Errors errors;        // not empty: the run goes on
};
/// The predecessor's part, from the command on. Returns within seconds, in which packets wait. `socket`: that of the
/// client, from which nobody else reads. `leaves`: called once the run cannot go on, before the successor begins.
/// Afterwards the run ends, unless there was an error.
[[nodiscard]] HandOverOutcome hand_over(run::Run& run, const port::FileDescriptor& socket, const Json& id,
                                        const std::function<void(pid_t successor)>& leaves);

/// The successor's part.
class RunningProcess final : public run::Predecessor {
 public:
  using Connected = tl::expected<std::unique_ptr<RunningProcess>, NoResult>;
  /// Connects to the control socket of a run that `own` could continue. If not, errors say what differs, and the kind
  /// is Failure::mistakes. A process that dies meanwhile is one that has died: nothing is known about its run.
  [[nodiscard]] static Connected connect(const std::string& path, const run::Continuity& own);
  /// The same for a run of `chain`, unless that cannot continue any.
  [[nodiscard]] static Connected connect(const std::string& path, const run::Chain& chain);

  Result<run::HandedPorts> take() override;
  Result<void> confirm() override;

  /// Before it handed anything over.
  [[nodiscard]] bool has_died() const noexcept { return has_died_; }
  /// It did not hand over, and goes on.
  [[nodiscard]] bool goes_on() const noexcept { return goes_on_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// From `take` to `confirm`.
  [[nodiscard]] std::chrono::duration<double> waited() const noexcept { return confirmed_ - taken_; }

 private:
  using Clock = std::chrono::steady_clock;
  RunningProcess(std::string path, Client client, pid_t pid, port::FileDescriptor process)
      : path_(std::move(path)), client_(std::move(client)), pid_(pid), process_(std::move(process)) {}

  [[nodiscard]] Result<void> compare(const run::Continuity& own, const Json& found) const;
  [[nodiscard]] Result<run::HandedPorts> ask_for_ports();
  /// Waits for a moment if it may be about to end.
  [[nodiscard]] bool has_ended() const noexcept;
  /// What the user can do if it neither goes on nor ends.
  [[nodiscard]] std::string way_out() const;

  const std::string path_;
  Client client_;
  bool has_died_ = false, goes_on_ = false;
  const pid_t pid_;
  const port::FileDescriptor process_;
  Clock::time_point taken_, confirmed_;
};

}  // namespace penstock::control
