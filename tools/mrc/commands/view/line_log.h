// The lines of a stream, for all viewers: one copy, written by one thread, sent by another.
//
// Of a live stream the header and the last few MB are kept, from a frame on that tells everything,
// so that whoever comes late sees the last minutes; of a recording all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace mrc::tool::view_tool {

class LineLog {
 public:
  static constexpr std::size_t kLiveBytes = std::size_t{24} << 20;

  explicit LineLog(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // A second header begins anew: what was before it is forgotten.
  void add(std::string line);

  // The line with this number, framed as a server-sent event; null when it is not there yet. A
  // number that was dropped is moved to the next that is there. Number 0 is the header.
  std::shared_ptr<const std::string> at(std::uint64_t& number) const;

 private:
  struct Kept {
    std::shared_ptr<const std::string> event;
    bool tells_all = false;
  };
  void forget();

  mutable std::mutex mutex_;
  std::size_t most_bytes_;
  std::shared_ptr<const std::string> header_;
  std::deque<Kept> lines_;
  std::uint64_t first_ = 1;  // number of the first of `lines_`
  std::size_t bytes_ = 0;
};

}  // namespace mrc::tool::view_tool
