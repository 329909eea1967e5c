// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces the .cu files in a build without CUDA: there is never a device, and all allocations fail.

#include <cstddef>
#include <memory>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/green_context.h"
#include "gpu/memory.h"
#include "gpu/module.h"
#include "gpu/pcie.h"
#include "gpu/pinned_pool.h"
#include "gpu/pinned_region.h"
#include "gpu/stream.h"

namespace penstock::gpu {
namespace {

[[noreturn]] void fail() { throw CudaError(0, "this program was built without CUDA"); }

}  // namespace

void StreamDeleter::operator()(CUstream_st*) const noexcept {}
void EventDeleter::operator()(CUevent_st*) const noexcept {}
void DeviceMemoryDeleter::operator()(void*) const noexcept {}
void PinnedMemoryDeleter::operator()(void*) const noexcept {}

Stream::Stream() { fail(); }
Progress Stream::progress() const noexcept { return Progress::kFailed; }
void Stream::wait() const { fail(); }
bool Stream::start_after(const Event&) const noexcept { return false; }

Event::Event(Timing) { fail(); }
bool Event::record(const Stream&) const noexcept { return false; }
Progress Event::progress() const noexcept { return Progress::kFailed; }
void Event::wait() const { fail(); }
double Event::milliseconds_since(const Event&) const { fail(); }
std::optional<double> Event::try_milliseconds_since(const Event&) const noexcept { return std::nullopt; }

void GreenContextDeleter::operator()(CUgreenCtx_st*) const noexcept {}
GreenContext GreenContext::of_percent(unsigned) { fail(); }
CUstream_st* GreenContext::make_stream() const { fail(); }
GreenContextScope::GreenContextScope(const GreenContext*) noexcept : outer_(nullptr) {}
GreenContextScope::~GreenContextScope() { static_cast<void>(outer_); }
const GreenContext* GreenContextScope::current() noexcept { return nullptr; }
struct MultiprocessorGroups::Division {};
MultiprocessorGroups::MultiprocessorGroups(unsigned) { fail(); }
unsigned MultiprocessorGroups::multiprocessors_of_group() const noexcept { return 0; }
std::shared_ptr<const GreenContext> MultiprocessorGroups::take(unsigned) const { fail(); }

void* take_device_memory(std::size_t) { fail(); }
void* take_pinned_memory(std::size_t) { fail(); }
void reserve_pinned_memory(std::size_t) { fail(); }
MemoryUse memory_use(int) noexcept { return {}; }
bool copy_async(void*, const void*, std::size_t, const Stream&) noexcept { return false; }
bool copy_rows_async(void*, const void*, std::size_t, std::size_t, std::size_t, const Stream&) noexcept {
  return false;
}
bool zero_async(void*, std::size_t, const Stream&) noexcept { return false; }
void copy_to_device(void*, const void*, std::size_t) { fail(); }
void copy_to_host(void*, const void*, std::size_t) { fail(); }
void wipe(void*, std::size_t) noexcept {}

PinnedRegion::PinnedRegion(std::span<std::uint8_t>) : memory_(nullptr) { fail(); }
PinnedRegion::~PinnedRegion() { static_cast<void>(memory_); }

bool ModuleKernel::launch(std::size_t, unsigned, unsigned, const Stream&, const void*) const noexcept {
  return kernel_ != nullptr;
}
unsigned ModuleKernel::most_threads() const { fail(); }
std::vector<std::size_t> ModuleKernel::parameter_bytes() const { fail(); }
void ModuleDeleter::operator()(CUlib_st*) const noexcept {}
Module::Module(std::span<const char>) { fail(); }
ModuleKernel Module::kernel(const char*) const { fail(); }
Module::Variable Module::variable(const char*) const { fail(); }

void load_kernels_at_once() noexcept {}

DeviceList list_devices() {
  DeviceList list;
  list.availability = Availability::kBuiltWithoutCuda;
  list.reason = "this program was built without CUDA";
  return list;
}

void use_device(int) { fail(); }
int current_device() { fail(); }
bool is_lost(int) noexcept { return true; }
void reach_memory_of(int) { fail(); }
PcieRates measure_pcie(std::span<const int>) { fail(); }

}  // namespace penstock::gpu
