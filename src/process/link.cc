// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <system_error>
#include <utility>

namespace penstock::process {

namespace {

using Clock = std::chrono::steady_clock;

/// Reading large tables takes seconds.
constexpr std::chrono::seconds kLongestMaking{60};
constexpr std::chrono::milliseconds kLongestReply{1000};
constexpr std::chrono::milliseconds kLongestRelease{100};
constexpr std::chrono::milliseconds kStopLook{50};

}  // namespace

Result<Link::Opened> Link::open(const std::string& path, const Hello& hello, const std::atomic<bool>* stop) {
  auto socket = ipc::connect_to(path, {"the function's process", "penstock function serve"});
  if (!socket) return failure(std::move(socket.error()));
  std::shared_ptr<Link> link(new Link(std::move(*socket)));
  std::optional<ipc::Received> answer;
  const int error = ipc::send_message(link->socket_.get(), bytes_of(hello), {}, kLongestReply);
  if (error != 0 && error != EPIPE && error != ECONNRESET) {
    errno = error;
  } else {  // a process that refuses may have said why before it has read anything
    const auto end = Clock::now() + kLongestMaking;
    do {
      answer = ipc::receive_message(link->socket_.get(), sizeof(Description), kStopLook);
    } while (!answer && errno == ETIMEDOUT && Clock::now() < end && (stop == nullptr || !stop->load()));
  }
  const auto description = answer ? message_of<Description>(answer->bytes) : std::nullopt;
  if (!description)
    return failure(Error{{path, 0, 0},
                         "the function's process does not answer",
                         answer           ? "another message"
                         : errno == EPIPE ? "a connection that it has closed"
                                          : std::system_category().message(errno),
                         "a `penstock function serve` of this release, and no other service"});
  return Opened{std::move(link), *description};
}

void Link::lose(const char* why) noexcept {
  const char* none = nullptr;
  if (why_lost_.compare_exchange_strong(none, why)) static_cast<void>(::shutdown(socket_.get(), SHUT_RDWR));
}

const char* Link::take_loss() noexcept {
  if (!is_lost() || is_loss_taken_.exchange(true)) return nullptr;
  return why_lost_.load();
}

void Link::lose_after_request() noexcept { lose(has_gone() ? kHasEnded : "does not answer a request"); }

std::optional<std::uint32_t> Link::request_bytes(std::span<const std::byte> message, int file) {
  const std::lock_guard lock(mutex_);
  if (is_lost()) return std::nullopt;
  std::optional<Reply> reply;
  if (ipc::send_message(socket_.get(), message, std::span(&file, 1), kLongestReply) == 0) {
    const auto answer = ipc::receive_message(socket_.get(), sizeof(Reply), kLongestReply);
    if (answer) reply = message_of<Reply>(answer->bytes);
  }
  if (!reply) lose_after_request();
  return reply && reply->failed == 0 ? std::optional(reply->id) : std::nullopt;
}

Result<function::GrantToken> Link::ask_token(const std::function<bool()>& gives_up) {
  const std::lock_guard lock(mutex_);
  if (is_lost()) return failure(Error{{}, "the function's process has gone", "", ""});
  std::optional<ipc::Received> answer;
  if (const int error = ipc::send_message(socket_.get(), bytes_of(AskToken{}), {}, kLongestReply); error != 0) {
    errno = error;
  } else {
    const auto end = Clock::now() + kLongestMaking;
    do {
      answer = ipc::receive_message(socket_.get(), sizeof(TokenReply), kStopLook);
    } while (!answer && errno == ETIMEDOUT && Clock::now() < end && !is_lost() && !gives_up());
  }
  const auto reply = answer ? message_of<TokenReply>(answer->bytes) : std::nullopt;
  if (!reply) {
    lose_after_request();
    return failure(Error{{}, "the function's process does not say where its tables are", "", ""});
  }
  if (reply->failed != 0)
    return failure(Error{{},
                         "the function's process has no tables at the proxy",
                         printable(reply->message.view()),
                         "tables that it can load there"});
  grant_.store(function::grant_number(reply->token), std::memory_order_release);
  return reply->token;
}

void Link::end_queue(std::uint32_t queue) noexcept {
  if (is_lost()) return;
  EndQueue message;
  message.queue = queue;
  const std::lock_guard lock(mutex_);
  if (!is_lost() && ipc::send_message(socket_.get(), bytes_of(message), {}, kLongestRelease) != 0) lose_after_request();
}

std::unique_ptr<Queue> Queue::make(const std::shared_ptr<Link>& link, unsigned worker, FrameRoom growth) {
  std::span<std::uint8_t> memory(static_cast<std::uint8_t*>(map_memory(kQueueBytes, true)), kQueueBytes);
  std::unique_ptr<Queue> queue(new Queue(link, memory, growth));  // owns the memory
  MakeQueue request;
  request.worker = worker;
  const auto id = link->request(request, shared_part_of(memory)->file);
  if (!id) return nullptr;
  queue->id_ = *id;
  return queue;
}

Queue::~Queue() {
  link_->end_queue(id_);
  unmap_memory(memory_.data(), memory_.size());
}

std::optional<Queue::Frames> Queue::open(int file, std::span<const std::uint8_t> memory, bool writes) {
  const ipc::FileDescriptor reader(writes ? -1 : read_only_file(file));
  if (!writes && !reader) return std::nullopt;
  OpenMemory request;
  request.queue = id_;
  request.bytes = memory.size();
  const auto number = link_->request(request, writes ? file : reader.get());
  // No other number has a place in a burst, and that of the queue's own memory least of all.
  if (!number || *number <= kCopies || *number > kMostMemories) return std::nullopt;
  return Frames{*number, memory};
}

void Queue::use(const Frames& frames) noexcept {
  if (frame_count_ < frames_.size()) frames_[frame_count_++] = frames;
}

std::optional<FramePlace> Queue::find(PacketView packet) const noexcept {
  const std::less<const std::uint8_t*> lies_before;
  for (const Frames& frames : std::span(frames_).first(frame_count_)) {
    const std::uint8_t* const first = frames.memory.data();
    if (lies_before(packet.frame, first) || lies_before(first + frames.memory.size(), packet.frame)) continue;
    const auto offset = static_cast<std::size_t>(packet.frame - first);
    if (packet.length() <= frames.memory.size() - offset) return frame_place(frames.number, offset);
  }
  return std::nullopt;
}

bool Queue::begin() noexcept {
  if (under_way() == kSlots) return false;
  bursts_[(submitted_ + 1) % kSlots].packets = 0;
  copied_bytes_ = 0;
  return true;
}

Queue::Added Queue::add(PacketView packet, bool copies, std::span<const std::byte> finding) noexcept {
  const std::size_t slot = (submitted_ + 1) % kSlots;
  Burst& burst = bursts_[slot];
  if (burst.packets == function::kBurst) return Added::no;
  const auto found = copies ? std::nullopt : find(packet);
  FramePlace& place = burst.places[burst.packets];
  if (found) {
    place = *found;
  } else {
    const std::size_t room = room_of_copy(packet.length(), growth_);
    if (room > kCopiesBytes - copied_bytes_) return Added::no;
    place = frame_place(kCopies, slot * kCopiesBytes + copied_bytes_ + room_before_copy(growth_));
    if (packet.length() > 0) std::memcpy(memory_.data() + kCopiesAt + offset_of(place), packet.frame, packet.length());
    copied_bytes_ += room;
  }
  BurstSlot& shared = page().slots[slot];
  shared.frames[burst.packets] = place;
  PacketDescriptor& descriptor = shared.descriptors[burst.packets];
  descriptor = *packet.packet;
  // A later function may have dropped it since the device stage.
  if (!descriptor.verdict.alive()) descriptor.verdict = Verdict::forward();
  if (!finding.empty())
    std::memcpy(shared.findings.data() + burst.packets * finding.size(), finding.data(), finding.size());
  ++burst.packets;
  return found ? Added::in_place : Added::copied;
}

void Queue::add_state(std::span<const std::byte> state) noexcept {
  const std::size_t slot = (submitted_ + 1) % kSlots;
  std::memcpy(page().slots[slot].states.data() + (bursts_[slot].packets - 1) * state.size(), state.data(),
              state.size());
}

void Queue::submit(BurstSlot::Kind kind, bool begins_batch, const function::PassedOver& passed_over) noexcept {
  if (under_way() == 0) expect_next();
  ++submitted_;
  BurstSlot& slot = page().slots[submitted_ % kSlots];
  slot.kind = kind;
  slot.packets = static_cast<std::uint32_t>(bursts_[submitted_ % kSlots].packets);
  slot.begins_batch = begins_batch ? 1 : 0;
  slot.passed_over = passed_over;
  // In one order with what the function's process does before it sleeps: one of both sees what the other has written.
  page().submitted.store(submitted_, std::memory_order_seq_cst);
  if (page().sleeping.load(std::memory_order_seq_cst) != 0) wake(page().submitted);
}

Queue::State Queue::state(std::chrono::nanoseconds longest) noexcept {
  if (state_ == State::running) state_ = look(longest);
  return state_;
}

Queue::State Queue::look(std::chrono::nanoseconds longest) noexcept {
  const auto is_done = [this] {
    // Only what is under way can be done, whatever the other process says.
    const std::uint32_t done = page().done.load(std::memory_order_acquire) - (taken_ + 1);
    return done < under_way();
  };
  if (is_done()) return State::done;
  if (link_->is_lost()) return State::lost;
  constexpr unsigned kBetweenLooks = 64;  // polls
  constexpr std::chrono::milliseconds kLook{1};
  if (polls_++ % kBetweenLooks != 0) return State::running;
  const Clock::time_point now = Clock::now();
  if (polls_ == 1) {
    since_ = now;
    next_look_ = now + kLook;
  }
  if (now < next_look_) return State::running;
  next_look_ = now + kLook;
  if (link_->has_gone()) return is_done() ? State::done : State::gone;
  return now - since_ >= longest ? State::silent : State::running;
}

std::size_t Queue::take(std::span<PacketResult> results) noexcept {
  ++taken_;
  expect_next();
  const std::size_t packets = bursts_[taken_ % kSlots].packets;
  std::memcpy(results.data(), page().slots[taken_ % kSlots].results.data(), packets * sizeof(PacketResult));
  return packets;
}

void Queue::take_states(std::span<std::byte* const> states, std::size_t bytes_of_each) const noexcept {
  const std::byte* from = page().slots[(taken_ + 1) % kSlots].states.data();
  for (std::byte* const of_packet : states) {
    std::memcpy(of_packet, from, bytes_of_each);
    from += bytes_of_each;
  }
}

const std::uint8_t* Queue::copy(std::size_t packet) const noexcept {
  const FramePlace place = bursts_[taken_ % kSlots].places[packet];
  return memory_of(place) == kCopies ? memory_.data() + kCopiesAt + offset_of(place) : nullptr;
}

}  // namespace penstock::process
