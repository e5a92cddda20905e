#include "send_comm.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace mrc::nccl {
namespace {

constexpr unsigned kMaxSends = kSlots * kMaxGroup;
// Longer messages are several writes.
constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;
// Writes besides those of messages: sizes of groups, parts of long messages.
constexpr unsigned kSpareWrites = 128;
constexpr std::uint64_t kNoRequest = UINT64_MAX;

}  // namespace

QueuePairOptions SendComm::options() {
  return {.max_sends = kMaxSends + kSpareWrites,
          .max_receives = 2 * kSlots,
          .ring_bytes = kSlots * kCreditStride,
          .staging_bytes = kSlots * sizeof(GroupSizes)};
}

SendComm::SendComm(ConnectionParts parts) : Connection(std::move(parts)), requests_(kMaxSends) {
  free_requests_.reserve(kMaxSends);
  for (unsigned i = kMaxSends; i > 0; --i) {
    requests_[i - 1].owner = this;
    free_requests_.push_back(i - 1);
  }
}

CreditEntry* SendComm::match(int tag, unsigned& place) {
  if (current_ == credits_received_) return nullptr;
  Slot& slot = slots_.at(current_ % kSlots);
  for (place = 0; place < slot.credit.count; ++place) {
    CreditEntry& entry = slot.credit.entries.at(place);
    if (entry.tag == tag && (slot.matched_mask >> place & 1) == 0) return &entry;
  }
  return nullptr;
}

Result SendComm::send(const void* data, std::size_t size, int tag, const MemoryHandle* memory,
                      void** request) {
  *request = nullptr;
  if (failure() != Result::kSuccess) return failure();
  if (size > 0 && (data == nullptr || memory == nullptr)) return Result::kInvalidArgument;
  unsigned place = 0;
  CreditEntry* entry = match(tag, place);
  const std::size_t writes = size / kMaxWriteBytes + 2;
  if (entry == nullptr || free_requests_.empty() || pair().free_sends() < writes) {
    const Result result = progress();
    if (result != Result::kSuccess) return result;
    entry = match(tag, place);
    if (entry == nullptr || free_requests_.empty() || pair().free_sends() < writes)
      return Result::kSuccess;
  }
  if (size > entry->size) return too_long(*entry, size);

  const std::uint32_t index = free_requests_.back();
  Slot& slot = slots_.at(current_ % kSlots);
  const bool lone = slot.credit.count == 1 && size <= kMaxWriteBytes;
  const Write whole{
      .id = index, .data = data, .local_key = memory == nullptr ? 0 : memory->local_key()};
  slot.sizes.at(place) = size;
  slot.matched_mask |= 1U << place;
  const bool last = slot.matched_mask == (1U << slot.credit.count) - 1;
  int error = post_data(*entry, whole, size, lone);
  if (error == 0 && last && !lone) error = post_sizes();
  if (error != 0) {
    return fail(Result::kSystemError, "a message of %zu bytes cannot be posted: %s", size,
                std::strerror(error));
  }
  free_requests_.pop_back();
  SendRequest& made = requests_[index];
  made.in_use = true;
  made.done = size == 0 && !lone;
  made.slot = current_;
  made.size = size;
  if (last) ++current_;
  *request = &made;
  return Result::kSuccess;
}

// The receiver must know as well, so that it does not wait for ever.
Result SendComm::too_long(const CreditEntry& entry, std::size_t size) {
  const Write nothing{.id = kNoRequest,
                      .remote_address = pair().remote_ring(),
                      .remote_key = pair().remote_ring_key()};
  const auto number = static_cast<std::uint32_t>(current_ & kSequenceMask);
  pair().post_write_with_immediate(nothing, number | kTooLong);
  return fail(Result::kInvalidUsage,
              "message %llu has %zu bytes and its receive only %llu; do all ranks run the same "
              "collectives with the same sizes?",
              static_cast<unsigned long long>(current_), size,
              static_cast<unsigned long long>(entry.size));
}

int SendComm::post_data(const CreditEntry& entry, const Write& whole, std::size_t size, bool lone) {
  const auto number = static_cast<std::uint32_t>(current_ & kSequenceMask);
  Write part = whole;
  part.remote_address = entry.address;
  part.remote_key = entry.key;
  if (lone) {
    part.size = static_cast<std::uint32_t>(size);
    return pair().post_write_with_immediate(part, number);
  }
  while (size > 0) {
    const std::size_t bytes = std::min(size, kMaxWriteBytes);
    part.size = static_cast<std::uint32_t>(bytes);
    part.id = bytes == size ? whole.id : kNoRequest;
    const int error = pair().post_write(part);
    if (error != 0) return error;
    part.data = static_cast<const std::byte*>(part.data) + bytes;
    part.remote_address += bytes;
    size -= bytes;
  }
  return 0;
}

int SendComm::post_sizes() {
  const std::size_t offset = current_ % kSlots * sizeof(GroupSizes);
  std::byte* const staged = pair().staging() + offset;
  std::memcpy(staged, slots_.at(current_ % kSlots).sizes.data(), sizeof(GroupSizes));
  const Write sizes{.id = kNoRequest,
                    .data = staged,
                    .size = sizeof(GroupSizes),
                    .local_key = pair().staging_key(),
                    .remote_address = pair().remote_ring() + offset,
                    .remote_key = pair().remote_ring_key()};
  const auto number = static_cast<std::uint32_t>(current_ & kSequenceMask);
  return pair().post_write_with_immediate(sizes, number | kSizesWritten);
}

void SendComm::on_completion(const ibv_wc& done) {
  if ((done.opcode & IBV_WC_RECV) != 0) {
    on_credit(done);
  } else if (done.wr_id < requests_.size()) {
    requests_[done.wr_id].done = true;
  }
}

void SendComm::on_credit(const ibv_wc& done) {
  Slot& slot = slots_.at(credits_received_ % kSlots);
  std::memcpy(&slot.credit, pair().ring() + credits_received_ % kSlots * kCreditStride,
              sizeof slot.credit);
  const bool expected = credits_received_ - current_ < kSlots &&
                        same_sequence(ntohl(done.imm_data), credits_received_) &&
                        slot.credit.count >= 1 && slot.credit.count <= kMaxGroup;
  if (!expected || pair().post_receive() != 0) {
    fail(Result::kRemoteError, "it sent a credit out of turn or a malformed one");
    return;
  }
  slot.matched_mask = 0;
  slot.sizes = {};
  ++credits_received_;
}

void SendComm::on_bye(std::uint64_t messages_received) {
  for (SendRequest& request : requests_) {
    if (request.in_use && request.slot < messages_received) request.done = true;
  }
}

Result SendComm::test(Request& request, int* done, int* sizes) {
  *done = 0;
  Result result = Result::kSuccess;
  if (!request.done) result = progress();
  if (!request.done) return result;
  auto& ours = static_cast<SendRequest&>(request);
  *done = 1;
  if (sizes != nullptr) sizes[0] = static_cast<int>(ours.size);
  ours.in_use = ours.done = false;
  free_requests_.push_back(static_cast<std::uint32_t>(&ours - requests_.data()));
  return Result::kSuccess;
}

}  // namespace mrc::nccl
