// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/shared_memory.h"
#include "base/units.h"
#include "function/confirming_stage.h"
#include "function/connection_reader.h"
#include "function/lasting_function.h"
#include "ipc/foreign_descriptor.h"
#include "process/served_queue.h"

namespace penstock::process {

namespace {

constexpr std::chrono::milliseconds kLongestAnswer{1000};
/// Without a hello, a connection does not keep others out.
constexpr std::chrono::milliseconds kLongestHello{2000};

void end_run_of(std::unique_ptr<function::NetworkFunction> function) noexcept {
  if (function != nullptr) function->end_run();
}

/// One chain, from its hello to its end. Belongs to the thread of its connection.
class Session {
 public:
  using Function = std::unique_ptr<function::NetworkFunction>;
  /// `granter`: null: the function has no stage in a proxy. `failed` is called by any thread, with the reason, when the
  /// function has failed. `ended` gets the function, whose run goes on, when the chain has gone.
  Session(int socket, Function function, std::size_t ports, function::TableGranter* granter,
          std::function<void(std::string_view why)> failed, std::function<void(Function function)> ended)
      : socket_(socket),
        function_(std::move(function)),
        ports_(ports),
        granter_(granter),
        failed_(std::move(failed)),
        ended_(std::move(ended)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    queues_.clear();
    granted_.reset();
    if (has_begun_) ended_(std::move(function_));
  }

  [[nodiscard]] Result<void> begin() {
    auto begun = function_->begin_run();
    has_begun_ = begun.has_value();
    return begun;
  }
  /// Until the chain goes, or breaks the protocol. Why it ended; "": it has gone.
  [[nodiscard]] std::string serve() {
    for (;;) {
      const auto received = ipc::receive_message(socket_, kMostMessageBytes, std::nullopt);
      if (std::string why = why_a_queue_ended(); !why.empty()) return why;
      if (!received) return errno == EPIPE || errno == ECONNRESET ? "" : "a message of a wrong size";
      if (const char* const why = handle(*received)) return why;
    }
  }
  [[nodiscard]] std::uint64_t packets() const {
    std::uint64_t sum = ended_packets_;
    for (const auto& [id, queue] : queues_) sum += queue->packets();
    return sum;
  }

 private:
  const char* handle(const ipc::Received& received) {
    MessageType type{};
    if (received.bytes.size() < sizeof type) return "a message of a wrong size";
    std::memcpy(&type, received.bytes.data(), sizeof type);
    switch (type) {
      case MessageType::make_queue:
        if (const auto message = message_of<MakeQueue>(received.bytes)) return make_queue(*message, received);
        break;
      case MessageType::open_memory:
        if (const auto message = message_of<OpenMemory>(received.bytes)) return open_memory(*message, received);
        break;
      case MessageType::end_queue:
        if (const auto message = message_of<EndQueue>(received.bytes)) return end_queue(*message);
        break;
      case MessageType::ask_token:
        if (message_of<AskToken>(received.bytes)) return tell_token();
        break;
      case MessageType::hello: break;
    }
    return "an unknown message";
  }

  const char* tell_token() {
    TokenReply reply;
    const auto token = grant();
    if (token) {
      reply.token = *token;
    } else {
      reply.failed = 1;
      reply.message = Text<512>(to_string(token.error().front()));
    }
    return ipc::send_message(socket_, bytes_of(reply), {}, kLongestAnswer) == 0 ? nullptr : "it takes no replies";
  }

  /// Loads the tables, unless they are loaded.
  [[nodiscard]] Result<function::GrantToken> grant() {
    if (granted_ != nullptr && !granted_->are_lost()) return granted_->token();
    granted_.reset();
    const auto recipe = granter_ == nullptr ? std::nullopt : function_->stage_recipe(function::Processor::gpu);
    if (!recipe) return failure(Error{{}, "the function has no stage in a proxy", "", ""});
    auto granted = granter_->grant(*recipe);
    if (!granted) return failure(std::move(granted.error()));
    granted_ = std::move(*granted);
    return granted_->token();
  }

  const char* make_queue(const MakeQueue& request, const ipc::Received& received) {
    if (queues_.size() >= kMostQueues) return refuse("too many queues");
    if (!has_sealed_file(received, kQueueBytes)) return refuse("not a sealed memfd of that size");
    auto memory = std::make_unique<const MappedFile>(received.descriptors[0].get(), kQueueBytes, /*writes=*/true);
    const auto ended = [this](ServedQueue::End end, std::string_view why) { queue_ended(end, why); };
    queues_.emplace(++last_id_,
                    std::make_unique<ServedQueue>(*function_, request.worker, std::move(memory), ports_, ended));
    return accept(last_id_);
  }

