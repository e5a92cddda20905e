// The sending end of a connection.
//
// A message waits for the receiver's credit, which says where it goes, and is then one RDMA write
// into the receiver's buffer. A lone message carries the immediate itself; after the last one of a
// group its sizes follow with the immediate.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "connection.h"
#include "credit.h"

namespace mrc::nccl {

class SendComm final : public Connection {
 public:
  static QueuePairOptions options();
  explicit SendComm(ConnectionParts parts);

  // *request stays empty when the receiver is not ready; try again.
  Result send(const void* data, std::size_t size, int tag, const MemoryHandle* memory,
              void** request);
  Result test(Request& request, int* done, int* sizes) override;

 private:
  struct SendRequest : Request {
    std::uint64_t slot = 0;
    std::size_t size = 0;
  };
  // A credit and how far its group has come.
  struct Slot {
    Credit credit;
    unsigned matched_mask = 0;
    GroupSizes sizes{};
  };

  void on_completion(const ibv_wc& done) override;
  void on_bye(std::uint64_t messages_received) override;
  std::uint64_t messages_received() const override { return 0; }

  void on_credit(const ibv_wc& done);
  // The place of `tag` in the group at hand; none: its credit has not come yet.
  CreditEntry* match(int tag, unsigned& place);
  Result too_long(const CreditEntry& entry, std::size_t size);
  // Posts the data of a message. 0 or an errno.
  int post_data(const CreditEntry& entry, const Write& whole, std::size_t size, bool lone);
  int post_sizes();

  std::array<Slot, kSlots> slots_;
  std::uint64_t credits_received_ = 0;
  std::uint64_t current_ = 0;  // the group that messages are matched with
  std::vector<SendRequest> requests_;
  std::vector<std::uint32_t> free_requests_;
};

}  // namespace mrc::nccl
