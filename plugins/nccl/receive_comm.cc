#include "receive_comm.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace mrc::nccl {
namespace {

constexpr unsigned kSpareWrites = 32;
// In the ring, behind the sizes of groups.
constexpr std::size_t kEagerOffset = kSlots * sizeof(GroupSizes);

}  // namespace

QueuePairOptions ReceiveComm::options() {
  return {.max_sends = kSlots + kSpareWrites,
          .max_receives = 2 * kSlots,
          .ring_bytes = kEagerOffset + kEagerSlots * kEagerStride,
          .staging_bytes = kSlots * kCreditStride};
}

ReceiveComm::ReceiveComm(ConnectionParts parts) : Connection(std::move(parts)) {
  for (ReceiveRequest& request : requests_)
    request.owner = this;
}

Result ReceiveComm::receive(const Receives& receives, void** out) {
  *out = nullptr;
  if (failure() != Result::kSuccess) return failure();
  ReceiveRequest& next = request(posted_);
  if (next.in_use || pair().free_sends() == 0) return progress();
  for (unsigned i = 0; i < receives.count; ++i) {
    const auto* const memory = static_cast<const MemoryHandle*>(receives.memory[i]);
    const std::size_t size = receives.sizes.at(i);
    if (size > 0 && memory == nullptr) return Result::kInvalidArgument;
    next.places.at(i) = {.data = receives.data[i],
                         .room = size,
                         .key = memory == nullptr ? 0 : memory->remote_key(),
                         .tag = receives.tags[i]};
  }
  next.count = receives.count;
  next.got = {};
  next.filled = 0;
  next.is_announced = false;
  next.done = false;
  next.in_use = true;
  ++posted_;
  fill(next);
  if (failure() != Result::kSuccess) return failure();
  const int error = next.done || may_wait(next) ? 0 : announce();
  if (error != 0)
    return fail(Result::kSystemError, "a receive cannot be announced: %s", std::strerror(error));
  *out = &next;
  return Result::kSuccess;
}

// --- Credits ---

bool ReceiveComm::may_wait(const ReceiveRequest& next) {
  return pair().peer_takes_eager() && next.count == 1 && next.places.front().room <= kEagerBytes;
}

int ReceiveComm::announce() {
  waited_ = 0;
  // Those that needed no word may be long gone.
  for (seen_ = std::max(seen_, first_open()); seen_ != posted_ && pair().free_sends() > 0;
       ++seen_) {
    ReceiveRequest& next = request(seen_);
    const int error = next.is_full() ? 0 : post_credit(next);
    if (error != 0) return error;
  }
  return 0;
}

int ReceiveComm::post_credit(ReceiveRequest& next) {
  const EagerTaken taken = eager_.taken();
  Credit credit{.count = static_cast<std::uint8_t>(next.count),
                .filled = static_cast<std::uint8_t>(next.filled),
                .taken_others = taken.others,
                .taken_before = taken.all_before};
  for (unsigned i = 0; i < next.count; ++i) {
    const Place& place = next.places.at(i);
    credit.entries.at(i) = {.address = reinterpret_cast<std::uintptr_t>(place.data),
                            .size = place.room,
                            .key = place.key,
                            .tag = place.tag};
  }
  const std::size_t offset = announced_ % kSlots * kCreditStride;
  std::byte* const staged = pair().staging() + offset;
  std::memcpy(staged, &credit, sizeof credit);
  const std::size_t used = offsetof(Credit, entries) + next.count * sizeof(CreditEntry);
  const Write write{.data = staged,
                    .size = static_cast<std::uint32_t>(used),
                    .local_key = pair().staging_key(),
                    .remote_address = pair().remote_ring() + offset,
                    .remote_key = pair().remote_ring_key()};
  const int error = pair().post_write_with_immediate(
      write, static_cast<std::uint32_t>(announced_ & kSequenceMask));
  if (error != 0) return error;
  next.is_announced = true;
  next.number = announced_;
  owners_.at(announced_ % kSlots) = seen_;
  full_.at(announced_ % kSlots) = false;
  ++announced_;
  eager_.note_told();
  return 0;
}

void ReceiveComm::finish(ReceiveRequest& done) {
  done.done = true;
  if (!done.is_announced) return;
  full_.at(done.number % kSlots) = true;
  while (arrived_ != announced_ && full_.at(arrived_ % kSlots))
    ++arrived_;
}

// --- Arrivals ---

void ReceiveComm::on_completion(const ibv_wc& done) {
  if ((done.opcode & IBV_WC_RECV) == 0) return;  // a credit is over there
  const std::uint32_t immediate = ntohl(done.imm_data);
  if (pair().post_receive() != 0) {
    fail(Result::kSystemError, "no receive can be posted");
  } else if ((immediate & kEager) != 0) {
    on_eager(done.byte_len);
  } else {
    on_written(immediate, done.byte_len);
  }
}

