// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "dscp.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "function/per_packet.h"

namespace dscp {

namespace {

using penstock::Field;
using penstock::FieldSet;
namespace function = penstock::function;

// Name, type, default, range, help, required. Reading the chain file, error messages and `penstock check --parameters`
// use this table.
constexpr auto kParameters = std::to_array<penstock::Parameter>({
    {"value", penstock::ParameterType::integer, "", "0..63", "the code point, such as 46 (expedited forwarding)", true},
});

// The fields that the layout depends on, and those that are set. Only parts of these are written, so they are read as
// well.
constexpr FieldSet kSet{Field::ipv4_tos, Field::ipv4_checksum, Field::ipv6_class_label};
constexpr penstock::Access kAccess{penstock::kParsedFields | kSet | FieldSet{Field::verdict}, kSet};

std::string explain(const DscpCore& core, penstock::PacketView packet) {
  const penstock::PacketLayout& layout = packet.layout();
  if (!layout.is_ip() || !layout.has(penstock::PacketLayout::kNetworkHeader)) return "no IP header: unchanged";
  const unsigned before = layout.network == penstock::NetworkLayer::ipv4
                              ? packet.ipv4().tos >> 2U
                              : packet.ipv6().version_class_label.value() >> 22U & 63U;
  return fmt::format("DSCP {} → {}", before, core.value);
}

penstock::Result<std::unique_ptr<function::NetworkFunction>> make(const penstock::Parameters& parameters,
                                                                  function::NfContext&) {
  return make_dscp(static_cast<std::uint8_t>(parameters.integer("value")));
}

}  // namespace

const function::NfKind& dscp_kind() {
  static constexpr function::NfKind kKind{"dscp", "sets the DSCP of IP packets", kParameters, &make};
  return kKind;
}

std::unique_ptr<function::NetworkFunction> make_dscp(std::uint8_t value) {
  return function::per_packet_function<DscpCore>({
      .core = {value},
      .traits = {.name = dscp_kind().name,
                 .summary = dscp_kind().summary,
                 .cpu = kAccess,
                 .devices = {{penstock::function::Processor::gpu, kAccess}}},
      .description = fmt::format("DSCP {}", value),
      .explain = &explain,
      .make_gpu_stage = &make_dscp_gpu_stage,
  });
}

}  // namespace dscp
