// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/capture_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include "base/output_file.h"
#include "port/pcapng_blocks.h"

namespace penstock::cli {

namespace {

namespace pcapng = port::pcapng;

constexpr std::uint16_t kComment = 1, kInterfaceName = 2;  // options
constexpr std::uint8_t kNanoseconds = 9;                   // if_tsresol

/// Builds one block, in this machine's byte order.
class Block {
 public:
  explicit Block(std::uint32_t type) { u32(type).u32(0); }
  Block& u16(std::uint16_t value) { return raw(&value, sizeof value); }
  Block& u32(std::uint32_t value) { return raw(&value, sizeof value); }
  Block& bytes(const void* data, std::size_t size) {
    raw(data, size);
    text_.resize(pcapng::padded(text_.size()), '\0');
    return *this;
  }
  Block& option(std::uint16_t code, const void* data, std::size_t size) {
    constexpr std::size_t kMost = 0xffff;
    size = std::min(size, kMost);
    return u16(code).u16(static_cast<std::uint16_t>(size)).bytes(data, size);
  }
  Block& option(std::uint16_t code, const std::string& text) { return option(code, text.data(), text.size()); }
  [[nodiscard]] std::string end_of_options() {
    u16(pcapng::kEndOfOptions).u16(0);
    return end();
  }
  [[nodiscard]] std::string end() {
    const auto length = static_cast<std::uint32_t>(text_.size() + pcapng::kTail);
    u32(length);
    std::memcpy(text_.data() + sizeof length, &length, sizeof length);
    return std::move(text_);
  }

 private:
  Block& raw(const void* data, std::size_t size) {
    text_.append(static_cast<const char*>(data), size);
    return *this;
  }
  std::string text_;
};

std::string section() {
  return Block(pcapng::kSection).u32(pcapng::kByteOrderMagic).u16(1).u16(0).u32(~0U).u32(~0U).end();
}

std::string interface(const std::string& name, std::uint16_t link_type) {
  constexpr std::uint32_t kNoLimit = 0;
  return Block(pcapng::kInterface)
      .u16(link_type)
      .u16(0)
      .u32(kNoLimit)
      .option(kInterfaceName, name)
      .option(pcapng::kTimeResolution, &kNanoseconds, 1)
      .end_of_options();
}

/// pcap with the byte order, resolution and header of any writer, or pcapng.
bool is_capture(std::string_view beginning) {
  constexpr auto kMagics = std::to_array<std::uint32_t>({0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34, pcapng::kSection});
  std::uint32_t magic = 0;
  if (beginning.size() < sizeof magic) return false;
  std::memcpy(&magic, beginning.data(), sizeof magic);
  return std::ranges::any_of(kMagics,
                             [&](std::uint32_t known) { return magic == known || magic == __builtin_bswap32(known); });
}

}  // namespace

std::optional<std::vector<std::uint8_t>> bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> count));
  }
  return bytes;
}

Result<void> CaptureFile::check(const std::string& path) {
  if (path == "-") return {};
  if (auto named = check_compression(path); !named) return named;
  if (is_being_written(path))
    return failure(Error{{path, 0, 0}, "not overwritten", "a file that another process is writing", "another name"});
  return check_replaceable(path, "a capture", is_capture);
}

Result<CaptureFile> CaptureFile::create(const std::string& path) {
  // The file may have come since the command began.
  if (auto possible = check(path); !possible) return failure(std::move(possible.error()));
  std::unique_ptr<std::FILE, Close> file(path == "-" ? stdout : std::fopen(path.c_str(), "wbe"));
  if (file == nullptr)
    return failure(system_error(path, "cannot create the capture", std::system_category().message(errno)));
  CaptureFile capture(path, std::move(file));
  if (auto written = capture.write(section()); !written) return failure(std::move(written.error()));
  return capture;
}

Result<void> CaptureFile::add(const nlohmann::ordered_json& event) {
  const auto name = event.at("in").get<std::string>();
  const auto link_type = event.at("link_type").get<std::uint16_t>();
  const auto reason = event.at("reason").get<std::string>();
  const auto time_ns = event.at("time_ns").get<std::uint64_t>();
  const auto frame = bytes_of_base64(event.at("frame").get_ref<const std::string&>());
  if (!frame) return failure(Error{{path_, 0, 0}, "a frame that is not valid base64 came from the run", "", ""});
  std::string blocks;
  const auto [known, is_new] =
      interfaces_.try_emplace({name, link_type}, static_cast<std::uint32_t>(interfaces_.size()));
  if (is_new) blocks = interface(name, link_type);
  blocks += Block(pcapng::kEnhancedPacket)
                .u32(known->second)
                .u32(static_cast<std::uint32_t>(time_ns >> 32))
                .u32(static_cast<std::uint32_t>(time_ns))
                .u32(static_cast<std::uint32_t>(frame->size()))
                .u32(event.at("wire_length").get<std::uint32_t>())
                .bytes(frame->data(), frame->size())
                .option(kComment, reason)
                .end_of_options();
  return write(blocks);
}

Result<void> CaptureFile::write(const std::string& blocks) {
  if (std::fwrite(blocks.data(), 1, blocks.size(), file_.get()) == blocks.size() && std::fflush(file_.get()) == 0)
    return {};
  return failure(system_error(path_, "cannot write the capture", std::system_category().message(errno)));
}

}  // namespace penstock::cli
