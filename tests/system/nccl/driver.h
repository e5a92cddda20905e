// The plug-in as NCCL sees it: loaded from a file, one of its versions, called through its table.
//
// All versions look alike here. Calls that must not fail end the process with a message when they
// do; the others give the plug-in's result.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nccl_net.h"

namespace mrc::test {

using nccl::Result;
using Handle = std::array<std::byte, nccl::kHandleBytes>;

[[noreturn, gnu::format(printf, 1, 2)]] void die(const char* format, ...);
#define MRC_CHECK(condition)                                                 \
  do {                                                                       \
    if (!(condition)) {                                                      \
      ::mrc::test::die("%s:%d: not so: %s", __FILE__, __LINE__, #condition); \
    }                                                                        \
  } while (false)

// Generous: machines with one slow core and sanitizers take part.
class Patience {
 public:
  explicit Patience(const char* what, std::chrono::seconds limit = std::chrono::seconds(120))
      : what_(what), end_(std::chrono::steady_clock::now() + limit) {}
  // Ends the process when the time is over.
  void wait() const;

 private:
  const char* what_;
  std::chrono::steady_clock::time_point end_;
};

struct Properties {
  std::string name;
  int ptr_support = 0;
  int speed = 0;
  int max_receives = 0;
  std::size_t max_p2p_bytes = 0;
  std::uint64_t guid = 0;
};

class Driver {
 public:
  Driver(const std::string& plugin, int version);
  ~Driver();  // finalize, then dlclose
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void init();
  Result try_init();
  void finalize();
  // Lines that the plug-in logged so far, of all levels.
  static std::string log_text();

  std::function<Result(int*)> devices;
  std::function<Result(int, Properties&)> properties;
  std::function<Result(int, void*, void**)> listen;
  std::function<Result(int, void*, void**)> connect;
  std::function<Result(void*, void**)> accept;
  nccl::RegMr reg_mr = nullptr;
  nccl::DeregMr dereg_mr = nullptr;
  std::function<Result(void*, void*, std::size_t, int, void*, void**)> isend;
  std::function<Result(void*, int, void**, std::size_t*, int*, void**, void**)> irecv;
  nccl::Flush iflush = nullptr;
  nccl::Test test = nullptr;
  nccl::Close close_send = nullptr;
  nccl::Close close_receive = nullptr;
  nccl::Close close_listen = nullptr;
  std::function<Result(void*)> finalize_context;  // none before version 11
  std::function<Result(nccl::NetAttributes*)> set_attributes;

  void* library() { return library_; }
  int version() const { return version_; }
  // What NCCL_NET is compared with.
  const std::string& name() const { return name_; }

 private:
  template <typename Net>
  void take_common(const Net& net);
  void take();
  void take_v8();
  void take_v9();
  void take_v10();
  template <typename Net, typename Table>
  void take_with_context(const char* symbol);

  void* library_ = nullptr;
  int version_;
  std::string name_;
  void* context_ = nullptr;
  std::function<Result()> init_;
};

}  // namespace mrc::test
