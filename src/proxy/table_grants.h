// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables of a tenant of which other tenants make stages. They count for the tenant that has loaded them, and end with
// it or when it unloads them. Stages of others then end as soon as no batch uses them, so that the tenant's memory is
// free when it has ended. Thread-safe.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "function/granted_stage.h"
#include "function/stage_recipe.h"

namespace penstock::proxy {

class TableGrant {
 public:
  TableGrant(const function::GrantToken& token, std::shared_ptr<function::LoadedTables> tables,
             const function::StageNeeds& needs)
      : token_(token), needs_(needs), tables_(std::move(tables)) {}
  TableGrant(const TableGrant&) = delete;
  TableGrant& operator=(const TableGrant&) = delete;

  [[nodiscard]] const function::GrantToken& token() const noexcept { return token_; }
  [[nodiscard]] const function::StageNeeds& needs() const noexcept { return needs_; }
  /// Null: it has ended. Whoever makes a stage asks `has_ended` again once the stage can be found.
  [[nodiscard]] std::shared_ptr<function::LoadedTables> tables() const;
  [[nodiscard]] bool has_ended() const noexcept { return ended_.load(); }
  void end() noexcept;

 private:
  const function::GrantToken token_;
  const function::StageNeeds needs_;
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;  // guards `tables_`
  std::shared_ptr<function::LoadedTables> tables_;
};

/// All that there are.
class TableGrants {
 public:
  /// Throws std::system_error if the system has no random numbers.
  [[nodiscard]] std::shared_ptr<TableGrant> add(std::shared_ptr<function::LoadedTables> tables,
                                                const function::StageNeeds& needs);
  /// Null: there is none. Takes as long for a token that differs in the last byte as for one that differs in the first.
  [[nodiscard]] std::shared_ptr<TableGrant> find(const function::GrantToken& token) const;
  /// It is not found any more, and has ended.
  void end(TableGrant& grant) noexcept;

 private:
  mutable std::mutex mutex_;  // guards `grants_`
  std::vector<std::shared_ptr<TableGrant>> grants_;
};

/// How many tables of a tenant are on the device, those in stages of others included.
class TableCount {
 public:
  void add() noexcept;
  void remove() noexcept;
  void wait_for_none() noexcept;

 private:
  std::mutex mutex_;  // guards `count_`
  std::condition_variable none_;
  std::size_t count_ = 0;
};

/// Null: stages with these needs do no more than `known`; else what they do.
[[nodiscard]] const char* beyond(const function::StageNeeds& needs, const function::StageNeeds& known) noexcept;

}  // namespace penstock::proxy
