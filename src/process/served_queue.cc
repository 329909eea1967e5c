// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/served_queue.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "function/granted_stage.h"
#include "function/stack_use.h"
#include "process/description.h"

namespace penstock::process {

namespace {

constexpr LinkType kLastLinkType = LinkType::cisco_hdlc;
/// Limits such as lifetimes are checked when a batch begins, whether or not the chain says that one does.
constexpr std::chrono::milliseconds kLongestBatch{10};

bool confirms(const function::NetworkFunction& function) noexcept {
  return function::confirmed_findings(function) && function.traits().findings_bytes <= kMostFindings;
}

/// Whether its states may cross through the chain's process.
bool makes_states(const function::NetworkFunction& function) noexcept {
  const std::uint32_t bytes = function.traits().state_bytes;
  return bytes > 0 && bytes <= kMostStates &&
         (confirms(function) || dynamic_cast<const function::DecidingFunction*>(&function) != nullptr);
}

}  // namespace

MappedFile::MappedFile(int file, std::size_t bytes, bool writes) {
  const int access = writes ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const memory = ::mmap(nullptr, bytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::uint8_t*>(memory), bytes};
}

MappedFile::~MappedFile() { ::munmap(bytes_.data(), bytes_.size()); }

ServedQueue::ServedQueue(function::NetworkFunction& function, unsigned worker, std::unique_ptr<const MappedFile> memory,
                         std::size_t ports, Ended ended)
    : memory_(std::move(memory)),
      ports_(ports),
      ended_(std::move(ended)),
      stack_(function.traits().cpu.reads, std::array{function::stack_use(function)}, worker),
      stage_(function.make_cpu_stage()),
      offloaded_(dynamic_cast<function::OffloadedStage*>(stage_.get())),
      finish_(confirms(function) ? function.make_finish_stage(*stage_) : nullptr),
      confirming_(dynamic_cast<function::ConfirmingStage*>(finish_.get())),
      findings_bytes_(function.traits().findings_bytes),
      states_(makes_states(function) ? function.make_state_stage(*stage_) : nullptr),
      state_bytes_(function.traits().state_bytes),
      growth_(changes_lengths(function.traits()) ? std::optional(function.traits().growth) : std::nullopt),
      reading_(dynamic_cast<function::ConnectionReadingStage*>(stage_.get())),
      descriptors_(offloaded_ == nullptr ? function::kBurst : kSlots * function::kBurst),
      views_(descriptors_.size()),
      own_memory_(growth_ ? descriptors_.size() / function::kBurst * kCopiesBytes : 0),
      own_frames_(growth_ ? descriptors_.size() : 0) {
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
  constexpr unsigned kPolls = 2048;
  using Clock = std::chrono::steady_clock;
  Clock::time_point yields_since;
  std::atomic<std::uint32_t>& submitted = page().submitted;
  std::atomic<std::uint32_t>& sleeping = page().sleeping;
  unsigned idle_rounds = 0;
  while (!stops_.load(std::memory_order_relaxed)) {
    if (waiting() != 0) {
      idle_rounds = 0;
      if (!serve()) break;
      continue;
    }
    if (++idle_rounds < kPolls) continue;
    if (idle_rounds == kPolls) yields_since = Clock::now();
    if (Clock::now() - yields_since < kYieldTime) {
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

/// Takes the next burst, or several if the stage wants them, and processes their packets. False: the queue has ended.
bool ServedQueue::serve() noexcept {
  const std::uint32_t most = offloaded_ == nullptr ? 1 : wait_for_more(waiting());
  if (const char* const why = take(std::min(most, kSlots))) {
    ended_(End::chain_is_wrong, why);
    return false;
  }
  const std::span<const Burst> bursts = std::span(bursts_).first(taken_);
  const auto now = std::chrono::steady_clock::now();
  if (std::ranges::any_of(bursts, &Burst::begins_batch) || now - batch_began_ > kLongestBatch) {
    batch_began_ = now;
    stage_->begin_batch();
  }
  for (const Burst& burst : bursts) stack_.prepare(std::span(views_).subspan(burst.first, burst.packets));
  const std::span<PacketView> packets = std::span(views_).first(taken_packets_);
  for (const Burst& burst : bursts) {
    if (confirming_ != nullptr && burst.passed_over.packets > 0) confirming_->pass_over(burst.passed_over);
  }
  if (bursts.front().kind == BurstSlot::kObserve) {
    for (const PacketView& packet : packets) stage_->observe(packet);
  } else if (bursts.front().kind == BurstSlot::kConfirm) {
    confirm(packets);
  } else if (bursts.front().kind == BurstSlot::kDecide) {
    decide(packets);
  } else {
    if (reading_ != nullptr) reading_->take_connections(std::span(connections_).first(packets.size()));
    stage_->process(packets);
    stack_.settle(0);
    if (offloaded_ != nullptr && !offloaded_->failure().empty()) {
      ended_(End::function_has_failed, offloaded_->failure());
      return false;
    }
  }
  if (bursts.front().kind != BurstSlot::kObserve)
    packets_.store(packets_.load(std::memory_order_relaxed) + packets.size(), std::memory_order_relaxed);
  finish();
  return true;
}

void ServedQueue::confirm(std::span<const PacketView> packets) noexcept {
  if (packets.empty()) return;
  std::array<const std::byte*, function::kBurst> of_each;
  std::array<const std::byte*, function::kBurst> states;
  if (states_ != nullptr) {
    for (std::size_t i = 0; i < packets.size(); ++i) states[i] = states_of_burst_.data() + i * state_bytes_;
    finish_->take_states(std::span(states).first(packets.size()));
  }
  for (std::size_t i = 0; i < packets.size(); ++i) of_each[i] = findings_.data() + i * findings_bytes_;
  finish_->finish(packets, std::span(of_each).first(packets.size()));
  stack_.settle(0);
}

void ServedQueue::decide(std::span<const PacketView> packets) noexcept {
  std::array<std::byte*, function::kBurst> of_each;
  for (std::size_t i = 0; i < packets.size(); ++i) of_each[i] = states_of_burst_.data() + i * state_bytes_;
  states_->fill(packets, std::span(of_each).first(packets.size()));
  BurstSlot& slot = page().slots[(number_ + 1) % kSlots];
  std::memcpy(slot.states.data(), states_of_burst_.data(), packets.size() * state_bytes_);
}

/// A launch takes longer than the chain's worker needs for its next bursts: waits until no more come for a while, or
/// all slots are in use. Returns how many wait, at least 1. Ends whatever the other process writes.
std::uint32_t ServedQueue::wait_for_more(std::uint32_t bursts) const noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kWhile{3};
  bursts = std::max(bursts, 1U);
  for (Clock::time_point until = Clock::now() + kWhile; bursts < kSlots;) {
    const std::uint32_t now = waiting();
    const Clock::time_point time = Clock::now();
    if (now > bursts) {
      bursts = now;
      until = time + kWhile;
    } else if (time >= until) {
      break;
    }
  }
  return bursts;
}

/// Takes at most so many bursts, which are all processed or all observed. Null, or how the chain's process breaks the
/// protocol.
const char* ServedQueue::take(std::uint32_t most) noexcept {
  if (waiting() > kSlots) return "more bursts than there are slots";
  taken_ = 0;
  taken_packets_ = 0;
  while (taken_ < most) {
    Burst& burst = bursts_[taken_];
    burst.first = taken_packets_;
    const BurstSlot& slot = page().slots[(number_ + taken_ + 1) % kSlots];
    // The other process may change the slot at any time.
    burst.kind = __atomic_load_n(&slot.kind, __ATOMIC_RELAXED);
    burst.begins_batch = __atomic_load_n(&slot.begins_batch, __ATOMIC_RELAXED) != 0;
    burst.packets = __atomic_load_n(&slot.packets, __ATOMIC_RELAXED);
    burst.passed_over = {__atomic_load_n(&slot.passed_over.packets, __ATOMIC_RELAXED),
                         __atomic_load_n(&slot.passed_over.bytes, __ATOMIC_RELAXED)};
    if (burst.kind > BurstSlot::kDecide) return "an unknown kind of burst";
    if (burst.kind == BurstSlot::kDecide && states_ == nullptr)
      return "packets that need states, for a function that makes none";
    const bool confirms = burst.kind == BurstSlot::kConfirm;
    if (confirms && confirming_ == nullptr) return "findings for a function that confirms none";
    if ((burst.packets == 0 && !confirms) || burst.packets > function::kBurst) return "a burst of a wrong size";
    const std::size_t room = offloaded_ == nullptr ? function::kBurst : offloaded_->most_packets();
    if (taken_ > 0 && (burst.kind != bursts_[0].kind || taken_packets_ + burst.packets > room)) break;
    if (const char* const why = take_packets(slot, burst)) return why;
    if (confirms) {
      if (const char* const why = take_findings(slot, burst)) return why;
    }
    if (reading_ != nullptr && burst.kind == BurstSlot::kProcess) {
      if (const char* const why = take_connections(slot, burst)) return why;
    }
    taken_packets_ += burst.packets;
    ++taken_;
  }
  return nullptr;
}

/// The results of the bursts that are taken, for the chain. A stage may reorder its views, but not the descriptors.
void ServedQueue::finish() noexcept {
  for (std::uint32_t b = 0; b < taken_; ++b) {
    const Burst& burst = bursts_[b];
    BurstSlot& slot = page().slots[(number_ + 1) % kSlots];
    for (std::size_t i = 0; i < burst.packets && burst.kind != BurstSlot::kObserve; ++i) {
      const PacketDescriptor& packet = descriptors_[burst.first + i];
      slot.results[i] = {packet.verdict, packet.mark, static_cast<std::int32_t>(-packet.offset), packet.length};
      if (growth_ && burst.kind == BurstSlot::kProcess) give_frame(burst.first + i);
    }
    page().done.store(++number_, std::memory_order_release);
  }
}

/// Copies the descriptors, checks them and finds their frames. What can change later is bytes of frames.
const char* ServedQueue::take_packets(const BurstSlot& slot, const Burst& burst) noexcept {
  PacketDescriptor* const descriptors = descriptors_.data() + burst.first;
  std::memcpy(static_cast<void*>(descriptors), slot.descriptors.data(), burst.packets * sizeof(PacketDescriptor));
  own_bytes_ = 0;
  for (std::size_t i = 0; i < burst.packets; ++i) {
    PacketDescriptor& packet = descriptors[i];
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
    views_[burst.first + i] = {memory.data() + offset, &packet};
    if (!growth_ || burst.kind != BurstSlot::kProcess) continue;
    if (const char* const why = take_frame(burst, i, place)) return why;
  }
  return nullptr;
}

/// Copies a frame that may change its length: what the function has written, such as an IV, must still be there when it
/// reads it again. The frame has to be a copy of the chain's, with the same room, so that it can be given back.
const char* ServedQueue::take_frame(const Burst& burst, std::size_t packet, FramePlace place) noexcept {
  PacketView& view = views_[burst.first + packet];
  const std::uint64_t offset = offset_of(place);
  const std::size_t length = view.length();
  const std::size_t after = memory_->bytes().size() - kCopiesAt;
  if (memory_of(place) != kCopies || offset < growth_->head || after - offset - length < growth_->tail)
    return "a frame without the room to grow";
  const std::size_t room = room_of_copy(length, *growth_);
  if (room > kCopiesBytes - own_bytes_) return "more bytes of frames than a burst can have";
  std::uint8_t* const own = own_memory_.data() + taken_ * kCopiesBytes + own_bytes_ + room_before_copy(*growth_);
  if (length > 0) std::memcpy(own, view.frame, length);
  view.frame = own;
  own_frames_[burst.first + packet] = {own, place};
  own_bytes_ += room;
  return nullptr;
}

/// Copies a frame back, as the function has left it.
void ServedQueue::give_frame(std::size_t packet) noexcept {
  const PacketDescriptor& descriptor = descriptors_[packet];
  if (!descriptor.verdict.alive() || descriptor.length == 0) return;
  const auto head = static_cast<std::int32_t>(-descriptor.offset);
  const OwnFrame& own = own_frames_[packet];
  std::memcpy(memory_->bytes().data() + kCopiesAt + offset_of(own.from) - head, own.frame - head, descriptor.length);
}

/// Copies what the chain's process knows of the packets' connections, and checks it. A function that reads it gets one
/// burst at a time.
const char* ServedQueue::take_connections(const BurstSlot& slot, const Burst& burst) noexcept {
  std::memcpy(static_cast<void*>(connections_.data()), slot.states.data(),
              burst.packets * sizeof(conntrack::PacketConnection));
  const auto of_burst = std::span(connections_).first(burst.packets);
  return std::ranges::all_of(of_burst, &conntrack::PacketConnection::is_possible) ? nullptr
                                                                                  : "a connection that cannot be";
}

/// Copies what a device has found, and checks it. A function that confirms findings gets one burst at a time.
const char* ServedQueue::take_findings(const BurstSlot& slot, const Burst& burst) noexcept {
  std::memcpy(findings_.data(), slot.findings.data(), burst.packets * findings_bytes_);
  for (std::size_t i = 0; i < burst.packets; ++i) {
    if (!confirming_->can_be(findings_.data() + i * findings_bytes_)) return "findings that no device can have";
  }
  if (states_ == nullptr) return nullptr;
  std::memcpy(states_of_burst_.data(), slot.states.data(), burst.packets * state_bytes_);
  for (std::size_t i = 0; i < burst.packets; ++i) {
    if (!confirming_->can_be_state(states_of_burst_.data() + i * state_bytes_)) return "states that cannot be";
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