  const char* open_memory(const OpenMemory& request, const ipc::Received& received) {
    const auto queue = queues_.find(request.queue);
    if (queue == queues_.end()) return refuse("no such queue");
    if (request.bytes == 0 || request.bytes >> kOffsetBits != 0 || !has_sealed_file(received, request.bytes))
      return refuse("not a sealed memfd of that size");
    // A function that only looks gets descriptors by which nothing can be written. So does one that changes lengths,
    // which only changes copies.
    constexpr std::uint64_t kBytes = (std::uint64_t{1} << kByteFieldCount) - 1;
    const function::NfTraits& traits = function_->traits();
    const bool writes = (traits.cpu.writes.bits() & kBytes) != 0 && !changes_lengths(traits);
    const auto number =
        queue->second->add(std::make_unique<const MappedFile>(received.descriptors[0].get(), request.bytes, writes));
    return number ? accept(static_cast<std::uint32_t>(*number)) : refuse("too much memory is open");
  }

  const char* end_queue(const EndQueue& request) {
    const auto queue = queues_.find(request.queue);
    if (queue == queues_.end()) return "no such queue";
    ended_packets_ += queue->second->packets();
    queues_.erase(queue);
    return nullptr;
  }

  /// By the queue's thread.
  void queue_ended(ServedQueue::End end, std::string_view why) {
    {
      const std::lock_guard lock(mutex_);
      if (why_ended_.empty()) why_ended_ = why;
    }
    // The function's process does not live long from here on.
    if (end == ServedQueue::End::function_has_failed) failed_(why);
    static_cast<void>(::shutdown(socket_, SHUT_RDWR));
  }
  [[nodiscard]] std::string why_a_queue_ended() {
    const std::lock_guard lock(mutex_);
    return why_ended_;
  }

  [[nodiscard]] static bool has_sealed_file(const ipc::Received& received, std::uint64_t bytes) {
    return received.descriptors.size() == 1 && is_sealed(received.descriptors[0].get(), bytes);
  }
  const char* accept(std::uint32_t id) {
    Reply reply;
    reply.id = id;
    return send(reply);
  }
  const char* refuse(std::string_view why) {
    Reply reply;
    reply.failed = 1;
    reply.message = Text<256>(why);
    return send(reply);
  }
  const char* send(const Reply& reply) {
    return ipc::send_message(socket_, bytes_of(reply), {}, kLongestAnswer) == 0 ? nullptr : "it takes no replies";
  }

  const int socket_;
  Function function_;
  const std::size_t ports_;
  function::TableGranter* const granter_;
  std::unique_ptr<function::GrantedTables> granted_;  // null: not yet
  bool has_begun_ = false;
  const std::function<void(std::string_view)> failed_;
  const std::function<void(Function)> ended_;
  std::mutex mutex_;       // guards the next member
  std::string why_ended_;  // of the first queue that has ended by itself
  std::map<std::uint32_t, std::unique_ptr<ServedQueue>> queues_;
  std::uint32_t last_id_ = 0;  // ids are never used again
  std::uint64_t ended_packets_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerSettings settings, Make make) {
  auto listener = ipc::Listener::open(settings.path, settings.mode);
  if (!listener) return failure(std::move(listener.error()));
  return std::unique_ptr<Server>(new Server(std::move(settings), std::move(make), std::move(*listener)));
}

Server::Server(ServerSettings settings, Make make, ipc::Listener listener)
    : settings_(std::move(settings)),
      make_(std::move(make)),
      listener_(std::move(listener)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { accept_all(); }) {}

Server::~Server() {
  static_cast<void>(::eventfd_write(stop_.get(), 1));
  thread_.join();
  end_run_of(std::move(kept_));
}

void Server::accept_all() noexcept {
  ipc::accept_connections(
      listener_, stop_.get(), [this] { reap(/*all=*/false); },
      [this](ipc::FileDescriptor socket) { accept_one(std::move(socket)); });
  reap(/*all=*/true);
}

void Server::accept_one(ipc::FileDescriptor socket) {
  if (!why_failed().empty()) return ipc::close_foreign(std::move(socket));  // this process is about to end
  const auto peer = ipc::peer_of(socket.get());
  const auto refuse = [&](const Error& why) {
    static_cast<void>(ipc::send_message(socket.get(), bytes_of(refusal(why)), {}, std::chrono::milliseconds{0}));
    ipc::close_foreign(std::move(socket));
  };
  if (!peer || !ipc::is_allowed(*peer, settings_.users, settings_.groups)) {
    log_warning("process {} of user {} may not use the function", peer ? peer->pid : 0, peer ? peer->uid : 0);
    return refuse({{},
                   "this user may not use it",
                   fmt::format("user {}", peer ? peer->uid : 0),
                   "one of those that `penstock function serve` allows (--allow-user, --allow-group)"});
  }
  if (connections_.size() >= kMostConnections) {
    log_warning("process {} of user {} is refused: there are {} connections", peer->pid, peer->uid,
                connections_.size());
    return refuse({{},
                   "too many connections",
                   std::to_string(connections_.size()),
                   fmt::format("fewer than {}", kMostConnections)});
  }
  Connection& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  connection.peer = *peer;
  try {
    connection.thread = std::thread([this, &connection] { serve(connection); });
  } catch (const std::system_error&) {
    connections_.pop_back();
    throw;
  }
}

void Server::reap(bool all) noexcept {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    if (!all && !connection->ended.load()) {
      ++connection;
      continue;
    }
    static_cast<void>(::shutdown(connection->socket.get(), SHUT_RDWR));
    connection->thread.join();
    ipc::close_foreign(std::move(connection->socket));
    connection = connections_.erase(connection);
  }
}

void Server::serve(Connection& connection) noexcept {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "chain"));
  const ipc::Peer peer = connection.peer;
  std::string why;
  try {
    why = converse(connection.socket.get(), peer);
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!why.empty()) log_warning("process {} of user {} loses the function: {}", peer.pid, peer.uid, printable(why));
  static_cast<void>(::shutdown(connection.socket.get(), SHUT_RDWR));
  connection.ended.store(true);
}

