// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <random>
#include <utility>

#include "experiments/offload/lookups.h"
#include "nf/router/fib.h"

namespace penstock::experiments {
namespace {

class RoutingEngine final : public LookupEngine {
 public:
  RoutingEngine(router::Fib4 fib, std::span<const Ipv4Address> keys) : fib_(std::move(fib)), keys_(keys) {}

  void look_up(std::size_t first, std::size_t count, std::uint32_t* values) const noexcept override {
    fib_.lookup_bulk(keys_.subspan(first, count), {values, count});
  }
  DeviceTable to_device() const override {
    DeviceTable device;
    device.view = std::visit(
        [&](auto view) -> TableView {
          const auto copy = [&](const std::uint32_t* array, std::size_t entries) {
            device.arrays.emplace_back(std::span(array, entries));
            return device.arrays.back().data();
          };
          view.root = copy(view.root, view.kRootEntries);
          view.nodes = copy(view.nodes, view.node_entries);
          return view;
        },
        fib_.view());
    return device;
  }
  std::size_t memory_bytes() const noexcept override { return fib_.memory_bytes(); }

 private:
  router::Fib4 fib_;
  std::span<const Ipv4Address> keys_;
};

std::vector<Ipv4Address> draw_keys(std::span<const router::Route4> routes, Traffic traffic) {
  constexpr std::uint64_t kLongestBurst = 32;
  std::mt19937_64 random(1);
  const auto draw = [&]() -> Ipv4Address {
    const Ipv4Prefix& prefix = routes[random() % routes.size()].prefix;
    return {prefix.address.bits | (static_cast<std::uint32_t>(random()) & ~ipv4_mask(prefix.length))};
  };
  const Ipv4Address victim = draw();
  std::vector<Ipv4Address> keys;
  keys.reserve(kKeys);
  while (keys.size() < kKeys) {
    if (traffic == Traffic::flood) {
      keys.push_back(random() % 10 == 0 ? draw() : victim);
    } else {
      const std::uint64_t burst = traffic == Traffic::bursts ? 1 + random() % kLongestBurst : 1;
      keys.resize(std::min<std::size_t>(keys.size() + burst, kKeys), draw());
    }
  }
  return keys;
}

class Routing final : public LookupWork {
 public:
  Routing(std::span<const router::Route4> routes, router::Fib4 fib, Traffic traffic)
      : routes_(routes.begin(), routes.end()), fib_(std::move(fib)), keys_(draw_keys(routes, traffic)) {}

  std::span<const std::byte> keys() const noexcept override { return std::as_bytes(std::span(keys_)); }
  Result<std::unique_ptr<LookupEngine>> engine(std::string_view name) const override {
    const auto engine = router::parse_fib4_engine(name);
    if (!engine) return failure({{}, "unknown engine", in_quotes(name), ""});
    auto fib = router::Fib4::build(*engine, routes_);
    if (!fib) return tl::unexpected(std::move(fib.error()));
    return std::make_unique<RoutingEngine>(std::move(*fib), keys_);
  }
  std::uint32_t expected(std::size_t index) const noexcept override { return fib_.lookup(keys_[index]); }

 private:
  std::vector<router::Route4> routes_;
  router::Fib4 fib_;
  std::vector<Ipv4Address> keys_;
};

}  // namespace

std::string_view name_of(Traffic traffic) noexcept {
  switch (traffic) {
    case Traffic::bursts: return "bursts";
    case Traffic::tcp: return "tcp";
    case Traffic::balanced: return "balanced";
    case Traffic::udp: return "udp";
    case Traffic::flood: return "flood";
    case Traffic::spread: break;
  }
  return "spread";
}

Result<std::unique_ptr<LookupWork>> make_routing(std::span<const router::Route4> routes, Traffic traffic) {
  if (routes.empty()) return failure({{}, "no IPv4 routes", "", "at least one"});
  auto fib = router::Fib4::build(router::Fib4Engine::kDir24, routes);
  if (!fib) return tl::unexpected(std::move(fib.error()));
  return std::make_unique<Routing>(routes, std::move(*fib), traffic);
}

}  // namespace penstock::experiments
