// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/sensor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "config/chain_file.h"
#include "evasion/kernel_host.h"
#include "evasion/signatures.h"
#include "nf/nids/nids.h"
#include "packet/parse_core.h"
#include "run/run.h"

namespace penstock::evasion {

namespace {

[[noreturn]] void give_up(const Errors& errors) {
  fmt::print(stderr, "{}\n", to_string(errors));
  std::abort();
}

template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

constexpr std::array<std::uint8_t, 12> kMacs = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

void append_frame(BytesView packet, Bytes& to) {
  to.insert(to.end(), kMacs.begin(), kMacs.end());
  const bool v6 = !packet.empty() && packet[0] >> 4 == 6;
  to.push_back(v6 ? 0x86 : 0x08);
  to.push_back(v6 ? 0xdd : 0x00);
  to.insert(to.end(), packet.begin(), packet.end());
}

template <typename T>
void append_word(Bytes& to, T word) {  // in this machine's byte order, as in captures
  const std::size_t at = to.size();
  to.resize(at + sizeof word);
  std::memcpy(to.data() + at, &word, sizeof word);
}

std::string write_rules(const WorkFolder& folder) {
  const std::string path = folder.file("evasion.rules");
  std::ofstream(path) << rules_text();
  return path;
}

/// The number of the attacker in "10.0.0.7:4000" or "fd00::2:7:4000".
std::optional<std::uint32_t> attacker_in(std::string_view end) {
  const std::string text(end.substr(0, end.rfind(':')));
  Address address{.v6 = text.find(':') != std::string::npos};
  if (::inet_pton(address.v6 ? AF_INET6 : AF_INET, text.c_str(), address.bytes.data()) != 1) return {};
  return KernelHost::number_of(address);
}

/// A line of fast.log: "… [**] [1:SID:REV] MESSAGE [**] … {TCP} A -> B".
void read_alert(std::string_view line, AlertsByAttacker& alerts) {
  const std::size_t rule = line.find("[1:");
  const std::size_t ends = line.rfind("} ");
  const std::size_t arrow = line.rfind(" -> ");
  if (rule == std::string_view::npos || ends == std::string_view::npos || arrow == std::string_view::npos) return;
  std::uint32_t sid = 0;
  std::from_chars(line.data() + rule + 3, line.data() + line.size(), sid);
  for (const std::string_view end : {line.substr(ends + 2, arrow - ends - 2), line.substr(arrow + 4)}) {
    if (const auto attacker = attacker_in(end)) alerts.emplace(*attacker, sid);
  }
}

}  // namespace

WorkFolder::WorkFolder() {
  std::error_code none;
  path_ =
      std::filesystem::is_directory("/dev/shm", none) ? "/dev/shm" : std::filesystem::temp_directory_path().string();
  path_ += "/evasion_XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) give_up({Error{{path_}, "cannot make a folder", "", ""}});
}

WorkFolder::~WorkFolder() {
  std::error_code none;
  std::filesystem::remove_all(path_, none);
}

void write_capture(const std::string& path, std::span<const Transcript> conversations) {
  std::vector<const WirePacket*> packets;
  for (const Transcript& one : conversations) {
    for (const WirePacket& packet : one.packets) packets.push_back(&packet);
  }
  std::stable_sort(packets.begin(), packets.end(),
                   [](const WirePacket* a, const WirePacket* b) { return a->time_ns < b->time_ns; });
  Bytes bytes;
  append_word<std::uint32_t>(bytes, 0xa1b23c4d);  // nanoseconds
  append_word<std::uint32_t>(bytes, 4 << 16 | 2);
  append_word<std::uint64_t>(bytes, 0);
  append_word<std::uint32_t>(bytes, 262144);
  append_word<std::uint32_t>(bytes, 1);  // Ethernet
  Bytes frame;
  for (const WirePacket* packet : packets) {
    frame.clear();
    append_frame(packet->packet, frame);
    append_word(bytes, static_cast<std::uint32_t>(packet->time_ns / 1'000'000'000));
    append_word(bytes, static_cast<std::uint32_t>(packet->time_ns % 1'000'000'000));
    append_word(bytes, static_cast<std::uint32_t>(frame.size()));
    append_word(bytes, static_cast<std::uint32_t>(frame.size()));
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

OffPathSensor::OffPathSensor(SensorSettings settings) : settings_(std::move(settings)) { write_rules(folder_); }

AlertsByAttacker OffPathSensor::scan(std::span<const Transcript> conversations, unsigned workers) {
  write_capture(folder_.file("wire.pcap"), conversations);
  nlohmann::ordered_json chain;
  chain["ports"]["wire"]["pcap"]["read"] = folder_.file("wire.pcap");
  nlohmann::ordered_json nids;
  nids["rules"] = {folder_.file("evasion.rules")};
  for (const auto& [name, value] : settings_) nids[name] = value;
  chain["chain"] = nlohmann::ordered_json::array({{{"nids", nids}}});
  chain["run"] = {{"processor", "cpu"}, {"workers", workers}};
  chain["outputs"]["fast_log"] = folder_.file("fast.log");
  auto loaded = must(config::load_chain_text(chain.dump(), "evasion", {}));
  const std::atomic<bool> stop{false};
  const auto result = must(run::run(loaded.chain, {}, stop));
  if (!result.errors.empty()) give_up(result.errors);
  AlertsByAttacker alerts;
  std::ifstream log(folder_.file("fast.log"));
  for (std::string line; std::getline(log, line);) read_alert(line, alerts);
  return alerts;
}

LiveSensor::LiveSensor(bool on_path, SensorSettings settings) {
  std::vector<RawParameter> given;
  const auto give = [&](std::string name, std::string value) {
    RawParameter parameter;
    parameter.name = std::move(name);
    parameter.items = {std::move(value)};
    given.push_back(std::move(parameter));
  };
  give("rules", write_rules(folder_));
  if (on_path) give("action", "drop");
  for (auto& [name, value] : settings) give(name, value);
  const auto parameters = must(Parameters::read(nids::nids_kind().parameters, given, {}));
  function::NfContext context;
  auto function = must(nids::nids_kind().make(parameters, context));
  function_.reset(dynamic_cast<nids::Nids*>(function.release()));
}

LiveSensor::~LiveSensor() { stages_.clear(); }

void LiveSensor::restart(unsigned workers) {
  stages_.clear();
  for (unsigned i = 0; i < workers; ++i) stages_.emplace_back(*function_, i);
  chooser_.emplace(workers);
}

std::span<const Decision> LiveSensor::decide(BytesView packet, std::uint64_t number, std::uint64_t time_ns) {
  frame_.clear();
  append_frame(packet, frame_);
  port::CapturedFrame frame;
  frame.bytes = frame_;
  frame.wire_length = static_cast<std::uint32_t>(frame_.size());
  frame.link_type = LinkType::ethernet;
  frame.timestamp_ns = time_ns;
  frame.number = number;
  decisions_.clear();
  chooser_->take(frame, [this](unsigned worker, const port::CapturedFrame& one) noexcept {
    process(worker, one);
    return true;
  });
  return decisions_;
}

void LiveSensor::process(unsigned worker, const port::CapturedFrame& frame) {
  processed_.assign(frame.bytes.begin(), frame.bytes.end());
  PacketDescriptor descriptor;
  descriptor.timestamp_ns = frame.timestamp_ns;
  descriptor.length = descriptor.wire_length = frame.wire_length;
  PacketView view{processed_.data(), &descriptor};
  parse(view);
  if (frame.copy) return stages_[worker]->observe(view);
  stages_[worker]->process({&view, 1});
  decisions_.push_back({frame.number, descriptor.verdict.alive()});
}

void LiveSensor::finish() {
  chooser_->finish([this](unsigned worker, const port::CapturedFrame& one) noexcept {
    process(worker, one);
    return true;
  });
  stages_.clear();
}

std::uint64_t LiveSensor::alerts(std::uint32_t sid) const {
  const std::vector<std::uint64_t> alerts = function_->alerts_by_rule();
  const auto& rules = function_->rules().rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].sid == sid) return alerts[i];
  }
  return 0;
}

}  // namespace penstock::evasion
