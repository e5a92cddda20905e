#include "lab/frame_socket.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace mrc::lab {
namespace {

constexpr std::size_t kMaxOut = 64;

}  // namespace

FrameBatch receive_frames(int socket, FramePool& pool) {
  std::array<mmsghdr, kFrameBatch> headers{};
  std::array<iovec, kFrameBatch> pieces;
  FrameBatch batch;
  unsigned asked = 0;
  for (; asked < kFrameBatch; ++asked) {
    const FrameId frame = pool.take();
    if (frame == kNoFrame) break;
    batch.entries[asked].frame = frame;
    const auto room = pool.room(frame);
    pieces[asked] = {.iov_base = room.data(), .iov_len = room.size()};
    headers[asked].msg_hdr.msg_iov = &pieces[asked];
    headers[asked].msg_hdr.msg_iovlen = 1;
  }
  batch.more = true;
  if (asked == 0) return batch;  // too much under way everywhere; later
  const int got = ::recvmmsg(socket, headers.data(), asked, MSG_DONTWAIT, nullptr);
  const bool interrupted = got < 0 && errno == EINTR;
  batch.closed = got < 0 && errno != EAGAIN && !interrupted;
  for (; batch.count < static_cast<unsigned>(std::max(got, 0)); ++batch.count) {
    const mmsghdr& header = headers[batch.count];
    if (header.msg_len == 0) batch.closed = true;  // the end of the connection
    if (batch.closed) break;
    FrameBatch::Entry& entry = batch.entries[batch.count];
    entry.truncated = (header.msg_hdr.msg_flags & MSG_TRUNC) != 0;
    if (!entry.truncated) pool.set_length(entry.frame, header.msg_len);
  }
  for (unsigned i = batch.count; i < asked; ++i)
    pool.give_back(batch.entries[i].frame);
  batch.more = interrupted || got == static_cast<int>(asked);
  return batch;
}

std::size_t send_frames(int socket, FramePool& pool, std::span<const FrameId> frames,
                        bool& closed) {
  std::size_t done = 0;
  closed = false;
  while (done < frames.size()) {
    std::array<mmsghdr, kMaxOut> headers{};
    std::array<iovec, kMaxOut> pieces;
    const auto count = static_cast<unsigned>(std::min(frames.size() - done, headers.size()));
    for (unsigned i = 0; i < count; ++i) {
      const auto bytes = pool.bytes(frames[done + i]);
      pieces[i] = {.iov_base = bytes.data(), .iov_len = bytes.size()};
      headers[i].msg_hdr.msg_iov = &pieces[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
    const int sent = ::sendmmsg(socket, headers.data(), count, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      closed = errno != EAGAIN && errno != ENOBUFS;
      break;
    }
    done += static_cast<unsigned>(sent);
  }
  return done;
}

}  // namespace mrc::lab
