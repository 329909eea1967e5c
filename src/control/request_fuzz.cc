// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as a request. What is accepted is read again as the same request; every answer is one line of JSON.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/testing/fuzz_check.h"
#include "control/request.h"

using namespace penstock;
using penstock::testing::check;

namespace {

void check_line(const std::string& text) {
  check(text.find('\n') == text.size() - 1);
  check(!control::Json::parse(text, nullptr, false).is_discarded());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request = control::read_request({reinterpret_cast<const char*>(data), size});
  if (!request) {
    check(!request.error().error.message.empty());
    check_line(control::failure_text(request.error().id, control::Failure::request, {request.error().error}));
    return 0;
  }
  const std::string text = control::request_text(*request);
  check_line(text);
  check_line(control::result_text(request->id, control::Json::object()));
  const auto again = control::read_request(text);
  check(again && again->id == request->id && again->command == request->command &&
        again->arguments == request->arguments);
  return 0;
}
