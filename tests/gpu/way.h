// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of whole chains on a GPU: the ways in which batches cross, and the results that must not depend on them.

#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "config/chain_file.h"
#include "gpu/devices.h"
#include "run/chain.h"

namespace penstock::on_gpu {

using Json = nlohmann::ordered_json;

struct Way {
  run::Transfer transfer;
  plan::WholeFrames frames;
  plan::Sharing sharing = plan::Sharing::packets;
};

inline constexpr Way kWays[] = {
    {run::Transfer::direct, plan::WholeFrames::where_needed},
    {run::Transfer::direct, plan::WholeFrames::always},
    {run::Transfer::streamed, plan::WholeFrames::where_needed},
    {run::Transfer::streamed, plan::WholeFrames::always},
    {run::Transfer::zero_copy, plan::WholeFrames::where_needed},
    {run::Transfer::zero_copy, plan::WholeFrames::always},
    {run::Transfer::automatic, plan::WholeFrames::where_needed},
    {run::Transfer::streamed, plan::WholeFrames::where_needed, plan::Sharing::none},
    {run::Transfer::automatic, plan::WholeFrames::always, plan::Sharing::none},
    {run::Transfer::automatic, plan::WholeFrames::where_needed, plan::Sharing::none},
    {run::Transfer::automatic, plan::WholeFrames::where_needed, plan::Sharing::stack},
    {run::Transfer::automatic, plan::WholeFrames::where_needed, plan::Sharing::parsing},
    {run::Transfer::streamed, plan::WholeFrames::always, plan::Sharing::parsing},
};

inline std::string transfer_of(const Way& way) {
  switch (way.transfer) {
    case run::Transfer::automatic: return "auto";
    case run::Transfer::direct: return "direct";
    case run::Transfer::streamed: return "streamed";
    case run::Transfer::zero_copy: break;
  }
  return "zero_copy";
}
inline std::string frames_of(const Way& way) { return way.frames == plan::WholeFrames::always ? "whole" : "planned"; }
inline std::string sharing_of(const Way& way) {
  return std::string(plan::kSharingNames[static_cast<std::size_t>(way.sharing)]);
}
inline std::string to_string(const Way& way) {
  return transfer_of(way) + ", " + frames_of(way) + " frames" +
         (way.sharing == plan::Sharing::packets ? "" : ", each function by itself, sharing: " + sharing_of(way));
}
inline void PrintTo(const Way& way, std::ostream* out) { *out << to_string(way); }

/// For names of parameterised tests: "direct_planned".
inline std::string test_name(const Way& way) {
  return transfer_of(way) + "_" + frames_of(way) +
         (way.sharing == plan::Sharing::packets ? "" : "_sharing_" + sharing_of(way));
}

/// The run section that puts a chain on a GPU, in the form of `--set`.
inline std::vector<std::string> settings_of(const Way& way) {
  return {"run.processor=gpu", "run.transfer=" + transfer_of(way), "run.frames=" + frames_of(way),
          "run.sharing=" + sharing_of(way)};
}
/// Likewise for a chain that is built by hand, on the first GPU.
inline void put_on_gpu(run::RunSettings& settings, const Way& way) {
  settings.processor = function::Processor::gpu;
  for (const gpu::Device& device : gpu::list_devices().devices) {
    if (device.supported && settings.gpus.empty()) settings.gpus.push_back(device.index);
  }
  ASSERT_FALSE(settings.gpus.empty()) << "no GPU can be used here";
  settings.transfer = way.transfer;
  settings.whole_frames = way.frames;
  settings.sharing = way.sharing;
}

inline std::vector<config::Override> overrides_of(const std::vector<std::string>& settings) {
  std::vector<config::Override> overrides;
  for (const std::string& setting : settings) overrides.push_back(*config::parse_override(setting));
  return overrides;
}

/// A function's counters, without those that show how intrusion detection selected rules (where it searched for
/// literals, how many rules it tried), because a GPU searches for parts of the literals of all rules.
inline Json details_of(const Json& function) {
  Json details = function.value("details", Json{});
  // These depend on how many packets are looked up before others have passed the chain.
  if (details.contains("connections")) {
    for (const char* by_time : {"now", "most", "confirmed", "made_room", "expired", "ended"})
      details["connections"].erase(by_time);
  }
  if (details.contains("inspection")) {
    for (const char* way : {"candidates", "evaluations", "scanned_on_gpu", "clear"}) details["inspection"].erase(way);
  }
  return details;
}

/// Packets in and out by port. Fragments are only distributed if there are several workers.
inline Json ports_of(const Json& report) {
  Json ports = report.at("ports");
  for (Json& port : ports) port.erase("fragments");
  return ports;
}

/// Compares what happened to the packets, and the functions' counters.
inline void expect_the_same_counts(const Json& expected, const Json& out) {
  for (const char* part : {"packets", "bytes", "dropped_by_chain"}) {
    EXPECT_EQ(out.at(part), expected.at(part)) << part;
  }
  EXPECT_EQ(ports_of(out), ports_of(expected));
  ASSERT_EQ(out.at("functions").size(), expected.at("functions").size());
  for (std::size_t i = 0; i < expected.at("functions").size(); ++i) {
    const Json& function = expected.at("functions")[i];
    for (const char* part : {"name", "in", "forwarded", "dropped", "consumed"}) {
      EXPECT_EQ(out.at("functions")[i].at(part), function.at(part)) << function.at("name") << ": " << part;
    }
    EXPECT_EQ(details_of(out.at("functions")[i]), details_of(function)) << function.at("name") << ": details";
  }
}

/// All batches were processed on the device, without failures.
inline void expect_all_on_device(const Json& report) {
  EXPECT_EQ(report.at("processor"), "gpu");
  EXPECT_GE(report.at("gpu").at("segments"), report.at("batches").at("count"));
  EXPECT_EQ(report.at("gpu").at("failures"), 0);
  EXPECT_EQ(report.at("gpu").at("lanes_lost"), 0);
}

}  // namespace penstock::on_gpu
