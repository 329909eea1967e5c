// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Serves a network function to the chains of other processes. A thread accepts connections, each of which has a thread
// of its own and a function of its own, made for its chain. Each queue of a connection has another one.

#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "function/granted_stage.h"
#include "function/network_function.h"
#include "ipc/message_socket.h"
#include "process/description.h"

namespace penstock::process {

struct ServerSettings {
  std::string path;
  mode_t mode = 0660;
  // Who may connect besides root and the server's own user. Both empty: everybody who may write to the socket.
  std::vector<uid_t> users{};
  std::vector<gid_t> groups{};
  function::TableGranter* granter = nullptr;  // loads tables for stages in a proxy; outlives the server. Null: none
};

class Server {
 public:
  /// Makes the function for a chain. `function` is the kind that the chain asks for. Called by one thread at a time.
  using Make = std::function<Result<std::unique_ptr<function::NetworkFunction>>(std::string_view function,
                                                                                const Surroundings& surroundings)>;

  /// Listens when it returns. Throws std::system_error if there are no threads.
  [[nodiscard]] static Result<std::unique_ptr<Server>> start(ServerSettings settings, Make make);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Ends all connections. If the function has failed, it may wait for a device without end.
  ~Server();

  /// Why a stage of the function has failed (function/offloaded_stage.h): this process should end. "": none has.
  [[nodiscard]] std::string why_failed() const;

 private:
  static constexpr std::size_t kMostConnections = 32;

  struct Connection {
    ipc::FileDescriptor socket;
    ipc::Peer peer;
    std::atomic<bool> ended{false};
    std::thread thread;
  };

  Server(ServerSettings settings, Make make, ipc::Listener listener);
  void accept_all() noexcept;
  void accept_one(ipc::FileDescriptor socket);
  void reap(bool all) noexcept;
  void serve(Connection& connection) noexcept;
  /// Why the chain loses the function; "": it has gone.
  [[nodiscard]] std::string converse(int socket, const ipc::Peer& peer);
  [[nodiscard]] std::optional<function::StageNeeds> stage_of(const function::NetworkFunction& function) const;
  [[nodiscard]] Result<std::unique_ptr<function::NetworkFunction>> make(std::string_view name,
                                                                        const Surroundings& surroundings);

  void fail(std::string_view why);
  void keep(std::unique_ptr<function::NetworkFunction> function) noexcept;

  const ServerSettings settings_;
  const Make make_;
  mutable std::mutex failing_;  // guards `failure_`
  std::string failure_;
  std::mutex making_;                                // held while a function is made
  std::mutex keeping_;                               // guards `kept_`
  std::unique_ptr<function::NetworkFunction> kept_;  // the LastingFunction whose chain has gone last; its run goes on
  ipc::Listener listener_;
  std::list<Connection> connections_;  // of the accepting thread
  ipc::FileDescriptor stop_;           // an eventfd
  std::thread thread_;                 // last: uses all others
};

}  // namespace penstock::process
