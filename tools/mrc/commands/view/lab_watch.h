// Watches a running lab from a thread of its own, so that one that says nothing holds up nobody:
// the server goes on meanwhile, and the end of the program waits for no answer.
//
// When the lab goes away the stream says so; when one of the same name comes up, the stream begins
// anew with it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "commands/view/lab_source.h"
#include "commands/view/page_server.h"
#include "lab/control.h"
#include "lab/directory.h"
#include "view/stream.h"

namespace mrc::tool::view_tool {

class LabWatch {
 public:
  static constexpr std::size_t kMaxOrders = 64;  // that wait; a connection has one

  // Throws std::runtime_error when there is no such lab. `sink` is called from the thread.
  LabWatch(const lab::Directory& directory, view::LineSink sink);
  ~LabWatch();
  LabWatch(const LabWatch&) = delete;
  LabWatch& operator=(const LabWatch&) = delete;

  // What came of it, as soon as the lab has answered. Whoever waits longer than
  // PageServer::kDeedMs for its turn is not done any more: nobody expects it then.
  std::future<PageServer::Outcome> act(const view::Deed& deed);

 private:
  using Clock = std::chrono::steady_clock;
  struct Order {
    view::Deed deed;
    std::promise<PageServer::Outcome> outcome;
    Clock::time_point asked;
  };

  void run(std::unique_ptr<LabSource> source);
  void follow(LabSource& source);
  // Null: it is time to stop.
  std::unique_ptr<LabSource> attach_again();
  // Waits until then; false when it is time to stop. Does orders, where there is a source.
  bool wait_until(Clock::time_point then, LabSource* source);
  bool take(const std::shared_ptr<lab::ControlClient>& client);
  bool stopping();

  std::string name_;
  std::string control_path_;
  view::LineSink sink_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::shared_ptr<lab::ControlClient> client_;
  std::deque<Order> orders_;
  std::thread thread_;
};

}  // namespace mrc::tool::view_tool
