// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nf/router/recipe_for_test.h"
#include "nf/router/route_reader.h"
#include "nf/router/router.h"

using namespace penstock;

namespace {

function::StageRecipe real_recipe() {
  const std::vector<std::string> ports{"lan", "wan"};
  router::RouterConfig config;
  config.engine = router::Fib4Engine::kTrie4;
  config.devices = router::Devices(ports);
  config.ports.resize(ports.size());
  config.neighbours.emplace();
  config.routes = router::parse_routes(
                      "default via 10.1.0.2 dev wan\n10.0.0.0/8 dev lan\n10.1.2.0/24\n\tnexthop dev lan weight 1\n"
                      "\tnexthop dev wan weight 3\n2001:db8::/32 dev lan\n2001:db8:1::/49 dev wan\n",
                      "routes.txt", config.devices)
                      ->value;
  return *(*router::Router::build(std::move(config)))->stage_recipe(function::Processor::gpu);
}

}  // namespace

/// Lies about a real recipe. What the check lets pass runs on packets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const function::StageRecipe kRecipe = real_recipe();
  testing::FuzzChoices choose({data, size});
  const function::StageRecipe lie = testing::lie_about(kRecipe, choose);
  if (!router::can_be_loaded(lie)) return 0;
  testing::RandomFrames draw(1);
  auto packets = router::packets_for_router(20, draw, choose);
  router::run_on_host(lie, packets);
  return 0;
}
