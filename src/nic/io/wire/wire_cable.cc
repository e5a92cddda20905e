#include "nic/io/wire/wire_cable.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace mrc::nic {

WireCable::WireCable()
    : frames_(std::make_unique_for_overwrite<std::byte[]>(kSlots * kMaxFrameBytes)),
      lengths_(std::make_unique<std::size_t[]>(kSlots)) {}

unsigned WireCable::disconnect(TimeNs now) {
  take_down(now);
  return std::exchange(queued_, 0);
}

std::span<std::byte> WireCable::claim() {
  if (!connected() || queued_ == kSlots) return {};
  return {slot((first_ + queued_) % kSlots), kMaxFrameBytes};
}

void WireCable::commit(std::size_t length) {
  lengths_[(first_ + queued_) % kSlots] = length;
  ++queued_;
}

WireCable::SendResult WireCable::send_waiting() {
  SendResult result;
  while (queued_ > 0 && result.error == 0) {
    std::array<mmsghdr, kSlots> headers{};
    std::array<iovec, kSlots> pieces;
    for (unsigned i = 0; i < queued_; ++i) {
      const std::size_t index = (first_ + i) % kSlots;
      pieces[i] = {.iov_base = slot(index), .iov_len = lengths_[index]};
      headers[i].msg_hdr.msg_iov = &pieces[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
    ++result.calls;
    const int taken =
        ::sendmmsg(connection(), headers.data(), queued_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) {
      result.error = errno;
      break;
    }
    const auto count = static_cast<unsigned>(taken);
    first_ = (first_ + count) % kSlots;
    queued_ -= count;
    result.frames += count;
  }
  return result;
}

}  // namespace mrc::nic