std::string Server::converse(int socket, const ipc::Peer& peer) {
  const auto answer = [&](const Description& description) {
    return ipc::send_message(socket, bytes_of(description), {}, kLongestAnswer) == 0;
  };
  const auto refuse = [&](const Errors& errors) {
    static_cast<void>(answer(refusal(errors.front())));
    return to_string(errors);
  };
  const auto received = ipc::receive_message(socket, kMostMessageBytes, kLongestHello);
  const auto hello = received ? message_of<Hello>(received->bytes) : std::nullopt;
  if (!hello || hello->type != MessageType::hello) return "it does not begin with a hello";
  if (hello->version != kProtocolVersion)
    return refuse({{{}, "another version of the protocol", std::to_string(hello->version), "the same program"}});
  const auto surroundings = surroundings_of(*hello);
  if (!surroundings) return refuse(surroundings.error());
  auto function = make(hello->function.view(), *surroundings);
  if (!function) return refuse(function.error());
  const auto stage = stage_of(**function);
  const auto description = description_of(**function, stage ? &*stage : nullptr);
  if (!description) return refuse(description.error());
  Session session(
      socket, std::move(*function), surroundings->ports.size(), stage ? settings_.granter : nullptr,
      [this](std::string_view reason) { fail(reason); }, [this](Session::Function ended) { keep(std::move(ended)); });
  if (const auto begun = session.begin(); !begun) return refuse(begun.error());
  if (!answer(*description)) return "it does not take the answer";
  log_info("process {} of user {} begins", peer.pid, peer.uid);
  std::string why = session.serve();
  log_info("process {} of user {} has ended: {}", peer.pid, peer.uid, format_count(session.packets(), "packet"));
  return why;
}

/// Of a stage in a proxy. Empty: there is none.
std::optional<function::StageNeeds> Server::stage_of(const function::NetworkFunction& function) const {
  constexpr auto kGpu = function::Processor::gpu;
  if (settings_.granter == nullptr || function.traits().access_on(kGpu) == nullptr) return std::nullopt;
  std::string why = "it cannot be made by another process";
  if (const auto recipe = function.stage_recipe(kGpu)) {
    auto needs = settings_.granter->needs_of(*recipe);
    if (needs) why = why_no_stage(function.traits(), *needs, function::confirmed_findings(function).has_value());
    // Who has the lanes could make up states of functions that do not expect that. Connections are its own, and the
    // process checks the states with which it confirms findings.
    const bool are_checked = function.traits().connections || function::confirmed_findings(function) ||
                             dynamic_cast<const function::DecidingFunction*>(&function) != nullptr;
    if (why.empty() && needs->state_bytes > 0 && !are_checked)
      why = "its stage needs states that cannot be protected on their way";
    if (why.empty()) return needs;
  }
  log_info("{} stays on the CPU: {}", function.traits().name, why);
  return std::nullopt;
}

/// The run of one goes on at least until that of the next one has begun.
void Server::keep(std::unique_ptr<function::NetworkFunction> function) noexcept {
  if (dynamic_cast<const function::LastingFunction*>(function.get()) != nullptr) {
    const std::lock_guard lock(keeping_);
    kept_.swap(function);
  }
  end_run_of(std::move(function));
}

void Server::fail(std::string_view why) {
  const std::lock_guard lock(failing_);
  if (failure_.empty()) failure_ = why;
}

std::string Server::why_failed() const {
  const std::lock_guard lock(failing_);
  return failure_;
}

Result<std::unique_ptr<function::NetworkFunction>> Server::make(std::string_view name,
                                                                const Surroundings& surroundings) {
  const std::lock_guard lock(making_);
  auto function = make_(name, surroundings);
  if (!function) return function;
  if (settings_.granter != nullptr) {
    if (auto* const deciding = dynamic_cast<function::DecidingFunction*>(function->get()))
      deciding->decide_for_others();
  }
  if (std::string reason = why_not_served(**function); !reason.empty())
    return failure(Error{{},
                         fmt::format("{} cannot be in a process of its own", (*function)->traits().name),
                         std::move(reason),
                         "a function of the chain's own process"});
  if ((*function)->traits().connections) dynamic_cast<function::ConnectionReader&>(**function).read_connections();
  return function;
}

}  // namespace penstock::process
