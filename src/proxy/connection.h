// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A tenant's connection to the proxy, shared by its workers. Thread-safe.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "function/granted_stage.h"
#include "function/stage_recipe.h"
#include "proxy/protocol.h"
#include "proxy/shared_mapping.h"
#include "run/lane_factory.h"

namespace penstock::proxy {

/// What a tenant asks for.
struct TenantWish {
  std::string name;
  std::string profile{};               // "": the proxy's default
  std::chrono::nanoseconds latency{};  // bound from the order of a batch to its results; 0: none
  run::RemoteLimits limits{};
};

class Connection {
 public:
  /// Checking and loading large tables takes seconds.
  static constexpr std::chrono::seconds kLongestReply{60};

  /// Connects to the proxy at `path`, and becomes its tenant. An error says why the proxy does not take the tenant.
  [[nodiscard]] static Result<std::shared_ptr<Connection>> open(const std::string& path, const TenantWish& wish);
  /// The same, if the proxy answers in time.
  [[nodiscard]] static tl::expected<std::shared_ptr<Connection>, run::NotConnected> open(
      const std::string& path, const TenantWish& wish, std::chrono::milliseconds longest);
  /// Without a proxy: it is lost.
  [[nodiscard]] static std::shared_ptr<Connection> none(const std::string& path);
  /// The two steps of `open`. The first one does not wait, and the second one ends early by `end`.
  [[nodiscard]] static Result<std::shared_ptr<Connection>> connect(const std::string& path);
  [[nodiscard]] tl::expected<void, run::NotConnected> introduce(const TenantWish& wish,
                                                                std::chrono::milliseconds longest = kLongestReply);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// The proxy's: "GPU 0 (NVIDIA H200)".
  [[nodiscard]] const std::string& device() const noexcept { return device_; }
  /// Whether the proxy has gone, or does not serve this tenant any more. Cheap: asks the system now and then.
  [[nodiscard]] bool is_lost() noexcept;
  /// Grows as long as the proxy goes on (Pulse).
  [[nodiscard]] std::uint32_t beats() const noexcept {
    return reinterpret_cast<const Pulse*>(pulse_.at(0))->beats.load(std::memory_order_relaxed);
  }
  /// Why it is lost.
  enum class Loss : std::uint8_t {
    gone,            // the proxy has gone, or does not serve this tenant any more; or nobody needs it
    hangs,           // the proxy's pulse has stood still
    no_answer,       // the proxy has not taken a message, or not answered it, in time
    tables_gone,     // tables of another tenant, of which stages are made
    cannot_exchange  // the proxy does not take new tables in the place of former ones
  };
  /// It is lost from now on. Whoever waits for a reply gets none. The first reason counts.
  void end(Loss why = Loss::gone) noexcept;
  /// Once it is lost.
  [[nodiscard]] Loss loss() const noexcept { return loss_.load(); }

  struct Made {
    std::uint32_t id = 0;
    function::GrantToken token{};  // of a grant
    std::vector<FileDescriptor> descriptors;
  };
  /// Sends a request and waits for the reply. Throws gpu::CudaError if it fails.
  template <typename Message>
  Made request(const Message& message, std::span<const int> descriptors = {}) {
    return request_bytes(bytes_of(message), descriptors);
  }
  /// Sends what has no reply.
  void release(MessageType type, std::uint32_t id) noexcept;

 private:
  Connection(std::string path, FileDescriptor socket) : path_(std::move(path)), socket_(std::move(socket)) {}
  Made request_bytes(std::span<const std::byte> message, std::span<const int> descriptors);
  [[nodiscard]] std::optional<Received> exchange(std::span<const std::byte> message, std::span<const int> descriptors,
                                                 std::chrono::milliseconds longest);

  const std::string path_;
  const FileDescriptor socket_;
  std::string device_;
  SharedMapping pulse_;
  std::mutex mutex_;  // held from a request to its reply
  std::atomic<bool> lost_{false};
  std::atomic<Loss> loss_{Loss::gone};
  std::atomic<std::int64_t> looked_at_{0};  // ns of a steady clock
};

/// Who accesses memory that the proxy has open: descriptors need no device, which takes long to open it.
enum class MemoryUser : bool { proxy_only, device };

/// Memory that the proxy has open.
class RemoteMemory {
 public:
  /// `memory` must be shared memory (base/shared_memory.h). Throws gpu::CudaError.
  RemoteMemory(std::shared_ptr<Connection> connection, std::span<std::uint8_t> memory,
               MemoryUser user = MemoryUser::device);
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  ~RemoteMemory() { connection_->release(MessageType::close_memory, id_); }

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] bool is(std::span<const std::uint8_t> memory, MemoryUser user) const noexcept {
    return memory.data() == memory_.data() && memory.size() == memory_.size() && user == user_;
  }
  /// The offset in the proxy's mapping. Empty: it is elsewhere.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const void* memory) const noexcept;

 private:
  std::shared_ptr<Connection> connection_;
  std::span<std::uint8_t> memory_;
  MemoryUser user_;
  std::uint64_t offset_ = 0;
  std::uint32_t id_ = 0;
};

/// Tables that the proxy has on the device.
class RemoteTables {
 public:
  /// Loads them. Throws gpu::CudaError.
  RemoteTables(std::shared_ptr<Connection> connection, const function::StageRecipe& recipe)
      : connection_(std::move(connection)), id_(send(recipe, 0)) {}
  /// Those that another tenant has granted. Throws gpu::CudaError, also if their stages need more than `known`.
  RemoteTables(std::shared_ptr<Connection> connection, const function::GrantToken& token,
               const function::StageNeeds& known);
  RemoteTables(const RemoteTables&) = delete;
  RemoteTables& operator=(const RemoteTables&) = delete;
  ~RemoteTables() { connection_->release(MessageType::unload_tables, id_); }

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  /// Of function::grant_number; 0: they are not granted by another tenant.
  [[nodiscard]] std::uint64_t grant() const noexcept { return grant_; }
  /// Exchanges them for those of another recipe of the same kernel: batches that begin after it returns use those.
  /// Throws gpu::CudaError; the former ones are then still in use.
  void replace(const function::StageRecipe& recipe) { static_cast<void>(send(recipe, id_)); }

 private:
  /// `replaces`: the id of those in whose place they come; 0: none. Returns their id.
  [[nodiscard]] std::uint32_t send(const function::StageRecipe& recipe, std::uint32_t replaces) const;
  [[nodiscard]] std::uint32_t use_grant(const function::GrantToken& token, const function::StageNeeds& known) const;

  const std::shared_ptr<Connection> connection_;
  const std::uint64_t grant_ = 0;
  const std::uint32_t id_;
};

/// A stage in the proxy.
class RemoteStage final : public DeviceStage {
 public:
  /// `granted`: of the function, if another process has granted the tables; outlives the stage. Throws gpu::CudaError.
  RemoteStage(std::shared_ptr<Connection> connection, std::shared_ptr<const RemoteTables> tables, const StageUse& use,
              const function::GrantedStage* granted = nullptr);
  RemoteStage(const RemoteStage&) = delete;
  RemoteStage& operator=(const RemoteStage&) = delete;
  ~RemoteStage() override { connection_->release(MessageType::drop_stage, id_); }

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] const function::GrantedStage* granted() const noexcept { return granted_; }
  [[nodiscard]] std::uint64_t grant() const noexcept { return tables_->grant(); }

 private:
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<const RemoteTables> tables_;
  const function::GrantedStage* granted_;
  std::uint32_t id_ = 0;
};

}  // namespace penstock::proxy
