#include "collective/collectives.h"

#include <algorithm>
#include <cstring>

#include "collective/failure.h"

namespace mrc::collective {
namespace {

// How a buffer is cut: into a segment per rank, each into the same number of chunks.
class Cut {
 public:
  Cut(std::span<std::byte> buffer, Element element, unsigned ranks, std::size_t chunk_bytes)
      : buffer_(buffer), ranks_(ranks), chunk_bytes_(chunk_bytes) {
    const std::size_t elements = buffer.size() / bytes_of(element);
    segment_bytes_ = (elements + ranks - 1) / ranks * bytes_of(element);
  }

  std::size_t chunks() const {
    return std::max<std::size_t>((segment_bytes_ + chunk_bytes_ - 1) / chunk_bytes_, 1);
  }
  std::span<std::byte> segment(std::size_t number) const {
    return part(buffer_, number % ranks_ * segment_bytes_, segment_bytes_);
  }
  std::span<std::byte> chunk(std::size_t segment_number, std::size_t chunk) const {
    return part(segment(segment_number), chunk * chunk_bytes_, chunk_bytes_);
  }

 private:
  static std::span<std::byte> part(std::span<std::byte> whole, std::size_t at, std::size_t bytes) {
    if (at >= whole.size()) return {};
    return whole.subspan(at, std::min(bytes, whole.size() - at));
  }

  std::span<std::byte> buffer_;
  unsigned ranks_;
  std::size_t chunk_bytes_;
  std::size_t segment_bytes_ = 0;
};

}  // namespace

// One way round the ring, or two. At step t rank r sends segment r - t - 1 and receives segment
// r - t - 2. In the first ranks - 1 steps what comes is added to what is there, so that rank r
// then holds the sum of segment r; in as many more steps what comes is complete and replaces it.
class Collectives::Ring {
 public:
  Ring(Communicator& communicator, Memory& memory, Element element, std::size_t bytes)
      : communicator_(communicator),
        cut_(memory.bytes().first(bytes), element, communicator.ranks(),
             communicator.shape().chunk_bytes),
        key_(memory.key()),
        element_(element) {}

  void run(bool adds, bool replaces) {
    const std::size_t round = communicator_.ranks() - 1;
    first_step_ = adds ? 0 : round;
    total_ = ((adds ? round : 0) + (replaces ? round : 0)) * cut_.chunks();
    if (total_ == 0) return;
    communicator_.restart_patience();
    completed_before_ = communicator_.next().completed();
    while (taken_ < total_ || completed() < total_) {
      const bool sent = send();
      const bool took = take();
      if (!sent && !took) communicator_.progress();
    }
  }

 private:
  std::size_t completed() const { return communicator_.next().completed() - completed_before_; }
  std::size_t step_of(std::size_t number) const { return first_step_ + number / cut_.chunks(); }
  // Counts down from our own segment; a multiple of the ranks keeps it above zero.
  std::size_t segment_sent_at(std::size_t step) const {
    return communicator_.rank() + std::size_t{3} * communicator_.ranks() - step - 1;
  }
  std::span<std::byte> outgoing(std::size_t number) const {
    return cut_.chunk(segment_sent_at(step_of(number)), number % cut_.chunks());
  }
  std::span<std::byte> incoming(std::size_t number) const {
    return cut_.chunk(segment_sent_at(step_of(number) + 1), number % cut_.chunks());
  }

  // A chunk can leave when the same one of the step before has come.
  bool send() {
    bool any = false;
    while (sent_ < total_ && sent_ < taken_ + cut_.chunks() && communicator_.next().can_send()) {
      communicator_.next().send(outgoing(sent_), key_);
      ++sent_;
      any = true;
    }
    return any;
  }

  bool take() {
    Channel& from = communicator_.previous();
    bool any = false;
    while (taken_ < total_ && from.has_chunk() && may_change(taken_)) {
      const std::span<std::byte> place = incoming(taken_);
      const std::span<const std::byte> chunk = from.chunk(place.size());
      if (adds_at(taken_)) {
        add(element_, place, chunk);
      } else {
        std::copy(chunk.begin(), chunk.end(), place.begin());
      }
      from.release();
      ++taken_;
      any = true;
    }
    return any;
  }

