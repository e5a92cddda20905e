// A connection pair as NCCL sets it up: listen, hand the handle over, connect and accept in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "driver.h"

namespace mrc::test {

// Where processes of a test leave things for each other.
class Meeting {
 public:
  Meeting(std::string directory, int rank) : directory_(std::move(directory)), rank_(rank) {}

  void put(const std::string& name, std::span<const std::byte> bytes) const;
  // Waits for it.
  std::vector<std::byte> get(const std::string& name) const;
  bool exists(const std::string& name) const;
  // Until all `ranks` were here; each name once.
  void barrier(const std::string& name, int ranks) const;

 private:
  std::string directory_;
  int rank_;
};

// What one rank sends to `next` and receives from `previous`, both over the plug-in.
struct Link {
  void* send = nullptr;
  void* receive = nullptr;
};
struct LinkOptions {
  int rank = 0;
  int next = 1;
  int previous = 1;
  int number = 0;  // several links between the same ranks
};
Link make_link(Driver& driver, const Meeting& meeting, const LinkOptions& options);
void close_link(Driver& driver, Link& link);

// Memory with guard zones around it, registered with one end of a link.
class Buffer {
 public:
  Buffer(Driver& driver, void* comm, std::size_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return bytes_.data() + kGuard; }
  void* memory() const { return memory_; }
  // The pattern depends on the position and on `seed`.
  void fill(std::uint64_t seed, std::size_t size);
  void clear();
  // That the first `size` bytes have the pattern and nothing behind them was touched.
  void check(std::uint64_t seed, std::size_t size);

 private:
  static constexpr std::size_t kGuard = 256;
  Driver& driver_;
  void* comm_;
  std::size_t size_;
  std::vector<std::byte> bytes_;
  void* memory_ = nullptr;
};

// Posts until the plug-in takes it.
void* post_send(Driver& driver, void* comm, Buffer& buffer, std::size_t size, int tag);
void* post_receive(Driver& driver, void* comm, Buffer& buffer, std::size_t size, int tag);
// Until it is done; gives the size that came.
std::size_t finish(Driver& driver, void* request);

}  // namespace mrc::test
