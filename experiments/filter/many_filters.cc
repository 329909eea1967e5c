// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/many_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "experiments/core_rates.h"
#include "experiments/filter/device_matches.h"
#include "experiments/limits.h"
#include "experiments/repeats.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::experiments {
namespace {

using filter::Matcher;
using filter::PacketBytes;

constexpr std::size_t kFrames = std::size_t{1} << 20;
constexpr std::size_t kCheckedFrames = 4093;  // every 4,093rd is checked: 257 frames, with all programs
constexpr std::size_t kGroup = 64;            // frames that go through all programs together
constexpr std::size_t kKinds = 8;             // of expressions
constexpr unsigned kFirstPort = 1000;
constexpr unsigned kPorts = 4096;

/// A host or network number of 198.18.0.0/15.
std::string network(std::size_t number) { return fmt::format("198.{}.{}", 18 + number / 256 % 2, number % 256); }

/// One thread, with its position among the frames and its words.
class MatchLoop {
 public:
  MatchLoop(const Matcher& matcher, std::span<const PacketBytes> frames, std::size_t first)
      : matcher_(matcher), frames_(frames), at_(first), words_(kGroup * words_of_filters(matcher.programs())) {}

  std::size_t operator()() {
    const std::size_t count = std::min(kGroup, frames_.size() - at_);
    match_frames(matcher_, frames_.subspan(at_, count), words_.data());
    at_ = (at_ + count) % frames_.size();
    return count;
  }

 private:
  const Matcher& matcher_;
  std::span<const PacketBytes> frames_;
  std::size_t at_;
  std::vector<std::uint32_t> words_;
};

}  // namespace

std::string filter_expression(std::size_t number) {
  const std::size_t i = number / kKinds;
  const auto port = static_cast<unsigned>(kFirstPort + number * 37 % kPorts);
  switch (number % kKinds) {
    case 0: return fmt::format("tcp dst port {}", port);
    case 1: return fmt::format("udp port {}", port);
    case 2: return fmt::format("src net {}.0/24", network(i));
    case 3: return fmt::format("ip and tcp and dst net {}.0/24", network(i * 3));
    case 4: return fmt::format("host {}.{} or host {}.{}", network(i * 5), i % 250 + 1, network(i * 7), i % 200 + 2);
    case 5: return fmt::format("tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and src port {}", port);
    case 6: return fmt::format("udp and src net {}.0/24 and dst portrange {}-{}", network(i * 11), port, port + 63);
    default: return fmt::format("ip[8] < {} and ip proto 6 and src host {}.{}", i % 64 + 1, network(i), i % 256);
  }
}

std::vector<std::uint8_t> filter_frames(std::size_t count) {
  constexpr std::uint8_t kTcp = 6;
  constexpr std::uint8_t kUdp = 17;
  constexpr std::size_t kIp = 14;
  constexpr std::size_t kTransport = kIp + 20;
  std::mt19937_64 random(9);
  std::vector<std::uint8_t> bytes(count * kFrameBytes);
  for (std::size_t f = 0; f < count; ++f) {
    std::uint8_t* const frame = bytes.data() + f * kFrameBytes;
    const std::uint64_t addresses = random();
    const std::uint64_t others = random();
    const bool tcp = others % 4 != 0;
    const auto put16 = [frame](std::size_t at, std::uint64_t value) {
      frame[at] = static_cast<std::uint8_t>(value >> 8);
      frame[at + 1] = static_cast<std::uint8_t>(value);
    };
    std::fill(frame, frame + 12, std::uint8_t{2});
    put16(12, 0x0800);
    frame[kIp] = 0x45;
    put16(kIp + 2, kFrameBytes - kIp);
    frame[kIp + 8] = static_cast<std::uint8_t>(1 + (others >> 8) % 64);  // TTL
    frame[kIp + 9] = tcp ? kTcp : kUdp;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const std::uint64_t number = addresses >> (side * 32);
      std::uint8_t* const address = frame + kIp + 12 + side * 4;
      address[0] = 198;
      address[1] = static_cast<std::uint8_t>(18 + (number >> 16) % 2);
      address[2] = static_cast<std::uint8_t>(number >> 8);
      address[3] = static_cast<std::uint8_t>(number);
      put16(kTransport + side * 2, kFirstPort + (others >> (16 + side * 16)) % kPorts);
    }
    if (tcp) {
      frame[kTransport + 12] = 0x50;
      frame[kTransport + 13] = others >> 60 == 0 ? 0x02 : 0x10;  // SYN or ACK
    } else {
      put16(kTransport + 4, kFrameBytes - kTransport);
    }
  }
  return bytes;
}

void match_frames(const Matcher& matcher, std::span<const PacketBytes> frames, std::uint32_t* words) noexcept {
  const std::size_t per_frame = words_of_filters(matcher.programs());
  std::array<std::uint32_t, kGroup> returns;
  while (!frames.empty()) {
    const std::span<const PacketBytes> group = frames.first(std::min(frames.size(), kGroup));
    std::fill(words, words + group.size() * per_frame, 0U);
    for (std::size_t p = 0; p < matcher.programs(); ++p) {
      matcher.run(p, group, returns.data());
      for (std::size_t i = 0; i < group.size(); ++i) {
        words[i * per_frame + p / 32] |= static_cast<std::uint32_t>(returns[i] != 0) << (p % 32);
      }
    }
    words += group.size() * per_frame;
    frames = frames.subspan(group.size());
  }
}

