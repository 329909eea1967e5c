// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane that the proxy runs for a tenant. Belongs to one thread, apart from its making.

#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "base/error.h"
#include "port/live/file_descriptor.h"
#include "proxy/lane_pages.h"
#include "proxy/order_check.h"
#include "proxy/tenant_state.h"

namespace penstock::proxy {

/// A file that the proxy has made and mapped.
class SharedFile {
 public:
  /// `sealed`: nobody else can map it for writing. Throws std::system_error.
  SharedFile(std::size_t bytes, bool sealed);
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  [[nodiscard]] std::span<std::uint8_t> part(std::size_t at, std::size_t bytes) const noexcept {
    return bytes == 0 ? std::span<std::uint8_t>() : bytes_.subspan(at, bytes);
  }
  [[nodiscard]] int fd() const noexcept { return file_.get(); }
  /// Nobody uses the contents any more: frees the pages in the end, even if the tenant keeps the file.
  void give_up_contents() noexcept { given_up_ = true; }

 private:
  port::FileDescriptor file_;
  std::span<std::uint8_t> bytes_;
  bool given_up_ = false;
};

class ServedLane {
 public:
  /// Takes the stages with these ids, which are the worker's, segment by segment. An error says which do not fit.
  /// Throws gpu::CudaError, or std::system_error if there is no memory. `bytes`: what it has on the device, as counted
  /// for the tenant.
  [[nodiscard]] static Result<std::unique_ptr<ServedLane>> make(TenantState& tenant, const ring::LaneShape& shape,
                                                                std::uint32_t worker,
                                                                std::span<const std::uint32_t> stages);
  ServedLane(const ServedLane&) = delete;
  ServedLane& operator=(const ServedLane&) = delete;
  /// Waits until the device has done its batch.
  ~ServedLane();

  /// Goes on as far as possible without waiting, except for a batch that the tenant gives up. Whether anything
  /// happened.
  [[nodiscard]] bool poll() noexcept;
  /// Its stages switch to new tables unless a segment runs: between two segments of a batch as well, since the tenant
  /// need not order the second one.
  void pass_boundary() noexcept {
    if (state_ != State::runs && !lacks_stages_) lane_->begin_batch();
  }
  /// Whether there is nothing to do until the tenant orders something.
  [[nodiscard]] bool idle() const noexcept { return state_ == State::idle; }
  /// Tells the tenant that it has to wake the thread.
  void set_sleeping(bool sleeps) noexcept { completion().sleeping.store(sleeps ? 1 : 0); }
  [[nodiscard]] bool has_order() const noexcept { return slot().submitted.load() != last_; }

  /// The tenant has ended the lane. Otherwise, it may still be taking the results of its last batches: if the proxy
  /// ends, or if the tenant has given up the connection.
  void give_up_results() noexcept {
    of_proxy_.give_up_contents();
    of_tenant_.give_up_contents();
  }

  [[nodiscard]] int proxy_file() const noexcept { return of_proxy_.fd(); }
  [[nodiscard]] int tenant_file() const noexcept { return of_tenant_.fd(); }

 private:
  enum class State : std::uint8_t { idle, waits, runs };

  ServedLane(TenantState& tenant, const ring::LaneShape& shape, std::uint32_t worker);
  [[nodiscard]] const char* take_stages(std::span<const std::uint32_t> ids);
  void give_back_taken() noexcept;
  void give_back_stages() noexcept;
  [[nodiscard]] const char* exchange_stages() noexcept;
  [[nodiscard]] bool has_ended_tables() const noexcept;

  [[nodiscard]] OrderSlot& slot() const noexcept { return *reinterpret_cast<OrderSlot*>(of_tenant_.part(0, 1).data()); }
  [[nodiscard]] Completion& completion() const noexcept {
    return *reinterpret_cast<Completion*>(of_proxy_.part(0, 1).data());
  }
  [[nodiscard]] SharedPicture* pictures() const noexcept {
    return reinterpret_cast<SharedPicture*>(of_proxy_.part(layout_.pictures_at, 1).data());
  }
  [[nodiscard]] bool is_cancelled() const noexcept { return slot().cancelled.load(std::memory_order_relaxed) == last_; }

  bool take_order() noexcept;
  bool start() noexcept;
  bool advance() noexcept;
  void fetch() noexcept;
  void refuse(const char* why) noexcept;
  void publish_results() noexcept;
  void publish_pictures() noexcept;
  void give_up() noexcept;
  void choose_timed() noexcept;
  void count_times() noexcept;
  void leave_device(bool done) noexcept;
  void complete(std::uint32_t failed) noexcept;

  TenantState& tenant_;
  const std::uint32_t worker_;
  const ring::LaneShape shape_;
  const LaneLayout layout_;
  SharedFile of_proxy_;
  SharedFile of_tenant_;
  std::vector<std::shared_ptr<void>> openings_;
  OrderCheck check_;
  std::vector<std::uint32_t> stage_ids_;                   // segment by segment
  ring::LaneStages stages_;                                // those that the lane does not have
  std::vector<std::shared_ptr<const TableGrant>> grants_;  // of the lane's stages, as far as they have some
  bool lacks_stages_ = false;                              // those that it had are given back
  std::unique_ptr<ring::Lane> lane_;

  State state_ = State::idle;
  std::uint32_t last_ = 0;  // the number of the last order
  Order order_;
  TenantMemories memories_;        // of the order
  Scheduler::Batch batch_;         // of the order
  Scheduler::Time asked_at_{};     // whether the batch may start
  std::uint64_t asked_after_ = 0;  // changes of the arbiter
  std::uint32_t stages_version_ = 0;
  bool on_device_ = false;
  // Times are taken of one batch in about kTimedInterval. Nobody knows of which, so that no tenant can make it special.
  static constexpr std::uint32_t kTimedInterval = 64;
  std::minstd_rand random_{std::random_device()()};
  std::uint32_t interval_ = 1;     // from the last of these batches to the next
  std::uint32_t until_timed_ = 1;  // what is left of it
  std::uint32_t stands_for_ = 0;   // so many batches does the current one stand for; 0: it takes no times
};

}  // namespace penstock::proxy
