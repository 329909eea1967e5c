// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/fit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>

namespace penstock::plan {

namespace {

class Fit {
 public:
  explicit Fit(std::string_view function) : function_(function) {}

  /// `stage`: for example "its stage for gpu "; empty for the CPU twin.
  void within(std::string_view stage, const Access& planned, const Access& next) {
    const auto compare = [&](std::string_view verb, FieldSet known, FieldSet wanted) {
      if (const FieldSet more = wanted - known; !more.empty())
        needs_new_run(fmt::format("{}{} {}, for which the running chain is not planned", stage, verb, to_string(more)));
    };
    compare("reads", planned.reads, next.reads);
    compare("writes", planned.writes, next.writes);
  }

  void same(std::string_view what, bool planned, bool next) {
    if (planned == next) return;
    needs_new_run(next ? fmt::format("{}, for which the running chain is not planned", what)
                       : fmt::format("no longer {}, but the running chain is planned for it", what));
  }

  void same_number(std::string_view what, std::uint64_t planned, std::uint64_t next) {
    if (planned == next) return;
    needs_new_run(fmt::format("the running chain is planned for another number of {}", what), std::to_string(next),
                  std::to_string(planned));
  }

  void at_most(std::string_view what, std::uint64_t planned, std::uint64_t next) {
    if (next <= planned) return;
    needs_new_run(fmt::format("adds more bytes at the {} of a frame than the running chain is planned for", what),
                  std::to_string(next), fmt::format("at most {}", planned));
  }

  void needs_new_run(std::string_view why, std::string found = "", std::string expected = "") {
    errors_.push_back(
        {{}, fmt::format("{}: {}: it needs a new run", function_, why), std::move(found), std::move(expected)});
  }

  [[nodiscard]] Errors take() && { return std::move(errors_); }

 private:
  std::string_view function_;
  Errors errors_;
};

std::string_view name_of(stack::StackNeed need) {
  switch (need) {
    case stack::StackNeed::none: return "none";
    case stack::StackNeed::flow: return "flow";
    case stack::StackNeed::ip_reassembly: return "ip_reassembly";
    case stack::StackNeed::tcp_stream: return "tcp_stream";
  }
  return "none";
}

}  // namespace

Errors check_fit(std::string_view function, const function::NfTraits& planned, const function::NfTraits& next,
                 function::Processor processor) {
  Fit fit(function);
  if (next.name != planned.name) {
    // Other differences follow from this one.
    fit.needs_new_run("another kind of function runs here", std::string(next.name), std::string(planned.name));
    return std::move(fit).take();
  }
  if (!std::ranges::equal(next.drop_reasons, planned.drop_reasons)) {
    fit.needs_new_run("its drop reasons differ, and the running chain counts by them",
                      fmt::format("{}", fmt::join(next.drop_reasons, ", ")),
                      fmt::format("{}", fmt::join(planned.drop_reasons, ", ")));
  }
  if (next.stack != planned.stack) {
    fit.needs_new_run("it needs another part of the chain's stack", std::string(name_of(next.stack)),
                      std::string(name_of(planned.stack)));
  }
  fit.same("makes packets", planned.emits, next.emits);
  fit.same("replaces frames", planned.replaces_frames, next.replaces_frames);
  fit.same("chooses the output port", planned.chooses_port, next.chooses_port);
  fit.at_most("head", planned.growth.head, next.growth.head);
  fit.at_most("tail", planned.growth.tail, next.growth.tail);
  fit.within("", planned.cpu, next.cpu);
  if (!is_device(processor) || planned.access_on(processor) == nullptr) return std::move(fit).take();

  const std::string_view device = name(processor);
  const Access* const access = next.access_on(processor);
  fit.same(fmt::format("has a stage for {}", device), true, access != nullptr);
  if (access != nullptr) fit.within(fmt::format("its stage for {} ", device), *planned.access_on(processor), *access);
  fit.same("has a finish stage", planned.finish.has_value(), next.finish.has_value());
  if (planned.finish && next.finish) fit.within("its finish stage ", *planned.finish, *next.finish);
  fit.same("has a finish stage that may run once packets have left", planned.finish_waits, next.finish_waits);
  fit.same_number("bytes of findings per packet", planned.findings_bytes, next.findings_bytes);
  fit.same_number("bytes of state per packet", planned.state_bytes, next.state_bytes);
  return std::move(fit).take();
}

}  // namespace penstock::plan
