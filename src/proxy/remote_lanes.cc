// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/remote_lanes.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "function/granted_stage.h"
#include "gpu/cuda_error.h"
#include "proxy/loaded_of_run.h"
#include "proxy/remote_lane.h"
#include "proxy/standstill.h"

namespace penstock::proxy {

namespace {

class RemoteFactory final : public run::LaneFactory {
 public:
  explicit RemoteFactory(std::shared_ptr<LoadedOfRun> loaded)
      : connection_(loaded->connection()), loaded_(std::move(loaded)) {}

  std::string device() const override {
    return fmt::format("{} of the proxy at {}", connection_->device(), connection_->path());
  }
  std::string advice() const override {
    return fmt::format("see `penstock proxy status {}`, or use the CPU (`--processor cpu`)", connection_->path());
  }
  void select() const override {
    if (connection_->is_lost()) throw gpu::CudaError(0, connection_->path() + ": the proxy has gone");
  }
  bool is_lost() const noexcept override { return connection_->is_lost(); }
  bool is_remote() const noexcept override { return true; }
  std::unique_ptr<DeviceStage> make_stage(function::NetworkFunction& function, const StageUse& use) const override {
    auto tables = loaded_->tables_of(function);
    if (tables == nullptr) return nullptr;
    return std::make_unique<RemoteStage>(connection_, std::move(tables), use, function::granted_stage_of(function));
  }
  std::shared_ptr<void> open(std::span<std::uint8_t> memory) const override { return open(memory, MemoryUser::device); }
  std::shared_ptr<void> open_descriptors(std::span<std::uint8_t> memory) const override {
    return open(memory, MemoryUser::proxy_only);
  }
  std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages, unsigned worker,
                                        unsigned /*lane*/, ring::Timeline* /*timeline*/) const override {
    return std::make_unique<RemoteLane>(connection_, shape, std::move(stages), worker, memories_, loaded_->memories());
  }

 private:
  std::shared_ptr<void> open(std::span<std::uint8_t> memory, MemoryUser user) const {
    auto opened = loaded_->memories()->open(connection_, memory, user);
    std::erase_if(memories_, [](const auto& entry) { return entry.expired(); });
    memories_.push_back(opened);
    return opened;
  }

  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<LoadedOfRun> loaded_;
  mutable RemoteMemories memories_;  // of the worker, which uses the factory in one thread at a time
};

class RemoteProxy final : public run::RemoteDevice {
 public:
  RemoteProxy(std::string path, TenantWish wish, std::shared_ptr<Connection> connection)
      : path_(std::move(path)), wish_(std::move(wish)), loaded_(std::make_shared<LoadedOfRun>(std::move(connection))) {}

  std::string name() const override { return "the proxy at " + path_; }
  std::unique_ptr<run::LaneFactory> make_factory(unsigned /*worker*/) override {
    return std::make_unique<RemoteFactory>(loaded());
  }
  bool is_lost() noexcept override { return loaded()->connection()->is_lost(); }
  std::string loss() const override {
    switch (loaded()->connection()->loss()) {
      case Connection::Loss::gone: break;
      case Connection::Loss::hangs:
        return fmt::format("{} hangs, or is stopped: it has not gone on for {} s", name(),
                           Standstill::kLongest.count());
      case Connection::Loss::no_answer: return name() + " does not answer";
      case Connection::Loss::tables_gone:
        return fmt::format("tables that another process had granted have gone from {}", name());
      case Connection::Loss::cannot_exchange: return fmt::format("this run has left {}", name());
    }
    return name() + " has gone";
  }
  tl::expected<void, run::NotConnected> connect(std::stop_token stop) override {
    auto connection = Connection::connect(path_);
    if (!connection) return tl::unexpected(run::NotConnected{std::move(connection.error())});
    const std::stop_callback on_stop(stop, [&] { (*connection)->end(); });
    if (auto known = (*connection)->introduce(wish_); !known) return known;
    auto next = std::make_shared<LoadedOfRun>(*connection);
    const std::lock_guard lock(mutex_);
    loaded_.swap(next);
    return {};
  }
  void disconnect() noexcept override { loaded()->connection()->end(); }

 private:
  [[nodiscard]] std::shared_ptr<LoadedOfRun> loaded() const noexcept {
    const std::lock_guard lock(mutex_);
    return loaded_;
  }

  const std::string path_;
  const TenantWish wish_;
  mutable std::mutex mutex_;             // guards `loaded_`
  std::shared_ptr<LoadedOfRun> loaded_;  // of the present connection
};

}  // namespace

Result<std::shared_ptr<run::RemoteDevice>> remote_lanes(const std::string& path, const TenantWish& wish,
                                                        WithoutProxy without) {
  constexpr std::chrono::seconds kPatience{5};  // of a run that can begin without
  const bool can_wait = without == WithoutProxy::fails;
  auto connection = Connection::open(path, wish, can_wait ? Connection::kLongestReply : kPatience);
  if (!connection && !can_wait && (connection.error().silent || ipc::nobody_listens(path)))
    connection = Connection::none(path);
  if (!connection) return failure(std::move(connection.error().errors));
  return std::make_shared<RemoteProxy>(path, wish, std::move(*connection));
}

}  // namespace penstock::proxy