  bool adds_at(std::size_t number) const { return step_of(number) + 1 < communicator_.ranks(); }
  // What is replaced left us ranks - 1 steps ago, and must have arrived before it changes.
  bool may_change(std::size_t number) const {
    const std::size_t round = (communicator_.ranks() - 1) * cut_.chunks();
    return adds_at(number) || number < round || completed() > number - round;
  }

  Communicator& communicator_;
  Cut cut_;
  std::uint32_t key_;
  Element element_;
  std::size_t first_step_ = 0;
  std::size_t total_ = 0;  // chunks to send, and as many to take
  std::size_t sent_ = 0;
  std::size_t taken_ = 0;
  std::uint64_t completed_before_ = 0;
};

Collectives::Collectives(Communicator& communicator)
    : communicator_(communicator), word_(communicator.device(), sizeof(std::int64_t)) {}

void Collectives::all_reduce(Memory& memory, Element element, std::size_t bytes) {
  Ring(communicator_, memory, element, bytes).run(true, true);
}

void Collectives::reduce_scatter(Memory& memory, Element element, std::size_t bytes) {
  Ring(communicator_, memory, element, bytes).run(true, false);
}

void Collectives::all_gather(Memory& memory, Element element, std::size_t bytes) {
  Ring(communicator_, memory, element, bytes).run(false, true);
}

void Collectives::all_to_all(Memory& from, Memory& to, Element element, std::size_t bytes) {
  const unsigned own = communicator_.rank();
  const unsigned ranks = communicator_.ranks();
  const auto kept = segment_of(from.bytes().first(bytes), element, ranks, own);
  const auto place = segment_of(to.bytes().first(bytes), element, ranks, own);
  std::copy(kept.begin(), kept.end(), place.begin());
  if (ranks > 1) all_to_all_with_peers(from, to, element, bytes);
}

// Each rank begins with the one behind it, so that no rank is everybody's target at once.
void Collectives::all_to_all_with_peers(Memory& from, Memory& to, Element element,
                                        std::size_t bytes) {
  const unsigned own = communicator_.rank();
  const unsigned ranks = communicator_.ranks();
  const std::size_t chunk_bytes = communicator_.shape().chunk_bytes;
  const Cut source(from.bytes().first(bytes), element, ranks, chunk_bytes);
  const Cut target(to.bytes().first(bytes), element, ranks, chunk_bytes);
  struct Stream {
    std::size_t sent = 0;
    std::size_t taken = 0;
    std::uint64_t completed_before = 0;
  };
  std::vector<Stream> streams(ranks);
  for (unsigned peer = 0; peer < ranks; ++peer)
    if (peer != own) streams[peer].completed_before = communicator_.to(peer).completed();
  communicator_.restart_patience();
  for (bool done = false; !done;) {
    done = true;
    bool moved = false;
    for (unsigned ahead = 1; ahead < ranks; ++ahead) {
      const unsigned peer = (own + ahead) % ranks;
      Channel& channel = communicator_.to(peer);
      Stream& stream = streams[peer];
      if (stream.sent < source.chunks() && channel.can_send()) {
        channel.send(source.chunk(peer, stream.sent++), from.key());
        moved = true;
      }
      if (stream.taken < target.chunks() && channel.has_chunk()) {
        const std::span<std::byte> place = target.chunk(peer, stream.taken++);
        const std::span<const std::byte> chunk = channel.chunk(place.size());
        std::copy(chunk.begin(), chunk.end(), place.begin());
        channel.release();
        moved = true;
      }
      done = done && stream.taken == target.chunks() &&
             channel.completed() - stream.completed_before == source.chunks();
    }
    if (!moved && !done) communicator_.progress();
  }
}

double Collectives::sum(double own) {
  std::memcpy(word_.bytes().data(), &own, sizeof(own));
  all_reduce(word_, Element::kDouble, sizeof(own));
  std::memcpy(&own, word_.bytes().data(), sizeof(own));
  return own;
}

std::int64_t Collectives::sum(std::int64_t own) {
  std::memcpy(word_.bytes().data(), &own, sizeof(own));
  all_reduce(word_, Element::kInt64, sizeof(own));
  std::memcpy(&own, word_.bytes().data(), sizeof(own));
  return own;
}

std::span<std::byte> Collectives::segment_of(std::span<std::byte> buffer, Element element,
                                             unsigned ranks, unsigned segment) {
  return Cut(buffer, element, ranks, buffer.size() + 1).segment(segment);
}

}  // namespace mrc::collective
