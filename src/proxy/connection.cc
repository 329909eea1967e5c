// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/shared_memory.h"
#include "gpu/cuda_error.h"
#include "proxy/problem.h"

namespace penstock::proxy {

namespace {

constexpr std::chrono::seconds kLongestRelease{5};
constexpr std::chrono::milliseconds kLookInterval{1};

std::optional<Reply> reply_of(const Received& received) {
  if (received.bytes.size() != sizeof(Reply)) return std::nullopt;
  Reply reply;
  std::memcpy(static_cast<void*>(&reply), received.bytes.data(), sizeof reply);
  return reply;
}

/// What a message has room for: the end of a longer name, since paths differ there.
std::string shortened(std::string_view name, std::size_t most) {
  constexpr std::string_view kCut = "…";
  if (name.size() <= most) return std::string(name);
  std::size_t at = name.size() - (most - kCut.size());
  while (at < name.size() && (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80) ++at;  // within a character
  return std::string(kCut).append(name.substr(at));
}

bool write_part(int file, std::uint64_t at, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<Connection>> Connection::open(const std::string& path, const TenantWish& wish) {
  auto connection = open(path, wish, kLongestReply);
  if (!connection) return failure(std::move(connection.error().errors));
  return std::move(*connection);
}

tl::expected<std::shared_ptr<Connection>, run::NotConnected> Connection::open(const std::string& path,
                                                                              const TenantWish& wish,
                                                                              std::chrono::milliseconds longest) {
  auto socket = ipc::connect_to(path, kService);
  if (!socket) return tl::unexpected(run::NotConnected{std::move(socket.error())});
  std::shared_ptr<Connection> connection(new Connection(path, std::move(*socket)));
  if (auto known = connection->introduce(wish, longest); !known) return tl::unexpected(std::move(known.error()));
  return connection;
}

Result<std::shared_ptr<Connection>> Connection::connect(const std::string& path) {
  auto socket = ipc::connect_to(path, kService, ipc::Waits::no);
  if (!socket) return failure(std::move(socket.error()));
  return std::shared_ptr<Connection>(new Connection(path, std::move(*socket)));
}

std::shared_ptr<Connection> Connection::none(const std::string& path) {
  std::shared_ptr<Connection> connection(new Connection(path, FileDescriptor()));
  connection->lost_.store(true);
  return connection;
}

tl::expected<void, run::NotConnected> Connection::introduce(const TenantWish& wish, std::chrono::milliseconds longest) {
  Hello hello;
  hello.name = Text<64>(shortened(wish.name, sizeof hello.name));
  hello.profile = Text<8>(wish.profile);
  hello.latency_us = static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::microseconds>(wish.latency).count());
  hello.memory = wish.limits.memory;
  hello.bytes_per_second = wish.limits.bytes_per_second;
  hello.batches = wish.limits.batches;
  const auto answer = exchange(bytes_of(hello), {}, longest);
  if (!answer) {
    const int error = errno;
    return tl::unexpected(run::NotConnected{{no_answer(path_, error)}, false, loss_.load() == Loss::no_answer});
  }
  const auto reply = reply_of(*answer);
  if (!reply)
    return tl::unexpected(run::NotConnected{
        {Error{{path_, 0, 0}, "the proxy is of another release", "an unknown answer", "the same release"}}, true});
  if (reply->failed != 0)
    return tl::unexpected(run::NotConnected{{error_of(path_, *reply)}, reply->failed == Reply::kOtherVersion});
  if (answer->descriptors.size() != 1)
    return tl::unexpected(
        run::NotConnected{{Error{{path_, 0, 0}, "this is no proxy", "an answer without its pulse", ""}}});
  try {
    pulse_ = SharedMapping(answer->descriptors.front().get(), sizeof(Pulse), /*writes=*/false);
  } catch (const gpu::CudaError& error) {
    return tl::unexpected(run::NotConnected{{Error{{path_, 0, 0}, error.what(), "", ""}}});
  }
  device_ = reply->message.view();
  return {};
}

std::optional<Received> Connection::exchange(std::span<const std::byte> message, std::span<const int> descriptors,
                                             std::chrono::milliseconds longest) {
  const std::lock_guard lock(mutex_);
  if (lost_.load()) return errno = EPIPE, std::nullopt;
  auto answer = ipc::exchange(socket_.get(), message, descriptors, sizeof(Reply), longest);
  if (!answer) {
    const int error = errno;
    end(error == ETIMEDOUT ? Loss::no_answer : Loss::gone);  // replies would not match requests any more
    errno = error;
  }
  return answer;
}

void Connection::end(Loss why) noexcept {
  Loss none = Loss::gone;
  if (!lost_.load()) loss_.compare_exchange_strong(none, why);
  lost_.store(true);
  ::shutdown(socket_.get(), SHUT_RDWR);  // so that the proxy notices it too
}

Connection::Made Connection::request_bytes(std::span<const std::byte> message, std::span<const int> descriptors) {
  auto answer = exchange(message, descriptors, kLongestReply);
  const auto reply = answer ? reply_of(*answer) : std::nullopt;
  if (!reply) {
    throw gpu::CudaError(
        0, fmt::format("{}: the proxy has gone, or does not answer: {}", path_, std::system_category().message(errno)));
  }
  if (reply->failed != 0) throw gpu::CudaError(0, to_string(error_of(path_, *reply)));
  return {reply->id, reply->token, std::move(answer->descriptors)};
}

void Connection::release(MessageType type, std::uint32_t id) noexcept {
  Release message;
  message.type = type;
  message.id = id;
  // Whole messages are sent, so that another thread may be waiting for a reply meanwhile, from a proxy that hangs.
  if (lost_.load()) return;
  if (const int error = send_message(socket_.get(), bytes_of(message), {}, kLongestRelease); error != 0)
    end(error == ETIMEDOUT ? Loss::no_answer : Loss::gone);
}

bool Connection::is_lost() noexcept {
  if (lost_.load(std::memory_order_relaxed)) return true;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::chrono::nanoseconds looked(looked_at_.load(std::memory_order_relaxed));
  if (now - looked < kLookInterval) return false;
  looked_at_.store(std::chrono::nanoseconds(now).count(), std::memory_order_relaxed);
  if (has_gone(socket_.get())) lost_.store(true);
  return lost_.load();
}

RemoteMemory::RemoteMemory(std::shared_ptr<Connection> connection, std::span<std::uint8_t> memory, MemoryUser user)
    : connection_(std::move(connection)), memory_(memory), user_(user) {
  const auto part = shared_part_of(memory);
  if (!part) throw gpu::CudaError(0, "this memory cannot be mapped by the proxy");
  offset_ = part->offset;
  OpenMemory request;
  request.bytes = part->file_bytes;
  request.host_only = user == MemoryUser::device ? 0 : 1;
  id_ = connection_->request(request, std::span(&part->file, 1)).id;
}

std::optional<std::uint64_t> RemoteMemory::offset_of(const void* memory) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.data());
  if (at < first || at >= first + memory_.size()) return std::nullopt;  // other memory may follow
  return offset_ + (at - first);
}

std::uint32_t RemoteTables::send(const function::StageRecipe& recipe, std::uint32_t replaces) const {
  LoadTables request;
  request.replaces = replaces;
  request.kernel = Text<32>(recipe.kernel);
  request.argument_bytes = static_cast<std::uint32_t>(recipe.arguments.size());
  request.tables = static_cast<std::uint32_t>(recipe.tables.size());
  if (recipe.tables.size() > kMostTables)
    throw gpu::CudaError(0,
                         fmt::format("{} has {} tables: more than a proxy takes", recipe.kernel, recipe.tables.size()));
  std::uint64_t bytes = recipe.arguments.size();
  for (std::size_t t = 0; t < recipe.tables.size(); ++t) {
    request.table_bytes[t] = recipe.tables[t]->size();
    bytes += recipe.tables[t]->size();
  }
  const FileDescriptor file(make_shared_file("penstock-tables", bytes));
  bool written = file && write_part(file.get(), 0, recipe.arguments);
  std::uint64_t at = recipe.arguments.size();
  for (const function::TableBytes& table : recipe.tables) {
    written = written && write_part(file.get(), at, *table);
    at += table->size();
  }
  if (!written) throw gpu::CudaError(0, "no shared memory for tables: " + std::system_category().message(errno));
  const int descriptor = file.get();
  return connection_->request(request, std::span(&descriptor, 1)).id;
}

RemoteTables::RemoteTables(std::shared_ptr<Connection> connection, const function::GrantToken& token,
                           const function::StageNeeds& known)
    : connection_(std::move(connection)), grant_(function::grant_number(token)), id_(use_grant(token, known)) {}

std::uint32_t RemoteTables::use_grant(const function::GrantToken& token, const function::StageNeeds& known) const {
  UseGrant request;
  request.token = token;
  request.known = function::to_message(known);
  return connection_->request(request).id;
}

RemoteStage::RemoteStage(std::shared_ptr<Connection> connection, std::shared_ptr<const RemoteTables> tables,
                         const StageUse& use, const function::GrantedStage* granted)
    : connection_(std::move(connection)), tables_(std::move(tables)), granted_(granted) {
  MakeStage request;
  request.tables = tables_->id();
  request.worker = use.worker;
  request.batch_packets = use.batch_packets;
  request.multiprocessors = use.multiprocessors;
  id_ = connection_->request(request).id;
}

}  // namespace penstock::proxy
