// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What messages between processes are made of. A message is trivially copyable and has no padding, so that no byte of
// the sender's memory goes with it unnoticed. The receiver checks its own copy.

#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace penstock::ipc {

/// A text without a terminating zero if it fills the array.
template <std::size_t Bytes>
struct Text {
  std::array<char, Bytes> bytes{};

  Text() = default;
  explicit Text(std::string_view text) noexcept {
    for (std::size_t i = 0; i < text.size() && i < Bytes; ++i) bytes[i] = text[i];
  }
  [[nodiscard]] std::string_view view() const noexcept {
    const std::string_view all(bytes.data(), bytes.size());
    return all.substr(0, all.find('\0'));
  }
};

template <typename Message>
inline constexpr bool kIsMessage =
    std::is_trivially_copyable_v<Message>&& std::has_unique_object_representations_v<Message>;

template <typename Message>
[[nodiscard]] std::span<const std::byte> bytes_of(const Message& message) noexcept {
  return std::as_bytes(std::span(&message, 1));
}

/// Empty: it has another size.
template <typename Message>
[[nodiscard]] std::optional<Message> message_of(std::span<const std::byte> bytes) noexcept {
  static_assert(kIsMessage<Message>);
  if (bytes.size() != sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(static_cast<void*>(&message), bytes.data(), sizeof message);
  return message;
}

}  // namespace penstock::ipc
