#include "receive_comm.h"

#include <arpa/inet.h>

#include <cstddef>
#include <cstring>
#include <utility>

namespace mrc::nccl {
namespace {

constexpr unsigned kSpareWrites = 32;

}  // namespace

QueuePairOptions ReceiveComm::options() {
  return {.max_sends = kSlots + kSpareWrites,
          .max_receives = 2 * kSlots,
          .ring_bytes = kSlots * sizeof(GroupSizes),
          .staging_bytes = kSlots * kCreditStride};
}

ReceiveComm::ReceiveComm(ConnectionParts parts) : Connection(std::move(parts)) {
  for (ReceiveRequest& request : requests_)
    request.owner = this;
}

Result ReceiveComm::receive(const Receives& receives, void** request) {
  *request = nullptr;
  if (failure() != Result::kSuccess) return failure();
  ReceiveRequest& next = requests_.at(posted_ % kSlots);
  if (next.in_use || pair().free_sends() == 0) return progress();
  Credit credit;
  credit.count = receives.count;
  next.count = receives.count;
  next.room = next.got = {};
  for (unsigned i = 0; i < receives.count; ++i) {
    const auto* const memory = static_cast<const MemoryHandle*>(receives.memory[i]);
    const std::size_t size = receives.sizes.at(i);
    if (size > 0 && memory == nullptr) return Result::kInvalidArgument;
    next.room.at(i) = size;
    credit.entries.at(i) = {.address = reinterpret_cast<std::uintptr_t>(receives.data[i]),
                            .size = size,
                            .key = memory == nullptr ? 0 : memory->remote_key(),
                            .tag = receives.tags[i]};
  }
  const std::size_t offset = posted_ % kSlots * kCreditStride;
  std::byte* const staged = pair().staging() + offset;
  std::memcpy(staged, &credit, sizeof credit);
  const std::size_t used = offsetof(Credit, entries) + receives.count * sizeof(CreditEntry);
  const Write write{.data = staged,
                    .size = static_cast<std::uint32_t>(used),
                    .local_key = pair().staging_key(),
                    .remote_address = pair().remote_ring() + offset,
                    .remote_key = pair().remote_ring_key()};
  const int error =
      pair().post_write_with_immediate(write, static_cast<std::uint32_t>(posted_ & kSequenceMask));
  if (error != 0)
    return fail(Result::kSystemError, "a receive cannot be announced: %s", std::strerror(error));
  ++posted_;
  next.in_use = true;
  next.done = false;
  *request = &next;
  return Result::kSuccess;
}

void ReceiveComm::on_completion(const ibv_wc& done) {
  if ((done.opcode & IBV_WC_RECV) == 0) return;  // a credit is over there
  const std::uint32_t immediate = ntohl(done.imm_data);
  if (arrived_ == posted_ || !same_sequence(immediate, arrived_) || pair().post_receive() != 0) {
    fail(Result::kRemoteError, "it sent a message that nobody asked for");
    return;
  }
  ReceiveRequest& request = requests_.at(arrived_ % kSlots);
  if ((immediate & kTooLong) != 0) {
    fail(Result::kInvalidUsage,
         "its message %llu is longer than the receive of %llu bytes; do all ranks run the same "
         "collectives with the same sizes?",
         static_cast<unsigned long long>(arrived_),
         static_cast<unsigned long long>(request.room.front()));
    return;
  }
  if ((immediate & kSizesWritten) != 0) {
    std::memcpy(request.got.data(), pair().ring() + arrived_ % kSlots * sizeof(GroupSizes),
                sizeof(GroupSizes));
  } else {
    request.got.front() = done.byte_len;
  }
  for (unsigned i = 0; i < request.count; ++i) {
    if (request.got.at(i) > request.room.at(i)) {
      fail(Result::kRemoteError, "it says that it sent more than there was room for");
      return;
    }
  }
  ++arrived_;
  request.done = true;
}

void ReceiveComm::on_bye(std::uint64_t /*messages_received*/) {}

Result ReceiveComm::test(Request& request, int* done, int* sizes) {
  *done = 0;
  Result result = Result::kSuccess;
  if (!request.done) result = progress();
  if (!request.done) return result;
  auto& ours = static_cast<ReceiveRequest&>(request);
  *done = 1;
  for (unsigned i = 0; sizes != nullptr && i < ours.count; ++i)
    sizes[i] = static_cast<int>(ours.got.at(i));
  ours.in_use = ours.done = false;
  return Result::kSuccess;
}

}  // namespace mrc::nccl
