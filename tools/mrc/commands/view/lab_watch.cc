#include "commands/view/lab_watch.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "launch/attach.h"

namespace mrc::tool::view_tool {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(LabSource::kPeriodMs);
constexpr auto kAttachPeriod = std::chrono::seconds(1);

PageServer::Outcome refused(std::string why) { return {.ok = false, .text = std::move(why)}; }

}  // namespace

LabWatch::LabWatch(const lab::Directory& directory, view::LineSink sink)
    : name_(directory.name()), control_path_(directory.control_path()), sink_(std::move(sink)) {
  client_ = std::make_shared<lab::ControlClient>();
  lab_tool::attach(directory, *client_);
  auto source = std::make_unique<LabSource>(name_, client_, sink_);
  thread_ = std::thread([this, begun = std::move(source)]() mutable { run(std::move(begun)); });
}

LabWatch::~LabWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    // Whoever waits for an answer hears at once that there is none.
    ::shutdown(client_->descriptor(), SHUT_RDWR);
  }
  wake_.notify_all();
  thread_.join();
}

bool LabWatch::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool LabWatch::take(const std::shared_ptr<lab::ControlClient>& client) {
  const std::lock_guard lock(mutex_);
  client_ = client;
  return !stopping_;
}

std::future<PageServer::Outcome> LabWatch::act(const view::Deed& deed) {
  Order order{.deed = deed, .outcome = {}, .asked = Clock::now()};
  std::future<PageServer::Outcome> outcome = order.outcome.get_future();
  const std::lock_guard lock(mutex_);
  if (orders_.size() >= kMaxOrders) {
    order.outcome.set_value(refused("the lab has too much to do already"));
  } else {
    orders_.push_back(std::move(order));
    wake_.notify_all();
  }
  return outcome;
}

bool LabWatch::wait_until(Clock::time_point then, LabSource* source) {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait_until(lock, then, [&] { return stopping_ || !orders_.empty(); });
    if (stopping_) return false;
    if (orders_.empty()) return true;
    Order order = std::move(orders_.front());
    orders_.pop_front();
    lock.unlock();
    const auto most = std::chrono::milliseconds(PageServer::kDeedMs);
    if (source == nullptr) {
      order.outcome.set_value(refused("the lab is gone; `mrc lab up` starts one"));
    } else if (Clock::now() - order.asked < most) {
      order.outcome.set_value(source->act(order.deed));
    } else {
      order.outcome.set_value(refused("the lab did not answer in time; nothing was done"));
    }
    lock.lock();
  }
}

void LabWatch::run(std::unique_ptr<LabSource> source) {
  while (source) {
    follow(*source);
    if (stopping()) return;
    source = attach_again();
  }
}

// Until the lab is gone or says nothing for long.
void LabWatch::follow(LabSource& source) {
  Clock::time_point next = Clock::now();
  while (wait_until(next, &source)) {
    if (!source.look()) return;
    next = std::max(next + kPeriod, Clock::now());
  }
}

std::unique_ptr<LabSource> LabWatch::attach_again() {
  while (wait_until(Clock::now() + kAttachPeriod, nullptr)) {
    // One that is silent is not asked again before it has spoken or is gone: each question would
    // wait half a minute.
    pollfd speaks{.fd = client_->descriptor(), .events = POLLIN, .revents = 0};
    if (::poll(&speaks, 1, 0) == 0) continue;
    const auto client = std::make_shared<lab::ControlClient>();
    if (!client->connect(control_path_)) continue;
    if (!take(client)) return nullptr;
    try {
      return std::make_unique<LabSource>(name_, client, sink_);
    } catch (const std::exception&) {
      // It is coming up, or of another version; the page has been told that it is gone.
      continue;
    }
  }
  return nullptr;
}

}  // namespace mrc::tool::view_tool