void ReceiveComm::on_written(std::uint32_t immediate, std::uint32_t length) {
  if (arrived_ == announced_ || !same_sequence(immediate, arrived_)) {
    fail(Result::kRemoteError, "it sent a message that nobody asked for");
    return;
  }
  ReceiveRequest& full = request(owners_.at(arrived_ % kSlots));
  if ((immediate & kTooLong) != 0) {
    too_long(full.places.front());
    return;
  }
  GroupSizes sizes{};
  sizes.front() = length;
  if ((immediate & kSizesWritten) != 0)
    std::memcpy(sizes.data(), pair().ring() + arrived_ % kSlots * sizeof(GroupSizes), sizeof sizes);
  for (unsigned i = 0; i < full.count; ++i) {
    if ((full.filled >> i & 1) != 0) continue;
    full.got.at(i) = sizes.at(i);
    if (sizes.at(i) <= full.places.at(i).room) continue;
    fail(Result::kRemoteError, "it says that it sent more than there was room for");
    return;
  }
  full.filled = (1U << full.count) - 1;
  finish(full);
}

void ReceiveComm::too_long(const Place& place) {
  fail(Result::kInvalidUsage,
       "a message of it is longer than the receive of %llu bytes; do all ranks run the same "
       "collectives with the same sizes?",
       static_cast<unsigned long long>(place.room));
}

// --- Eager messages ---

void ReceiveComm::on_eager(std::uint32_t length) {
  const unsigned slot = eager_.next_slot();
  EagerHeader header;
  if (slot != EagerInbox::kNone)
    std::memcpy(&header, pair().ring() + kEagerOffset + slot * kEagerStride, sizeof header);
  if (slot == EagerInbox::kNone || header.size > kEagerBytes ||
      length != sizeof header + header.size) {
    fail(Result::kRemoteError, "it sent a short message out of turn or a malformed one");
    return;
  }
  eager_.add(header.tag);
  waited_ = 0;
  for (std::uint64_t posted = first_open(); posted != posted_; ++posted)
    fill(request(posted));
}

// A receive that is older than all that are outstanding has been tested and is free.
std::uint64_t ReceiveComm::first_open() const { return posted_ < kSlots ? 0 : posted_ - kSlots; }

void ReceiveComm::fill(ReceiveRequest& waiting) {
  if (!waiting.in_use || waiting.done) return;
  for (unsigned i = 0; i < waiting.count; ++i) {
    if ((waiting.filled >> i & 1) != 0) continue;
    Place& place = waiting.places.at(i);
    const unsigned slot = eager_.take(place.tag);
    if (slot == EagerInbox::kNone) continue;
    if (!copy_out(slot, place, waiting.got.at(i))) return;
    waiting.filled |= 1U << i;
  }
  if (waiting.is_full()) finish(waiting);
  if (eager_.must_tell()) tell_taken();
}

// The sender must know as well: for it the message is done.
bool ReceiveComm::copy_out(unsigned slot, Place& place, std::uint64_t& got) {
  const std::byte* const message = pair().ring() + kEagerOffset + slot * kEagerStride;
  EagerHeader header;
  std::memcpy(&header, message, sizeof header);
  if (header.size > std::min(place.room, kEagerBytes)) {
    const Write nothing{.remote_address = pair().remote_ring(),
                        .remote_key = pair().remote_ring_key()};
    pair().post_write_with_immediate(
        nothing, kTooLong | static_cast<std::uint32_t>(place.room & kSequenceMask));
    too_long(place);
    return false;
  }
  if (header.size > 0) std::memcpy(place.data, message + sizeof header, header.size);
  got = header.size;
  return true;
}

// Without a credit to say it.
void ReceiveComm::tell_taken() {
  if (pair().free_sends() == 0) return;
  const Write nothing{.remote_address = pair().remote_ring(),
                      .remote_key = pair().remote_ring_key()};
  const int error = pair().post_write_with_immediate(
      nothing, kTaken | (eager_.taken().all_before & kSequenceMask));
  if (error == 0) eager_.note_told();
}

void ReceiveComm::on_bye(std::uint64_t /*messages_received*/) {}

Result ReceiveComm::test(Request& tested, int* done, int* sizes) {
  *done = 0;
  Result result = Result::kSuccess;
  if (!tested.done) result = progress();
  if (!tested.done && result == Result::kSuccess && ++waited_ >= kPatience && announce() != 0)
    result = fail(Result::kSystemError, "a receive cannot be announced");
  if (!tested.done) return result;
  auto& ours = static_cast<ReceiveRequest&>(tested);
  *done = 1;
  for (unsigned i = 0; sizes != nullptr && i < ours.count; ++i)
    sizes[i] = static_cast<int>(ours.got.at(i));
  ours.in_use = ours.done = false;
  return Result::kSuccess;
}

}  // namespace mrc::nccl