ManyFilters::ManyFilters(const Setting& setting, const CoreRatesSoFar& cores)
    : setting_(setting), cores_(cores), bytes_(filter_frames(kFrames)) {
  for (std::size_t f = 0; f < kFrames; ++f) {
    frames_.push_back({bytes_.data() + f * kFrameBytes, kFrameBytes, kFrameBytes});
  }
}

ManyFilters::~ManyFilters() = default;

Result<void> ManyFilters::prepare(std::size_t filters) {
  if (programs_.size() == filters) return {};
  matchers_.clear();
  matches_.reset();
  programs_.clear();
  for (std::size_t f = 0; f < filters; ++f) {
    auto program = filter::compile_expression(filter_expression(f), {.snap_length = kFrameBytes}, {});
    if (!program) return tl::unexpected(std::move(program.error()));
    programs_.push_back(std::move(*program));
  }
  // The oracle: libpcap's own interpreter.
  const auto oracle = filter::make_matcher(filter::Engine::libpcap, programs_);
  if (!oracle) return tl::unexpected(oracle.error());
  std::vector<PacketBytes> sample;
  for (std::size_t f = 0; f < kFrames; f += kCheckedFrames) sample.push_back(frames_[f]);
  expected_.resize(sample.size() * words_of_filters(filters));
  match_frames(**oracle, sample, expected_.data());
  return {};
}

Result<void> ManyFilters::check(std::span<const std::uint32_t> words, std::size_t frame, const char* whose) const {
  const std::size_t per_frame = words_of_filters(programs_.size());
  const auto right = std::span(expected_).subspan(frame / kCheckedFrames * per_frame, per_frame);
  for (std::size_t f = 0; f < programs_.size(); ++f) {
    const auto bit = [&](std::span<const std::uint32_t> from) { return from[f / 32] >> (f % 32) & 1; };
    if (bit(words) == bit(right)) continue;
    return failure(
        {{},
         fmt::format("{} result for frame {} and filter \"{}\" is wrong", whose, frame, filter_expression(f)),
         std::to_string(bit(words)),
         std::to_string(bit(right))});
  }
  return {};
}

ManyFilters::Rates ManyFilters::on_cores(const Matcher& matcher, unsigned cores) const {
  const Timing timing{setting_.repeats, setting_.duration, setting_.stop};
  auto rates =
      rates_on_cores(cores, timing, [&](unsigned core) { return MatchLoop(matcher, frames_, kFrames / cores * core); });
  std::vector<std::uint32_t> words(words_of_filters(programs_.size()));
  for (std::size_t f = 0; f < kFrames; f += kCheckedFrames) {
    match_frames(matcher, std::span(frames_).subspan(f, 1), words.data());
    if (auto right = check(words, f, "the CPU's"); !right) return tl::unexpected(std::move(right.error()));
  }
  return rates;
}

Result<void> ManyFilters::prepare_device(const std::string& engine) {
  const std::string name = engine + std::to_string(programs_.size());
  if (matches_ != nullptr && matches_name_ == name) return {};
  matches_.reset();
  auto made = DeviceMatches::make(setting_.gpus.front().index, engine, programs_, bytes_);
  if (!made) return tl::unexpected(std::move(made.error()));
  matches_ = std::move(*made);
  matches_name_ = name;
  return {};
}

ManyFilters::Rates ManyFilters::on_gpu(bool only_kernel) {
  const Timing timing{setting_.repeats, setting_.duration, setting_.stop};
  auto rates = matches_->rates(only_kernel, timing);
  if (!rates) return rates;
  const std::size_t per_frame = words_of_filters(programs_.size());
  for (std::size_t f = 0; f < kFrames && !setting_.stop->load(); f += kCheckedFrames) {
    const auto words = matches_->words().subspan(f * per_frame, per_frame);
    if (auto right = check(words, f, "the GPU's"); !right) return tl::unexpected(std::move(right.error()));
  }
  return rates;
}

Result<void> ManyFilters::measure(Point& point, const Point& limits) {
  if (auto ready = prepare(static_cast<std::size_t>(*point.number("filters"))); !ready) return ready;
  const std::string engine = point.text("engine");
  const bool on_cpu = point.text("processor") == "cpu";
  Rates rates;
  if (on_cpu) {
    std::unique_ptr<Matcher>& matcher = matchers_[engine];
    if (matcher == nullptr) {
      auto made = filter::make_matcher(filter::engine_of(engine), programs_);
      if (!made) {
        point.set("refused", made.error().front().message);
        return {};
      }
      matcher = std::move(*made);
    }
    rates = on_cores(*matcher, static_cast<unsigned>(*point.number("cores")));
  } else {
    if (auto ready = prepare_device(engine); !ready) {
      point.set("refused", ready.error().front().message);
      return {};
    }
    rates = on_gpu(point.text("measured") == "kernel");
  }
  if (!rates) return tl::unexpected(std::move(rates.error()));
  const Repeats mpps = divided(std::move(*rates), 1e6);
  set_repeats(point, "mpps", mpps);
  if (on_cpu) return {};
  if (const Repeats best = cores_.best(point); !best.empty()) set_quotient(point, "times_all_cores", mpps, best);
  if (point.text("measured") == "kernel") return {};
  const auto down = static_cast<double>(words_of_filters(programs_.size()) * sizeof(std::uint32_t));
  point.set("bytes_up", kFrameBytes).set("bytes_down", down);
  const auto limit = pcie_limit_mpps(limits, kFrameBytes, down);
  if (!limit) return {};
  point.set("limit_mpps", *limit);
  set_repeats(point, "of_limit", divided(mpps, *limit));
  return {};
}

}  // namespace penstock::experiments
