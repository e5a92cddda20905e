// Posting: checks, slots, credits; and the way from a slot to the bytes of a packet.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "nic/device_impl.h"
#include "nic/place_bytes.h"
#include "nic/queue_pair.h"

namespace mrc::nic {
namespace {

constexpr std::uint32_t kBusySends = 16;   // posted and not polled: enough to keep a peer busy
constexpr std::uint32_t kMaxWaiting = 32;  // posted without a word to the engine

// False when the sum exceeds what a message may have.
bool add_lengths(std::span<const Buffer> buffers, std::uint32_t& total) {
  std::uint64_t sum = 0;
  for (const Buffer& buffer : buffers)
    sum += buffer.length;
  total = static_cast<std::uint32_t>(sum);
  return sum <= core::kMaxMessageBytes;
}

}  // namespace

bool QueuePairImpl::covered(const Buffer& buffer, bool for_writing) const {
  return buffer.length == 0 ||
         device_->group().regions.covers(buffer.key, setup_.domain, buffer.address, buffer.length,
                                         for_writing);
}

int QueuePairImpl::check_send(const SendWork& work, std::uint32_t& length) const {
  if (work.kind > SendKind::kSendImmediate) return EINVAL;
  if (is_send(work.kind) && !setup_.allow_sends) return EINVAL;
  if (work.buffers.size() > setup_.max_send_buffers && !work.inline_data) return EINVAL;
  if (work.buffers.size() > kMaxGather) return EINVAL;
  if (!add_lengths(work.buffers, length)) return EINVAL;
  if (work.inline_data) {
    if (length > setup_.max_inline) return EINVAL;
  } else {
    for (const Buffer& buffer : work.buffers) {
      if (!covered(buffer, /*for_writing=*/false)) return EINVAL;
    }
  }
  if (!is_send(work.kind) && work.remote_address + length < work.remote_address) return EINVAL;
  const bool uses_receive = is_send(work.kind) || has_immediate(work.kind);
  if (uses_receive && !accepts_immediates_.load(std::memory_order_relaxed)) return EINVAL;
  return 0;
}

void QueuePairImpl::fill_send(const SendWork& work, std::uint32_t length) {
  const std::uint64_t count = sends_posted_.load(std::memory_order_relaxed);
  const std::uint32_t index = send_slot_of(count);
  SendSlot& slot = sends_[index];
  slot = {.id = work.id,
          .remote_address = work.remote_address,
          .remote_key = work.remote_key,
          .immediate = work.immediate,
          .length = length,
          .pieces = 0,
          .kind = work.kind,
          .signaled = work.signaled || setup_.signal_all,
          .solicited = work.solicited};
  Buffer* pieces = &send_pieces_[std::size_t{index} * setup_.max_send_buffers];
  if (work.inline_data) {
    std::byte* copy = inline_data_.get() + std::size_t{index} * setup_.max_inline;
    pieces[slot.pieces++] = {.address = copy, .length = length, .key = 0};
    for (const Buffer& buffer : work.buffers) {
      if (buffer.length == 0) continue;
      std::memcpy(copy, buffer.address, buffer.length);
      copy += buffer.length;
    }
  } else {
    for (const Buffer& buffer : work.buffers) {
      if (buffer.length > 0) pieces[slot.pieces++] = buffer;
    }
  }
  sends_posted_.store(count + 1);
}

int QueuePairImpl::post_sends(std::span<const SendWork> work, std::size_t& posted) {
  posted = 0;
  if (device_->in_child()) return EIO;
  int error = 0;
  bool lazy = false;
  {
    const std::lock_guard lock(post_lock_);
    const core::QpState now = state();
    if (now != core::QpState::kReadyToSend && now != core::QpState::kError) return EINVAL;
    for (const SendWork& one : work) {
      std::uint32_t length = 0;
      error = check_send(one, length);
      if (error != 0) break;
      const std::uint64_t in_use = sends_posted_.load(std::memory_order_relaxed) -
                                   sends_returned_.load(std::memory_order_acquire);
      if (in_use >= sends_.size()) {
        error = ENOMEM;
        break;
      }
      fill_send(one, length);
      ++posted;
    }
    lazy = posted > 0 && may_wait(posted);
  }
  if (posted == 0) return error;
  if (lazy) {
    engine_->ring_later(*this);
  } else {
    engine_->ring(*this);
  }
  return error;
}

// With much under way, and a program that polls, a few more requests may wait for the next poll:
// they then leave together, which is cheaper than one by one.
bool QueuePairImpl::may_wait(std::size_t posted) {
  const std::uint64_t in_use = sends_posted_.load(std::memory_order_relaxed) -
                               sends_returned_.load(std::memory_order_relaxed);
  waiting_ += static_cast<std::uint32_t>(posted);
  const bool lazy = in_use >= kBusySends && waiting_ < kMaxWaiting && engine_->polled_recently();
  if (!lazy) waiting_ = 0;
  return lazy;
}

int QueuePairImpl::check_receive(const ReceiveWork& work, std::uint32_t& capacity) const {
  if (work.buffers.size() > setup_.max_receive_buffers) return EINVAL;
  if (!add_lengths(work.buffers, capacity)) return EINVAL;
  for (const Buffer& buffer : work.buffers) {
    if (!covered(buffer, /*for_writing=*/true)) return EINVAL;
  }
  return 0;
}

int QueuePairImpl::post_receives(std::span<const ReceiveWork> work, std::size_t& posted) {
  posted = 0;
  if (device_->in_child()) return EIO;
  int error = 0;
  {
    const std::lock_guard lock(post_lock_);
    if (state() == core::QpState::kReset) return EINVAL;
    for (const ReceiveWork& one : work) {
      std::uint32_t capacity = 0;
      error = check_receive(one, capacity);
      if (error != 0) break;
      const std::uint64_t count = receives_posted_.load(std::memory_order_relaxed);
      if (count - receives_returned_.load(std::memory_order_acquire) >= receives_.size()) {
        error = ENOMEM;
        break;
      }
      const std::uint32_t index = receive_slot_of(count);
      Buffer* pieces = receive_pieces_.data() + std::size_t{index} * setup_.max_receive_buffers;
      std::uint32_t used = 0;
      for (const Buffer& buffer : one.buffers) {
        if (buffer.length > 0) pieces[used++] = buffer;
      }
      receives_[index] = {.id = one.id, .pieces = used, .capacity = capacity};
      receives_posted_.store(count + 1);
      ++posted;
    }
  }
  if (posted > 0) engine_->ring(*this);
  return error;
}

void QueuePairImpl::return_credits(std::uint32_t sends, std::uint32_t receives) {
  if (sends > 0) sends_returned_.fetch_add(sends, std::memory_order_release);
  if (receives > 0) receives_returned_.fetch_add(receives, std::memory_order_release);
}

// --- The engine's side ---

unsigned QueuePairImpl::gather(std::uint32_t slot, std::uint32_t offset, std::uint32_t length,
                               MappedMemory& memory, Pieces& pieces) const {
  const Buffer* buffer = &send_pieces_[std::size_t{slot} * setup_.max_send_buffers];
  const Buffer* end = buffer + sends_[slot].pieces;
  unsigned count = 0;
  for (; buffer != end && length > 0; ++buffer) {
    if (offset >= buffer->length) {
      offset -= buffer->length;
      continue;
    }
    const std::uint32_t part = std::min(length, buffer->length - offset);
    const std::span<const std::byte> piece(buffer->address + offset, part);
    const bool ours = buffer->key == 0;  // inline data
    if (!ours && !(device_->group().regions.alive(buffer->key) && memory.holds(piece))) return 0;
    pieces[count++] = piece;
    length -= part;
    offset = 0;
  }
  return length == 0 ? count : 0;
}

// Calls `visit` with each piece of program memory that a part of a receive lies in, until it
// returns false. False as well when the receive is shorter.
template <typename Visit>
bool QueuePairImpl::visit_receive(std::uint32_t slot, const Part& part, Visit visit) const {
  const Buffer* buffer = receive_pieces_.data() + std::size_t{slot} * setup_.max_receive_buffers;
  const Buffer* end = buffer + receives_[slot].pieces;
  std::uint64_t offset = part.offset;
  std::size_t length = part.length;
  for (; buffer != end && length > 0; ++buffer) {
    if (offset >= buffer->length) {
      offset -= buffer->length;
      continue;
    }
    const std::size_t here = std::min<std::size_t>(length, buffer->length - offset);
    if (!visit(*buffer, std::span(buffer->address + offset, here))) return false;
    length -= here;
    offset = 0;
  }
  return length == 0;
}

bool QueuePairImpl::can_scatter(std::uint32_t slot, const Part& part, MappedMemory& memory) const {
  return visit_receive(slot, part, [&](const Buffer& buffer, std::span<const std::byte> piece) {
    return device_->group().regions.alive(buffer.key) && memory.holds(piece);
  });
}

void QueuePairImpl::scatter(std::uint32_t slot, std::uint64_t offset,
                            std::span<const std::byte> bytes) const {
  visit_receive(slot, {offset, bytes.size()}, [&](const Buffer&, std::span<const std::byte> piece) {
    // Only buffers of regions with the right to be written pass the check at posting.
    place_bytes(const_cast<std::byte*>(piece.data()), bytes.data(), piece.size());
    bytes = bytes.subspan(piece.size());
    return true;
  });
}

}  // namespace mrc::nic
