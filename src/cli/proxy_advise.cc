// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/proxy_advise.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "cli/chain_arguments.h"
#include "experiments/record.h"
#include "experiments/record_check.h"
#include "experiments/sharing/advise.h"
#include "experiments/sharing/sharing.h"
#include "report/text_table.h"

namespace penstock::cli {

namespace {

using experiments::SharingAdvice;

struct AdviseArguments {
  std::string record;
  std::vector<std::string> tenants;
  bool holds_shares = false;
  unsigned trainings = 0;
  bool json = false;
};

/// Without the socket.
std::string options_of(const SharingAdvice& advice) {
  std::string options = "--scheduler " + advice.scheduler;
  if (advice.fixed_gbps > 0) options += fmt::format(" --rate {:.0f}Gbps", advice.fixed_gbps);
  if (advice.on_device_mib > 0) options += fmt::format(" --on-device {}MiB", advice.on_device_mib);
  if (advice.in_mps) options += fmt::format(" --mps DIR --mps-share {}", advice.training_percent);
  return options;
}

/// Without an exponent.
std::string rate_text(double gbps) {
  constexpr double kSmall = 10;
  return gbps < kSmall ? fmt::format("{:.3f}", gbps) : fmt::format("{:.0f}", gbps);
}

std::string bound_text(const SharingAdvice::Tenant& tenant) {
  return fmt::format("{}us", std::chrono::round<std::chrono::microseconds>(tenant.wish.bound).count());
}

/// Of the chain file, without the socket.
std::string run_of(const SharingAdvice::Tenant& tenant) {
  std::string run = fmt::format("proxy_profile: {}q, workers: {}", tenant.units, tenant.workers);
  if (tenant.wish.bound.count() > 0) run += ", proxy_latency: " + bound_text(tenant);
  return run;
}

void print_text(const experiments::Record& record, const std::string& file, const SharingAdvice& advice) {
  report::TextTable table(
      {"tenant", ">wanted, Gbit/s", ">bound", ">profile", ">workers", ">expected, Gbit/s", ">% of the GPU"});
  for (const SharingAdvice::Tenant& tenant : advice.tenants) {
    table.add_row({tenant.wish.function, tenant.wish.gbps ? rate_text(*tenant.wish.gbps) : "",
                   tenant.wish.bound.count() > 0 ? format_duration(tenant.wish.bound) : "",
                   fmt::format("{}q", tenant.units), std::to_string(tenant.workers),
                   tenant.expected_gbps ? rate_text(*tenant.expected_gbps) : "",
                   tenant.expected_gbps ? fmt::format("{:.0f}", tenant.part * 100) : ""});
  }
  fmt::print("{}\n", table.text());
  fmt::print("penstock proxy serve SOCKET {}\n", options_of(advice));
  for (const SharingAdvice::Tenant& tenant : advice.tenants)
    fmt::print("run: {{proxy: SOCKET, {}}}    # {}\n", run_of(tenant), tenant.wish.function);
  fmt::print("\n");
  for (const std::string& error : record.errors)
    fmt::print("{}", report::wrapped(fmt::format("While this was measured: {}.", printable(error)), "- ", "  "));
  if (!record.complete) fmt::print("- The record lacks points of the experiment.\n");
  for (const std::string& reason : advice.reasons) fmt::print("{}", report::wrapped(reason, "- ", "  "));
  std::string gpus;
  for (const auto& gpu : record.machine.gpus) gpus += ", " + printable(gpu.name);
  fmt::print("{}", report::wrapped(fmt::format("Rates are those of {}, measured on {} ({}, {} cores{}) with frames of "
                                               "1,522 bytes. Other machines, frames and rules have other rates: "
                                               "measure yours with `penstock bench sharing`.",
                                               file, printable(record.date), printable(record.machine.cpu),
                                               record.machine.cores, gpus),
                                   "- ", "  "));
}

void print_json(const experiments::Record& record, const std::string& file, const SharingAdvice& advice) {
  nlohmann::ordered_json json{{"record", file}, {"date", record.date}, {"scheduler", advice.scheduler}};
  if (advice.fixed_gbps > 0) json["rate_gbps"] = advice.fixed_gbps;
  if (advice.on_device_mib > 0) json["on_device_mib"] = advice.on_device_mib;
  json["mps"] = advice.in_mps;
  if (advice.in_mps) json["mps_share_percent"] = advice.training_percent;
  json["tenants"] = nlohmann::ordered_json::array();
  for (const SharingAdvice::Tenant& tenant : advice.tenants) {
    nlohmann::ordered_json one{{"function", tenant.wish.function}};
    if (tenant.wish.gbps) one["wanted_gbps"] = *tenant.wish.gbps;
    if (tenant.wish.bound.count() > 0)
      one["bound_us"] = std::chrono::duration<double, std::micro>(tenant.wish.bound).count();
    one["profile"] = fmt::format("{}q", tenant.units);
    one["workers"] = tenant.workers;
    if (tenant.expected_gbps) {
      one["expected_gbps"] = *tenant.expected_gbps;
      one["part"] = tenant.part;
    }
    json["tenants"].push_back(std::move(one));
  }
  json["record_complete"] = record.complete;
  json["record_errors"] = record.errors;
  json["reasons"] = advice.reasons;
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

int advise(const AdviseArguments& arguments) {
  const auto text = read_input(arguments.record);
  const std::string file = input_name(arguments.record);
  const auto record = text ? experiments::parse_record(*text, file) : tl::unexpected(text.error());
  if (!record) return refuse(record.error());
  if (const Errors wrong = experiments::check_record(*record, experiments::sharing_experiment(), file); !wrong.empty())
    return refuse(wrong);
  experiments::SharingWish wish{{}, arguments.holds_shares, arguments.trainings};
  Errors errors;
  for (const std::string& tenant : arguments.tenants) {
    auto wished = experiments::tenant_wish_of(tenant);
    if (wished && tenant.ends_with(':')) {  // only a bound may follow an empty rate
      errors.push_back(
          {{"--tenant " + tenant, 0, 0}, "wrong rate of a tenant", "''", "bits per second, such as 60Gbps"});
    } else if (wished) {
      wish.tenants.push_back(std::move(*wished));
    } else {
      for (Error& error : wished.error()) error.place.file = "--tenant " + tenant;
      append(errors, std::move(wished.error()));
    }
  }
  if (!errors.empty()) return refuse(errors);
  const auto advice = experiments::advise(*record, wish, file);
  if (!advice) return refuse(advice.error());
  if (arguments.json) {
    print_json(*record, file, *advice);
  } else {
    print_text(*record, file, *advice);
  }
  return kDone;
}

}  // namespace

void add_proxy_advise(CLI::App& proxy, int& exit_code) {
  auto arguments = std::make_shared<AdviseArguments>();
  CLI::App* const command =
      proxy.add_subcommand("advise", "Say which scheduler and profiles suit given tenants, by what was measured");
  command->add_option("RECORD", arguments->record, "what `penstock bench sharing --json` wrote; - is standard input")
      ->required()
      ->check(not_empty("a file"));
  command
      ->add_option("--tenant", arguments->tenants,
                   "a tenant: its function in the record, the rate that it is to receive, and the bound of a batch's "
                   "time in the proxy; may be repeated")
      ->required()
      ->type_name("FUNCTION[:RATE[:BOUND]]")
      ->allow_extra_args(false);
  command->add_flag("--hold-shares", arguments->holds_shares,
                    "tenants may send more than they say: choose a scheduler whose shares hold all the same");
  command->add_option("--trainings", arguments->trainings, "processes that train neural networks on the same GPU")
      ->check(whole_number(0, 3))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print JSON instead of text");
  command->footer(
      "A tenant without a rate gets what the others leave. Examples: --tenant ipsec:60Gbps --tenant nids:100Gbps:2ms\n"
      "--tenant nids. The way from wishes to profiles is in experiments/README.md, \"sharing\".");
  command->callback([arguments, &exit_code] { exit_code = advise(*arguments); });
}

}  // namespace penstock::cli
