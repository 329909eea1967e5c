// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/proxy_status.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"
#include "report/text_table.h"

namespace penstock::cli {

namespace {

constexpr const char* kExpected = "what a `penstock proxy serve` of this release answers";

tl::unexpected<Errors> no_answer_of_a_proxy(const std::string& path, const std::string& text) {
  return failure(Error{{path, 0, 0}, "not an answer of a proxy", in_quotes(text), kExpected});
}

/// "500 us, holds"; "" without a bound.
std::string bound_text(const nlohmann::json& tenant) {
  const auto bound = tenant.find("latency_bound_us");
  if (bound == tenant.end()) return "";
  std::string text = format_duration(std::chrono::nanoseconds(std::llround(bound->get<double>() * 1e3)));
  if (tenant.contains("bound_holds")) {
    text += tenant.at("bound_holds").get<bool>() ? ", holds"
            : tenant.at("needed").is_null()
                ? ", impossible"
                : fmt::format(", needs {:.0f} % of the GPU", tenant.at("needed").get<double>() * 100);
  }
  return text + fmt::format(", {} late", format_count(tenant.at("late_batches").get<std::uint64_t>()));
}

std::string table_of(const nlohmann::json& json) {
  const auto restarts = json.at("restarts").get<std::uint64_t>();
  const auto shares = json.at("multiprocessor_shares").get<std::string>();
  std::string text =
      fmt::format("{}, {} of memory, scheduler {}{}{}{}\n", printable(json.at("device").get<std::string>()),
                  format_size(json.at("device_memory").get<std::uint64_t>()), json.at("scheduler").get<std::string>(),
                  shares == "all" ? "" : ", multiprocessors by " + shares,
                  restarts == 0 ? "" : ", " + format_count(restarts, "restart"),
                  json.at("device_lost").get<bool>() ? ", LOST" : "");
  report::TextTable table({"tenant", ">pid", ">profile", ">batches", ">packets", ">to device", ">to host", ">waited, s",
                           ">ran, s", ">charged, s", ">transfers, s", ">kernels, s", ">p99", ">memory on the device",
                           "bound"});
  for (const auto& tenant : json.at("tenants")) {
    const auto seconds = [&](const char* name) { return fmt::format("{:.3f}", tenant.at(name).get<double>()); };
    table.add_row(
        {printable(tenant.at("name").get<std::string>()), std::to_string(tenant.at("pid").get<int>()),
         tenant.at("profile").get<std::string>(), format_count(tenant.at("batches").get<std::uint64_t>()),
         format_count(tenant.at("packets").get<std::uint64_t>()),
         format_size(tenant.at("bytes_to_device").get<std::uint64_t>()),
         format_size(tenant.at("bytes_to_host").get<std::uint64_t>()), seconds("waiting_seconds"),
         seconds("device_seconds"), seconds("charged_seconds"), seconds("transfer_seconds_estimate"),
         seconds("kernel_seconds_estimate"),
         format_duration(std::chrono::nanoseconds(std::llround(tenant.at("latency_p99_us").get<double>() * 1e3))),
         fmt::format("{} of {}", format_size(tenant.at("device_memory").get<std::uint64_t>()),
                     format_size(tenant.at("device_memory_most").get<std::uint64_t>())),
         bound_text(tenant)});
  }
  return text + table.text();
}

}  // namespace

Result<std::string> status_table(const std::string& path, const std::string& text) {
  try {
    return table_of(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception&) {
    return no_answer_of_a_proxy(path, text);
  }
}

Result<std::string> check_metrics(const std::string& path, const std::string& text) {
  if (text.starts_with("# TYPE penstock_proxy_") && text.ends_with('\n')) return text;
  return no_answer_of_a_proxy(path, text);
}

}  // namespace penstock::cli
