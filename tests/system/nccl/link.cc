#include "link.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

namespace mrc::test {
namespace {

constexpr std::byte kGuardByte{0xa5};
constexpr std::byte kClear{0x5a};

std::byte pattern(std::uint64_t seed, std::size_t at) {
  const std::uint64_t mixed = (seed * 0x9e37'79b9'7f4a'7c15ULL) ^ (at * 0xbf58'476d'1ce4'e5b9ULL);
  return static_cast<std::byte>(mixed >> 32);
}

}  // namespace

void Meeting::put(const std::string& name, std::span<const std::byte> bytes) const {
  const std::string path = directory_ + "/" + name;
  const std::string draft = path + ".draft" + std::to_string(rank_);
  {
    std::ofstream out(draft, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    MRC_CHECK(out.good());
  }
  MRC_CHECK(std::rename(draft.c_str(), path.c_str()) == 0);
}

bool Meeting::exists(const std::string& name) const {
  return access((directory_ + "/" + name).c_str(), F_OK) == 0;
}

std::vector<std::byte> Meeting::get(const std::string& name) const {
  const Patience patience(name.c_str());
  while (!exists(name)) {
    patience.wait();
    usleep(1'000);
  }
  std::ifstream in(directory_ + "/" + name, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)),
                                std::istreambuf_iterator<char>());
  std::vector<std::byte> out(bytes.size());
  std::transform(bytes.begin(), bytes.end(), out.begin(),
                 [](char byte) { return static_cast<std::byte>(byte); });
  return out;
}

void Meeting::barrier(const std::string& name, int ranks) const {
  put(name + "." + std::to_string(rank_), {});
  for (int rank = 0; rank < ranks; ++rank)
    get(name + "." + std::to_string(rank));
}

Link make_link(Driver& driver, const Meeting& meeting, const LinkOptions& options) {
  const auto name = [&](int from, int to) {
    return "handle." + std::to_string(options.number) + "." + std::to_string(from) + "." +
           std::to_string(to);
  };
  Handle ours{};
  void* listener = nullptr;
  MRC_CHECK(driver.listen(0, ours.data(), &listener) == Result::kSuccess && listener != nullptr);
  meeting.put(name(options.rank, options.previous), ours);
  const std::vector<std::byte> received = meeting.get(name(options.next, options.rank));
  Handle theirs{};
  MRC_CHECK(received.size() == theirs.size());
  std::copy(received.begin(), received.end(), theirs.begin());
  Link link;
  const Patience patience("connect and accept");
  while (link.send == nullptr || link.receive == nullptr) {
    if (link.send == nullptr)
      MRC_CHECK(driver.connect(0, theirs.data(), &link.send) == Result::kSuccess);
    if (link.receive == nullptr)
      MRC_CHECK(driver.accept(listener, &link.receive) == Result::kSuccess);
    patience.wait();
  }
  MRC_CHECK(driver.close_listen(listener) == Result::kSuccess);
  return link;
}

void close_link(Driver& driver, Link& link) {
  MRC_CHECK(driver.close_send(link.send) == Result::kSuccess);
  MRC_CHECK(driver.close_receive(link.receive) == Result::kSuccess);
  link = {};
}

Buffer::Buffer(Driver& driver, void* comm, std::size_t size)
    : driver_(driver), comm_(comm), size_(size), bytes_(size + 2 * kGuard, kGuardByte) {
  MRC_CHECK(driver.reg_mr(comm, data(), std::max<std::size_t>(size, 1), nccl::kPointerHost,
                          &memory_) == Result::kSuccess);
}

Buffer::~Buffer() { MRC_CHECK(driver_.dereg_mr(comm_, memory_) == Result::kSuccess); }

void Buffer::fill(std::uint64_t seed, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    data()[i] = pattern(seed, i);
}

void Buffer::clear() { std::memset(data(), static_cast<int>(kClear), size_); }

void Buffer::check(std::uint64_t seed, std::size_t size) {
  MRC_CHECK(size <= size_);
  for (std::size_t i = 0; i < size; ++i) {
    if (data()[i] != pattern(seed, i)) die("byte %zu of %zu is wrong", i, size);
  }
  for (std::size_t i = size; i < size_; ++i) {
    if (data()[i] != kClear) die("byte %zu behind a message of %zu was touched", i, size);
  }
  for (std::size_t i = 0; i < kGuard; ++i)
    MRC_CHECK(bytes_[i] == kGuardByte && bytes_[kGuard + size_ + i] == kGuardByte);
}

void* post_send(Driver& driver, void* comm, Buffer& buffer, std::size_t size, int tag) {
  void* request = nullptr;
  const Patience patience("isend");
  while (request == nullptr) {
    MRC_CHECK(driver.isend(comm, buffer.data(), size, tag, buffer.memory(), &request) ==
              Result::kSuccess);
    patience.wait();
  }
  return request;
}

void* post_receive(Driver& driver, void* comm, Buffer& buffer, std::size_t size, int tag) {
  void* request = nullptr;
  const Patience patience("irecv");
  while (request == nullptr) {
    void* data = buffer.data();
    void* memory = buffer.memory();
    MRC_CHECK(driver.irecv(comm, 1, &data, &size, &tag, &memory, &request) == Result::kSuccess);
    patience.wait();
  }
  return request;
}

std::size_t finish(Driver& driver, void* request) {
  const Patience patience("test");
  int done = 0;
  int size = -1;
  while (done == 0) {
    MRC_CHECK(driver.test(request, &done, &size) == Result::kSuccess);
    patience.wait();
  }
  MRC_CHECK(size >= 0);
  return static_cast<std::size_t>(size);
}

}  // namespace mrc::test
