// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule's regular expression, compiled by PCRE2 for its JIT; and what a worker needs to run them.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "nf/nids/rules/buffer_match.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace penstock::nids {

struct PcreDeleter {
  void operator()(pcre2_real_code_8* code) const noexcept;
  void operator()(pcre2_real_match_data_8* data) const noexcept;
  void operator()(pcre2_real_match_context_8* context) const noexcept;
  void operator()(pcre2_real_jit_stack_8* stack) const noexcept;
};

/// A worker's own.
class PcreScratch {
 public:
  PcreScratch();

 private:
  friend class PcreProgram;
  std::unique_ptr<pcre2_real_match_data_8, PcreDeleter> data_;
  std::unique_ptr<pcre2_real_match_context_8, PcreDeleter> context_;
  std::unique_ptr<pcre2_real_jit_stack_8, PcreDeleter> stack_;
};

/// Immutable, shared by all workers.
class PcreProgram {
 public:
  /// Fails where the expression does not compile; the error's place is left to the caller.
  [[nodiscard]] static Result<PcreProgram> compile(const Pcre& pcre);

  /// `failed`: given up at a limit.
  enum class Outcome : std::uint8_t { match, no_match, failed };
  struct Match {
    Outcome outcome = Outcome::no_match;
    std::size_t begin = 0, end = 0;  // in the subject
  };
  /// The first match that begins at or behind `from`, which may lie behind the subject's end (`failed`).
  [[nodiscard]] Match find(std::span<const std::uint8_t> subject, std::size_t from,
                           PcreScratch& scratch) const noexcept;

 private:
  explicit PcreProgram(pcre2_real_code_8* code) : code_(code) {}
  std::unique_ptr<pcre2_real_code_8, PcreDeleter> code_;
};

}  // namespace penstock::nids
