// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/filter_output.h"

#include <cstring>

namespace penstock::cli {

namespace {

constexpr std::size_t kMostPieces = 1024;
constexpr std::size_t kJoinedBytes = 256 << 10;
constexpr std::size_t kShortRun = 512;
constexpr std::size_t kShortRunOfPipe = 64 << 10;

}  // namespace

Result<FilterOutput> FilterOutput::open(const std::string& path, int stop_fd) {
  auto sink = port::ByteSink::open(path, stop_fd);
  if (!sink) return tl::unexpected(std::move(sink.error()));
  return FilterOutput(path == "-" ? "standard output" : path, std::move(*sink));
}

FilterOutput::FilterOutput(std::string path, std::unique_ptr<port::ByteSink> sink)
    : path_(std::move(path)),
      sink_(std::move(sink)),
      joined_below_(sink_->takes_pieces() ? kShortRun : kShortRunOfPipe),
      joined_(kJoinedBytes) {
  pieces_.reserve(kMostPieces);
}

void FilterOutput::begin(const port::RawCaptureReader::FileHeader& header) noexcept {
  sink_->begin();
  join(header);
}

void FilterOutput::end_run() noexcept {
  if (run_.empty()) return;
  if (run_.size() < joined_below_) {
    join(run_);
  } else {
    pieces_.push_back(run_);
    borrows_ = true;
  }
  run_ = {};
  if (pieces_.size() == kMostPieces) write_out();
}

void FilterOutput::join(Bytes run) noexcept {
  if (joined_.size() - used_ < run.size()) write_out();
  std::uint8_t* const to = joined_.data() + used_;
  std::memcpy(to, run.data(), run.size());
  used_ += run.size();
  if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == to) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + run.size()};
  } else {
    pieces_.emplace_back(to, run.size());
  }
}

void FilterOutput::end_batch(bool flush) noexcept {
  end_run();
  if (flush || borrows_) write_out();
}

void FilterOutput::write_out() noexcept {
  if (!pieces_.empty() && !failed()) sink_->write_all(pieces_);
  pieces_.clear();
  used_ = 0;
  borrows_ = false;
}

Errors FilterOutput::close() {
  end_batch(true);
  const bool is_complete = !failed();
  if (sink_->finish() && is_complete) return {};
  return {system_error(path_, "cannot write", sink_->reason())};
}

}  // namespace penstock::cli
