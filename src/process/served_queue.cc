// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/served_queue.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#include "function/stack_use.h"

namespace penstock::process {

namespace {

constexpr LinkType kLastLinkType = LinkType::cisco_hdlc;

}  // namespace

MappedFile::MappedFile(int file, std::size_t bytes, bool writes) {
  const int access = writes ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const memory = ::mmap(nullptr, bytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::uint8_t*>(memory), bytes};
}

MappedFile::~MappedFile() { ::munmap(bytes_.data(), bytes_.size()); }

ServedQueue::ServedQueue(function::NetworkFunction& function, unsigned worker, std::unique_ptr<const MappedFile> memory,
                         std::size_t ports, std::function<void(const char*)> wrong)
    : memory_(std::move(memory)),
      ports_(ports),
      wrong_(std::move(wrong)),
      stack_(function.traits().cpu.reads, std::array{function::stack_use(function)}, worker),
      stage_(function.make_cpu_stage()) {
  if (stack::Attachment* const attachment = stack_.attachment(0)) stage_->attach(*attachment);
  number_ = page().submitted.load();
  thread_ = std::thread([this] { run(); });
}

ServedQueue::~ServedQueue() {
  stops_.store(true);
  wake(page().submitted);
  thread_.join();
}

std::optional<std::uint64_t> ServedQueue::add(std::unique_ptr<const MappedFile> frames) {
  const std::size_t count = frame_count_.load();
  if (count == frames_.size()) return std::nullopt;
  frames_[count] = std::move(frames);
  frame_count_.store(count + 1, std::memory_order_release);
  return kCopies + 1 + count;
}

void ServedQueue::run() noexcept {
  static_cast<void>(::pthread_setname_np(::pthread_self(), "queue"));
  constexpr unsigned kPolls = 2048, kYields = 4096;
  std::atomic<std::uint32_t>& submitted = page().submitted;
  std::atomic<std::uint32_t>& sleeping = page().sleeping;
  unsigned idle_rounds = 0;
  while (!stops_.load(std::memory_order_relaxed)) {
    if (submitted.load(std::memory_order_acquire) != number_) {
      idle_rounds = 0;
      if (const char* const why = serve()) {
        wrong_(why);
        break;
      }
      continue;
    }
    if (++idle_rounds <= kPolls) continue;
    if (idle_rounds <= kYields) {
      std::this_thread::yield();
      continue;
    }
    stage_->begin_batch();  // tables and logs go on even when no packets come
    sleeping.store(1, std::memory_order_seq_cst);
    if (submitted.load(std::memory_order_seq_cst) == number_) sleep_on(submitted, number_);
    sleeping.store(0, std::memory_order_seq_cst);
    idle_rounds = kPolls;
  }
  stage_->begin_batch();  // the last one
  stack_.finish();
}

/// Null, or how the chain's process breaks the protocol.
const char* ServedQueue::serve() noexcept {
  const std::uint32_t waiting = page().submitted.load(std::memory_order_acquire) - number_;
  if (waiting > kSlots) return "more bursts than there are slots";
  BurstSlot& slot = page().slots[(number_ + 1) % kSlots];
  const std::uint32_t kind = slot.kind;
  const std::size_t packets = slot.packets;
  const bool begins_batch = slot.begins_batch != 0;
  if (packets == 0 || packets > function::kBurst) return "a burst of a wrong size";
  if (const char* const why = take(slot, packets)) return why;
  if (begins_batch) stage_->begin_batch();
  const std::span<PacketView> burst = std::span(views_).first(packets);
  stack_.prepare(burst);
  if (kind == BurstSlot::kObserve) {
    for (const PacketView& packet : burst) stage_->observe(packet);
  } else {
    stage_->process(burst);
    stack_.settle(0);
    // A stage may reorder its views, but not the descriptors.
    for (std::size_t i = 0; i < packets; ++i) slot.results[i] = {descriptors_[i].verdict, descriptors_[i].mark};
    packets_.store(packets_.load(std::memory_order_relaxed) + packets, std::memory_order_relaxed);
  }
  page().done.store(++number_, std::memory_order_release);
  return nullptr;
}

/// Copies the descriptors, checks them and finds their frames. What can change later is bytes of frames.
const char* ServedQueue::take(const BurstSlot& slot, std::size_t packets) noexcept {
  std::memcpy(static_cast<void*>(descriptors_.data()), slot.descriptors.data(), packets * sizeof(PacketDescriptor));
  for (std::size_t i = 0; i < packets; ++i) {
    PacketDescriptor& packet = descriptors_[i];
    const FramePlace place = __atomic_load_n(&slot.frames[i], __ATOMIC_RELAXED);
    const std::span<std::uint8_t> memory = memory_named(memory_of(place));
    const std::uint64_t offset = offset_of(place);
    if (offset > memory.size() || packet.length > memory.size() - offset) return "a frame outside its memory";
    if (packet.link_type > kLastLinkType) return "an unknown link type";
    const PortIndex out = packet.verdict.value;
    if (packet.in_port >= ports_ || (out != kNoPort && out >= ports_)) return "an unknown port";
    packet.verdict = Verdict::forward(out);
    packet.region = PacketMemory::kBatch;
    packet.offset = 0;
    packet.layout = {};
    views_[i] = {memory.data() + offset, &packet};
  }
  return nullptr;
}

/// Empty: there is none.
std::span<std::uint8_t> ServedQueue::memory_named(std::uint64_t number) const noexcept {
  if (number == kCopies) return memory_->bytes().subspan(kCopiesAt);
  const std::size_t index = number - kCopies - 1;
  return index < frame_count_.load(std::memory_order_acquire) ? frames_[index]->bytes() : std::span<std::uint8_t>();
}

}  // namespace penstock::process
