// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/table_grants.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/system_random.h"

namespace penstock::proxy {

namespace {

function::GrantToken random_token() {
  const auto token = random_value<function::GrantToken>();
  if (!token) throw std::system_error(errno, std::system_category(), "no random numbers for a token");
  return *token;
}

bool are_same(const function::GrantToken& one, const function::GrantToken& other) noexcept {
  unsigned differences = 0;
  for (std::size_t i = 0; i < one.size(); ++i) differences |= static_cast<unsigned>(one[i] ^ other[i]);
  return differences == 0;
}

}  // namespace

std::shared_ptr<function::LoadedTables> TableGrant::tables() const {
  const std::lock_guard lock(mutex_);
  return tables_;
}

void TableGrant::end() noexcept {
  ended_.store(true);
  std::shared_ptr<function::LoadedTables> ended;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  ended.swap(tables_);
}

std::shared_ptr<TableGrant> TableGrants::add(std::shared_ptr<function::LoadedTables> tables,
                                             const function::StageNeeds& needs) {
  auto grant = std::make_shared<TableGrant>(random_token(), std::move(tables), needs);
  const std::lock_guard lock(mutex_);
  grants_.push_back(grant);
  return grant;
}

std::shared_ptr<TableGrant> TableGrants::find(const function::GrantToken& token) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<TableGrant> found;
  for (const std::shared_ptr<TableGrant>& grant : grants_) {
    if (are_same(grant->token(), token)) found = grant;
  }
  return found;
}

void TableGrants::end(TableGrant& grant) noexcept {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(grants_, [&](const auto& entry) { return entry.get() == &grant; });
  }
  grant.end();
}

void TableCount::add() noexcept {
  const std::lock_guard lock(mutex_);
  ++count_;
}

void TableCount::remove() noexcept {
  const std::lock_guard lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

void TableCount::wait_for_none() noexcept {
  std::unique_lock lock(mutex_);
  none_.wait(lock, [this] { return count_ == 0; });
}

const char* beyond(const function::StageNeeds& needs, const function::StageNeeds& known) noexcept {
  if (!(needs.access.reads - known.access.reads).empty()) return "read other fields";
  if (!(needs.access.writes - known.access.writes).empty()) return "write other fields";
  if (needs.findings_bytes > known.findings_bytes) return "have more findings";
  if (needs.state_bytes > known.state_bytes) return "need more state";
  if (needs.growth.head > known.growth.head || needs.growth.tail > known.growth.tail) return "need more room in frames";
  if (needs.chooses_port && !known.chooses_port) return "choose where packets leave";
  return nullptr;
}

}  // namespace penstock::proxy
