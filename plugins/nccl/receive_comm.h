// The receiving end of a connection.
//
// A receive tells the sender where its buffers are (credit.h) and is done when the immediate of its
// number arrives, which the device delivers after all data sent before. A receive whose completion
// NCCL does not ask for is treated like any other: testing it is what drives the device.
#pragma once

#include <array>
#include <cstdint>

#include "connection.h"
#include "credit.h"

namespace mrc::nccl {

// What one receive asks for.
struct Receives {
  unsigned count = 0;
  void* const* data = nullptr;
  std::array<std::size_t, kMaxGroup> sizes{};
  const int* tags = nullptr;
  void* const* memory = nullptr;
};

class ReceiveComm final : public Connection {
 public:
  static QueuePairOptions options();
  explicit ReceiveComm(ConnectionParts parts);

  // *request stays empty when too many are outstanding; try again.
  Result receive(const Receives& receives, void** request);
  Result test(Request& request, int* done, int* sizes) override;

 private:
  struct ReceiveRequest : Request {
    unsigned count = 0;
    GroupSizes room{};
    GroupSizes got{};
  };

  void on_completion(const ibv_wc& done) override;
  void on_bye(std::uint64_t messages_received) override;
  std::uint64_t messages_received() const override { return arrived_; }

  std::array<ReceiveRequest, kSlots> requests_;
  std::uint64_t posted_ = 0;
  std::uint64_t arrived_ = 0;
};

}  // namespace mrc::nccl
