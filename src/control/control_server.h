// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Lets the operator control a run over a unix socket (docs/control.md). A thread of its own, off the workers' cores,
// talks with the clients and answers what only looks at the run. What takes longer, such as a reload, waits for the
// thread that waits for the run (`tick`), which does one thing at a time.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "config/chain_file.h"
#include "control/connection_inquiry.h"
#include "control/hand_over.h"
#include "control/line_server.h"
#include "control/packet_stream.h"
#include "control/reload.h"
#include "control/request.h"
#include "control/unix_socket.h"
#include "run/run.h"

namespace penstock::control {

/// What a server controls; all of it is borrowed.
struct Subject {
  const config::LoadedChain& loaded;
  const std::string& chain_file;
  Reloader& reloader;
  const std::atomic<bool>& stop_asked;
  std::function<void()> stop;  // the sources are not read any more; called in the server's thread
  std::function<void(const ReloadOutcome&)> on_reload;       // called by `tick`
  std::function<void(const HandOverOutcome&)> on_hand_over;  // the same
  std::function<void(pid_t successor)> on_leaving;           // the same; before the successor begins
};

class ControlServer final : LineHandler {
 public:
  /// Starts the thread. The run has not begun yet.
  [[nodiscard]] static Result<std::unique_ptr<ControlServer>> open(UnixListener listener, Subject subject);
  /// Answers whatever is still waiting, and removes the socket.
  ~ControlServer() override;
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Only the thread that waits for the run may call these.

  /// Packets flow. An error: nobody can connect. `run` must live until `end`, or until the server is destroyed.
  [[nodiscard]] Result<void> begin(run::Run& run);
  /// Does what clients have asked for. Called many times per second while packets flow.
  void tick();
  /// The run has ended. Clients that wait for that are answered by the destructor, so that outputs can be written
  /// before.
  void end(const run::RunResult& result);
  /// After `end`: the outputs are written, as far as that was possible. `errors`: all of the run.
  void outputs_written(const Errors& errors);

 private:
  struct Asked {
    ClientId client;
    Request request;
  };

  /// The answer to a `trace` or `capture`, which comes in parts.
  struct Observation {
    Asked asked;
    std::shared_ptr<PacketStream> stream;
    std::uint64_t wanted = 0;  // packets
    std::optional<std::chrono::steady_clock::time_point> until;
    std::span<const std::string_view> reasons;  // of the function whose drops are captured
  };

  ControlServer(UnixListener listener, Subject subject);

  std::optional<std::string> refuse(int socket) override;
  Next received(ClientId client, std::string_view line) override;
  Part next_part(ClientId client) override;
  void gone(ClientId client) override;
  std::string farewell(Closing reason) override;

  [[nodiscard]] Next answer(const Asked& asked);
  [[nodiscard]] Next observe(const Asked& asked);
  [[nodiscard]] Next inquire(const Asked& asked);
  [[nodiscard]] Result<bool> begin_observation(Observation& observation);
  void end_observation(const Observation& observation);
  void send_result(const Asked& asked, const Json& result);
  void send_failure(const Asked& asked, Failure kind, Error error);
  [[nodiscard]] Json status() const;
  void answer_stats(const Asked& asked);
  void answer_explain(const Asked& asked);
  void answer_log_level(const Asked& asked);
  void ask_to_stop(const Asked& asked);
  void queue(const Asked& asked);
  void carry_out(const Asked& asked, run::Run& run);
  void carry_out_reload(const Asked& asked, run::Run& run);
  void carry_out_hand_over(const Asked& asked, run::Run& run);
  void send_outcome(const Asked& asked, const ReloadOutcome& outcome);
  [[nodiscard]] std::optional<report::RunReport> report() const;
  [[nodiscard]] Error no_run() const;

  UnixListener listener_;
  const Subject subject_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  mutable std::mutex mutex_;  // guards the members up to the next empty line
  run::Run* run_ = nullptr;   // null: it has not begun, or has ended
  std::optional<run::RunResult> result_;
  std::deque<Asked> queue_;         // for `tick`; one for each client at most
  bool reload_asked_ = false;       // a reload, dry run, rollback or hand-over is in the queue, or under way
  port::FileDescriptor successor_;  // the socket of the client to which the run is to be handed over
  std::vector<Asked> draining_;

  // Only the server's thread uses these.
  std::map<ClientId, Observation> observations_;
  std::map<ClientId, std::unique_ptr<ConnectionInquiry>> inquiries_;

  LineServer server_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace penstock::control
