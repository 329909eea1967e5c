// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/device_tables.h"

#include <algorithm>
#include <span>
#include <vector>

#include "gpu/cuda_error.h"

namespace penstock::ipsec {

DeviceCopies::DeviceCopies(const TableSpans& tables)
    : selection_(tables.selection),
      inbound_(tables.inbound),
      windows_(tables.windows),
      top_numbers_(tables.tops),
      tops_(top_numbers_.data()),
      keys_(tables.keys),
      has_policies_(tables.has_policies) {}

std::size_t DeviceCopies::bytes() const noexcept {
  return selection_.bytes() + inbound_.bytes() + windows_.size_bytes() + top_numbers_.size_bytes() + keys_.bytes();
}

SealingCopies::SealingCopies(const SealingSpans& tables)
    : sas_(tables.sas),
      keys_(tables.keys),
      growth_(tables.growth),
      are_signed_(!tables.key.empty()),
      key_(tables.key.empty() ? SipKey{} : tables.key.front()),
      used_words_(std::span<const unsigned long long>(
          std::vector<unsigned long long>(tables.key.empty() ? 0 : used_words(tables.sas.size())))),
      used_{used_words_.data(), log_of_used_words(tables.sas.size())},
      has_udp_over_ipv6_(std::ranges::any_of(tables.sas, needs_udp_checksum)) {}

DeviceTables::DeviceTables(const Tables& tables)
    : tables_(tables),
      copies_(spans_of(tables, ReceivedSoFar(tables))),
      statuses_(tables.sas().size()),
      host_statuses_(tables.sas().size()),
      host_tops_(tables.sas().size()) {
  tell_statuses();
  stream_.wait();
}

DeviceTables::~DeviceTables() {
  try {
    stream_.wait();                  // copies may still be reading the statuses on the host
  } catch (const gpu::CudaError&) {  // NOLINT(bugprone-empty-catch): the context is lost, and its copies with it
  }
}

Sender::Sender(const Tables& tables, std::uint32_t batch_packets)
    : tables_(tables), batch_packets_(batch_packets), joined_(tables.counting().join(tables.states(), batch_packets)) {
  for (const auto& state : tables_.states()) state->expect_in_flight(batch_packets_);
}

Sender::~Sender() {
  for (const auto& state : tables_.states()) state->end_in_flight(batch_packets_);
}

void DeviceTables::tell_statuses() noexcept {
  for (std::uint32_t sa = 0; sa < host_statuses_.size(); ++sa) host_statuses_[sa] = tables_.status(sa);
  // If the copy fails, so does everything else on the device.
  static_cast<void>(gpu::copy_async(statuses_.data(), host_statuses_.data(), statuses_.size_bytes(), stream_));
}

void DeviceTables::tell_tops() noexcept {
  for (std::uint32_t sa = 0; sa < host_tops_.size(); ++sa) host_tops_[sa] = tables_.states()[sa]->window.top();
  static_cast<void>(gpu::copy_async(copies_.tops(), host_tops_.data(), host_tops_.size_bytes(), stream_));
}

}  // namespace penstock::ipsec
