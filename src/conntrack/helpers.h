// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a table remembers for the helper of FTP: for each connection that has it, where lines begin and how sequence
// numbers are shifted; and the data connections that are expected. Memory for the former is touched only if it is used.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/huge_page_allocator.h"
#include "conntrack/expectations.h"
#include "conntrack/line_starts.h"
#include "conntrack/options.h"
#include "conntrack/sequence_shift.h"
#include "conntrack/shared_tuples.h"

namespace penstock::conntrack {

/// What became of a packet that passes, whose connection has a helper.
enum class Helped : std::uint8_t {
  passes,
  incomplete,  // it announces a data connection, but not in this packet alone, or not in the right form
  no_room,     // there are too many expectations, or another connection has the same one
  too_long,    // it cannot be made as long as it would have to be
};
// Linux drops all packets that do not pass. After Helped::incomplete, hosts send a command again, then in one piece.

/// Of one connection.
struct HelperState {
  std::array<LineStarts, 2> lines;  // by Direction
  SequenceShifts shifts;
  std::uint32_t expectation = Expectations::kNone;  // index
};

class Helpers {
 public:
  Helpers(const Options& options, std::uint64_t seed)
      : ftp_(options.ftp),
        states_(make_huge_memory<HelperState>(ftp_.offered ? std::max<std::uint32_t>(options.most_connections, 1) : 1)),
        expectations_(ftp_.offered ? options.most_expectations : 0, seed) {}

  /// Borrows it; null: the table is not shared.
  void share(SharedTuples* shared) noexcept { shared_ = shared; }
  [[nodiscard]] bool offered() const noexcept { return ftp_.offered; }
  [[nodiscard]] bool has_port(std::uint16_t port) const noexcept {
    for (const std::uint16_t of_server : ftp_.ports) {
      if (of_server == port && port != 0) return true;
    }
    return false;
  }
  /// Of a connection that has a helper, by its index in the store.
  [[nodiscard]] HelperState& of(std::uint32_t connection) const noexcept { return states_[connection]; }
  /// A connection gets a helper.
  void begin(std::uint32_t connection) const noexcept { states_[connection] = HelperState(); }

  [[nodiscard]] const Expectations& expectations() const noexcept { return expectations_; }
  /// As Expectations::add. The master has none.
  void expect(const Expectation& what, std::uint64_t now_ns) noexcept {
    states_[what.master].expectation = expectations_.add(what, now_ns);
  }
  void remove(std::uint32_t expectation) noexcept {
    const Expectation& what = expectations_.at(expectation);
    states_[what.master].expectation = Expectations::kNone;
    if (shared_ != nullptr) shared_->leave_expected(what.place);
    expectations_.remove(expectation);
  }
  /// What this connection has announced does not count any more.
  void forget_expectation_of(std::uint32_t connection) noexcept {
    if (const std::uint32_t its = states_[connection].expectation; its != Expectations::kNone) remove(its);
  }

 private:
  const FtpHelper ftp_;
  HugeMemory<HelperState> states_;  // by connection
  Expectations expectations_;
  SharedTuples* shared_ = nullptr;
};

}  // namespace penstock::conntrack
