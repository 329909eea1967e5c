// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A capture that `penstock filter` writes. Records that follow each other in memory are written from where they lie;
// short runs of them are joined first, since a system call's work for each piece costs more than copying it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "port/byte_sink.h"
#include "port/raw_capture_reader.h"

namespace penstock::cli {

class FilterOutput {
 public:
  /// Opens or creates the file, see port::ByteSink::open.
  static Result<FilterOutput> open(const std::string& path, int stop_fd);
  /// Truncates the file and writes its header. Call it before the first record.
  void begin(const port::RawCaptureReader::FileHeader& header) noexcept;

  /// The record must stay valid until `end_batch`.
  void add(const port::RawRecord& record) noexcept {
    if (record.header + port::RawRecord::kHeaderBytes == record.data) {
      add({record.header, port::RawRecord::kHeaderBytes + record.length});
    } else {
      add({record.header, port::RawRecord::kHeaderBytes});
      add({record.data, record.length});
    }
  }
  /// The memory of the records is about to become invalid. Some of them may be kept in a buffer, unless `flush` is set.
  void end_batch(bool flush) noexcept;

  [[nodiscard]] bool failed() const noexcept { return !sink_->reason().empty(); }
  /// Writes what is left and closes the file. Call it once.
  [[nodiscard]] Errors close();

 private:
  using Bytes = std::span<const std::uint8_t>;

  FilterOutput(std::string path, std::unique_ptr<port::ByteSink> sink);

  void add(Bytes bytes) noexcept {
    if (run_.data() + run_.size() == bytes.data()) {
      run_ = {run_.data(), run_.size() + bytes.size()};
    } else {
      end_run();
      run_ = bytes;
    }
  }
  void end_run() noexcept;
  void join(Bytes run) noexcept;
  void write_out() noexcept;

  std::string path_;
  std::unique_ptr<port::ByteSink> sink_;
  std::size_t joined_below_;  // runs of fewer bytes are joined
  Bytes run_;                 // not yet in `pieces_`
  std::vector<Bytes> pieces_;
  std::vector<std::uint8_t> joined_;
  std::size_t used_ = 0;  // of `joined_`
  bool borrows_ = false;  // whether any piece is outside `joined_`
};

}  // namespace penstock::cli
