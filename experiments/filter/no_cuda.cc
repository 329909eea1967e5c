// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces the .cu files in builds without CUDA, which have no device to filter on.

#include "experiments/filter/device_filters.h"
#include "experiments/filter/device_passes.h"

namespace penstock::experiments {
namespace {

constexpr const char* kNone = "this program has no GPU code";

}  // namespace

template <unsigned kFields>
std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<kFields>>, Deciding, unsigned) {
  return nullptr;
}
template std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<2>>, Deciding, unsigned);
template std::unique_ptr<KeyFilter> make_constant_filter(std::span<const WordRule<4>>, Deciding, unsigned);

Result<std::unique_ptr<KeyFilter>> make_code_filter(std::span<const WordRule<kKeyWords>>, Deciding) {
  return failure({{}, kNone, "", ""});
}
std::unique_ptr<KeyFilter> make_rfc_filter(const classify::RfcTables&, std::uint32_t, Deciding) { return nullptr; }
std::unique_ptr<KeyFilter> make_constant_rfc_filter(const classify::RfcTables&, std::uint32_t, Deciding) {
  return nullptr;
}

Transfer transfer_of(std::string_view) { return Transfer::none; }

class DevicePasses::Memory {};
DevicePasses::DevicePasses(int, std::size_t) {}
DevicePasses::~DevicePasses() = default;
std::span<TupleKey> DevicePasses::keys() noexcept { return {}; }
void DevicePasses::send_keys() {}
Result<std::vector<double>> DevicePasses::rates(const KeyFilter*, const PassOptions&, std::span<const std::uint32_t>,
                                                const Timing&) {
  return failure({{}, kNone, "", ""});
}
Result<unsigned> DevicePasses::multiprocessors(unsigned) { return failure({{}, kNone, "", ""}); }

}  // namespace penstock::experiments
