// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/opener.h"

#include <unistd.h>

#include <utility>

namespace penstock::run {

std::optional<port::CapabilityNeeds> capability_needs(const Chain& chain) {
  std::optional<port::CapabilityNeeds> all;
  for (const NamedPort& named : chain.ports) {
    const auto needs = named.port->capabilities();
    if (!needs) continue;
    if (!all) all.emplace();
    all->to_open.insert(all->to_open.end(), needs->to_open.begin(), needs->to_open.end());
    all->to_run.insert(all->to_run.end(), needs->to_run.begin(), needs->to_run.end());
  }
  // Root's access to files of other users stays: its outputs may belong to them.
  if (all && ::geteuid() == 0) {
    all->to_open.push_back(Capability::dac_override);
    all->to_run.push_back(Capability::dac_override);
  }
  return all;
}

Opener::Opener(std::optional<std::vector<Capability>> keeps)
    : thread_([this, keeps = std::move(keeps)] {
        // If this fails, so it does for the run, which warns.
        if (keeps) static_cast<void>(keep_only(*keeps));
        work();
      }) {}

Opener::~Opener() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::future<Result<void>> Opener::run(Task task) {
  std::packaged_task<Result<void>()> packaged(std::move(task));
  auto result = packaged.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push(std::move(packaged));
  }
  changed_.notify_one();
  return result;
}

void Opener::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace penstock::run
