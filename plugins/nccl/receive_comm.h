// The receiving end of a connection.
//
// A receive tells the sender where its buffers are (credit.h) and is done when the immediate of its
// number arrives, which the device delivers after all data sent before; or when short messages that
// waited for nothing have come for all of its buffers (eager.h). Where no others can be meant, the
// sender is told only when none has come after kPatience tests. A receive whose completion NCCL
// does not ask for is treated like any other: testing it is what drives the device.
#pragma once

#include <array>
#include <cstdint>

#include "connection.h"
#include "credit.h"
#include "eager.h"

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
  struct Place {
    void* data = nullptr;
    std::size_t room = 0;
    std::uint32_t key = 0;
    int tag = 0;
  };
  struct ReceiveRequest : Request {
    unsigned count = 0;
    std::array<Place, kMaxGroup> places{};
    GroupSizes got{};
    unsigned filled = 0;  // bit i: place i has its message
    bool is_announced = false;
    std::uint64_t number = 0;  // when announced

    bool is_full() const { return filled == (1U << count) - 1; }
  };

  static constexpr unsigned kPatience = 64;

  void on_completion(const ibv_wc& done) override;
  void on_bye(std::uint64_t messages_received) override;
  std::uint64_t messages_received() const override { return arrived_; }
  bool all_delivered() const override { return true; }

  ReceiveRequest& request(std::uint64_t posted) { return requests_.at(posted % kSlots); }
  bool may_wait(const ReceiveRequest& next);
  // Tells the sender of all receives that it does not know of. 0 or an errno.
  int announce();
  int post_credit(ReceiveRequest& next);
  void finish(ReceiveRequest& done);
  void on_written(std::uint32_t immediate, std::uint32_t length);
  void on_eager(std::uint32_t length);
  // Copies messages that wait into the places of a receive.
  void fill(ReceiveRequest& waiting);
  bool copy_out(unsigned slot, Place& place, std::uint64_t& got);
  void tell_taken();
  void too_long(const Place& place);
  std::uint64_t first_open() const;

  std::array<ReceiveRequest, kSlots> requests_;
  std::uint64_t posted_ = 0;
  std::uint64_t seen_ = 0;                      // receives before this are announced or full
  std::uint64_t announced_ = 0;                 // by number
  std::uint64_t arrived_ = 0;                   // all numbers before this are full
  std::array<std::uint64_t, kSlots> owners_{};  // by number, as counted by posted_
  std::array<bool, kSlots> full_{};             // by number
  unsigned waited_ = 0;                         // tests in vain
  EagerInbox eager_;
};

}  // namespace mrc::nccl
