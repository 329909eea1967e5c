// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <initializer_list>

namespace penstock {

namespace {

class GzipDecompressor final : public Decompressor {
 public:
  GzipDecompressor() {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) reason_ = "no memory for zlib";
  }
  GzipDecompressor(const GzipDecompressor&) = delete;
  GzipDecompressor& operator=(const GzipDecompressor&) = delete;
  ~GzipDecompressor() override { inflateEnd(&stream_); }

  std::ptrdiff_t decompress(std::span<const std::uint8_t>& compressed, std::span<std::uint8_t> into) noexcept override {
    if (!reason_.empty()) return -1;
    stream_.next_out = into.data();
    stream_.avail_out = static_cast<uInt>(into.size());
    while (stream_.avail_out == into.size()) {
      if (!inside_stream_) {
        // Zero bytes may pad the end (gzip(1)). Anything else is the next stream.
        while (!compressed.empty() && compressed.front() == 0) compressed = compressed.subspan(1);
        if (compressed.empty()) return 0;
        inflateReset(&stream_);
        inside_stream_ = true;
      }
      stream_.next_in = const_cast<Bytef*>(compressed.data());
      stream_.avail_in = static_cast<uInt>(compressed.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      compressed = compressed.last(stream_.avail_in);
      if (status == Z_STREAM_END) {
        inside_stream_ = false;
      } else if (status == Z_BUF_ERROR) {
        break;
      } else if (status != Z_OK) {
        reason_ = std::string("gzip: ") + (stream_.msg != nullptr ? stream_.msg : zError(status));
        break;
      }
    }
    const std::size_t wrote = into.size() - stream_.avail_out;
    return wrote != 0 || reason_.empty() ? static_cast<std::ptrdiff_t>(wrote) : -1;
  }

 private:
  z_stream stream_{};
};

class ZstdDecompressor final : public Decompressor {
 public:
  ZstdDecompressor() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) reason_ = "no memory for zstd";
  }

  std::ptrdiff_t decompress(std::span<const std::uint8_t>& compressed, std::span<std::uint8_t> into) noexcept override {
    if (!reason_.empty()) return -1;
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    for (;;) {
      ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in);
      compressed = compressed.subspan(in.pos);
      if (ZSTD_isError(status) != 0) {
        reason_ = std::string("zstd: ") + ZSTD_getErrorName(status);
        return out.pos != 0 ? static_cast<std::ptrdiff_t>(out.pos) : -1;
      }
      // Status 0 means that a frame is complete. After a call that neither read nor wrote, it refers to a frame that
      // has not begun.
      if (in.pos != 0 || out.pos != 0) inside_stream_ = status != 0;
      if (out.pos != 0 || in.pos == 0) return static_cast<std::ptrdiff_t>(out.pos);
    }
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
};

bool begins_with(std::span<const std::uint8_t> bytes, std::initializer_list<std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

}  // namespace

std::unique_ptr<Decompressor> Decompressor::for_input(std::span<const std::uint8_t> first_bytes) {
  if (begins_with(first_bytes, {0x1f, 0x8b})) return std::make_unique<GzipDecompressor>();
  const bool zstd_skippable = first_bytes.size() >= kMagicBytes && (first_bytes[0] & 0xf0) == 0x50 &&
                              begins_with(first_bytes.subspan(1), {0x2a, 0x4d, 0x18});  // RFC 8878 §3.1.2
  if (begins_with(first_bytes, {0x28, 0xb5, 0x2f, 0xfd}) || zstd_skippable) return std::make_unique<ZstdDecompressor>();
  return nullptr;
}

}  // namespace penstock
