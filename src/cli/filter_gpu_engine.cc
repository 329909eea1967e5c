// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/filter_gpu_engine.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "nf/filter/bpf/matcher.h"
#include "nf/filter/code/host_batches.h"

namespace penstock::cli {

namespace {

/// Runs batches on a GPU, and those that fail there, with all later ones, on the CPU.
class GpuEngine final : public FilterEngine {
 public:
  GpuEngine(std::unique_ptr<filter::DeviceMatcher> device, std::unique_ptr<filter::Matcher> twin,
            filter::MatchOutput output)
      : device_(std::move(device)),
        batches_(std::make_unique<filter::HostBatches>(*device_, output)),
        twin_(std::move(twin)) {}

  void match(std::span<const filter::PacketBytes> packets, MatchBits& matches) noexcept override {
    for_each_row(
        packets,
        [&](std::size_t packet, std::span<const std::uint32_t> row) {
          for (std::size_t word = 0; word < row.size(); ++word) {
            for (std::uint32_t left = row[word]; left != 0; left &= left - 1) {
              const std::size_t program = word * 32 + static_cast<std::size_t>(std::countr_zero(left));
              matches.row(program)[packet / MatchBits::kWordBits] |= std::uint64_t{1} << packet % MatchBits::kWordBits;
            }
          }
        },
        [&](std::size_t packet) {
          for (std::size_t program = 0; program < twin_->programs(); ++program) {
            if (returned(program, packets[packet]) == 0) continue;
            matches.row(program)[packet / MatchBits::kWordBits] |= std::uint64_t{1} << packet % MatchBits::kWordBits;
          }
        });
  }

  void run(std::size_t program, std::span<const filter::PacketBytes> packets,
           std::uint32_t* returns) noexcept override {
    for_each_row(
        packets, [&](std::size_t packet, std::span<const std::uint32_t> row) { returns[packet] = row[program]; },
        [&](std::size_t packet) { returns[packet] = returned(program, packets[packet]); });
  }

  std::string_view name() const noexcept override { return to_string(device_->engine()); }

 private:
  [[nodiscard]] std::uint32_t returned(std::size_t program, const filter::PacketBytes& packet) const noexcept {
    std::uint32_t result = 0;
    twin_->run(program, {&packet, 1}, &result);
    return result;
  }

  /// Calls `use(packet, row)` in order, or `skipped(packet)` for those that the GPU cannot take.
  template <typename Use, typename Skipped>
  void for_each_row(std::span<const filter::PacketBytes> packets, Use use, Skipped skipped) noexcept {
    std::size_t done = 0, sent = 0;
    const auto take = [&] {
      const filter::HostBatches::Results results = batches_->take();
      for (std::size_t i = 0; i < results.packets; ++i) use(done++, results.row(i));
    };
    try {
      while (done < packets.size() && !failed_) {
        const bool room = !batches_->full();
        const std::size_t count = room ? batches_->submit(packets.subspan(sent)) : 0;
        sent += count;
        if (count > 0) continue;
        if (!batches_->empty()) {
          take();
        } else {  // larger than a batch
          skipped(done++);
          sent = done;
        }
      }
    } catch (const gpu::CudaError& error) {
      fmt::print(stderr, "penstock: the GPU failed, the CPU goes on: {}\n", error.what());
      failed_ = true;
    }
    while (done < packets.size()) skipped(done++);
  }

  std::unique_ptr<filter::DeviceMatcher> device_;
  std::unique_ptr<filter::HostBatches> batches_;
  std::unique_ptr<filter::Matcher> twin_;
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<FilterEngine>> make_gpu_filter_engine(filter::DeviceEngine engine,
                                                             std::vector<filter::Program> programs, bool returns) {
  const gpu::DeviceList list = gpu::list_devices();
  if (list.devices.empty()) {
    return failure({{"--engine", 0, 0},
                    "no GPU can be used: " + list.reason,
                    std::string(to_string(engine)),
                    "an engine on the CPU; `penstock doctor` says more"});
  }
  try {
    gpu::use_device(list.devices.front().index);
    filter::GenerateOptions options;
    options.returns = returns;
    auto device = filter::make_device_matcher(engine, programs, options);
    if (!device) return tl::unexpected(std::move(device.error()));
    auto twin = filter::make_matcher(filter::Engine::interpreter, std::move(programs));
    if (!twin) return tl::unexpected(std::move(twin.error()));
    return std::make_unique<GpuEngine>(std::move(*device), std::move(*twin),
                                       returns ? filter::MatchOutput::returns : filter::MatchOutput::bitmap);
  } catch (const gpu::CudaError& error) {
    return failure({{"--engine", 0, 0},
                    fmt::format("the GPU cannot be used: {}", error.what()),
                    std::string(to_string(engine)),
                    "an engine on the CPU; `penstock doctor` says more"});
  }
}

}  // namespace penstock::cli
