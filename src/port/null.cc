// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/null.h"

namespace penstock::port {

namespace {

class NullPort final : public Port, private TxQueue {
 public:
  bool reads() const noexcept override { return false; }
  bool writes() const noexcept override { return true; }
  Result<void> open(const Opening&) override { return {}; }
  RxQueue* rx(unsigned) noexcept override { return nullptr; }
  TxQueue* tx(unsigned) noexcept override { return this; }  // stateless, so one serves all workers
  Errors close() override { return {}; }
  Result<std::string> continuity() const override { return std::string("null"); }

 private:
  std::size_t send(std::span<const PacketView> packets) noexcept override { return packets.size(); }
};

Result<std::unique_ptr<Port>> make(const Parameters&, PortIndex) { return std::make_unique<NullPort>(); }

}  // namespace

PortKind null_kind() noexcept { return {"null", "accepts every packet and discards it", {}, make}; }

}  // namespace penstock::port
