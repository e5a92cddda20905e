// Operations of all ranks together. Every rank must call the same ones in the same order, with the
// same sizes.
//
// A buffer has `ranks` segments of equal length; the last ones are shorter or empty when its
// elements do not divide. Rings send segment after segment to the next rank in chunks, and a chunk
// goes on as soon as it has come, so that all links are busy at once. Sums are formed in the order
// of the ring, which depends on nothing but the segment: equal input gives equal bits, whatever
// the network does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/communicator.h"
#include "collective/element.h"

namespace mrc::collective {

class Collectives {
 public:
  explicit Collectives(Communicator& communicator);

  // Every rank ends with the sum of all buffers.
  void all_reduce(Memory& memory, Element element, std::size_t bytes);
  // Segment r of the sum is in its place at rank r; the rest of the buffer is spoilt.
  void reduce_scatter(Memory& memory, Element element, std::size_t bytes);
  // Segment r of rank r is in its place at every rank.
  void all_gather(Memory& memory, Element element, std::size_t bytes);
  // Segment r of rank q is segment q at rank r. Needs a mesh, and segments of equal length.
  void all_to_all(Memory& from, Memory& to, Element element, std::size_t bytes);

  // Small sums of one number per rank; both also mean that all ranks have come so far.
  double sum(double own);
  std::int64_t sum(std::int64_t own);
  void barrier() { sum(std::int64_t{0}); }

  // The part of a buffer of `bytes` that is segment `segment`.
  static std::span<std::byte> segment_of(std::span<std::byte> buffer, Element element,
                                         unsigned ranks, unsigned segment);

 private:
  class Ring;
  void all_to_all_with_peers(Memory& from, Memory& to, Element element, std::size_t bytes);

  Communicator& communicator_;
  Memory word_;
};

}  // namespace mrc::collective
