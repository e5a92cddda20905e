#include "collective/communicator.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>

#include "collective/failure.h"
#include "os/errors.h"

namespace mrc::collective {
namespace {

using nlohmann::json;

// Polls that found nothing before we sleep; each lets the device work, so that a short wait costs
// no wake-up.
constexpr unsigned kEmptyPolls = 32;
constexpr unsigned kPollsPerLook = 64;  // looking around costs system calls
constexpr std::int64_t kLookEveryNs = 20'000'000;
constexpr int kSleepMs = 20;

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Memory::Memory(const Device& device, std::size_t bytes)
    : bytes_(std::max<std::size_t>(bytes, 1)),
      region_(device.register_memory(bytes_.data(), bytes_.size(), Device::Access::kLocal)) {}

Communicator::Communicator(const CommunicatorOptions& options)
    : options_(options),
      rendezvous_(options.place, options.timeout_s),
      device_(options.device),
      channels_(options.place.ranks) {
  try {
    create_channels();
    connect();
  } catch (const Failure& failure) {
    tell_failure(failure.what());
    throw;
  }
}

void Communicator::create_channels() {
  mrc_comp_channel* made = nullptr;
  expect_ok("mrc_create_comp_channel", mrc_create_comp_channel(device_.context(), &made));
  events_.reset(made);
  expect_ok("mrc_get_comp_channel_fd", os::errno_of(mrc_get_comp_channel_fd(made, &events_fd_)));
  const unsigned peers = has_mesh() ? ranks() - 1 : std::min(ranks() - 1, 2U);
  const auto entries = static_cast<int>(std::max(peers, 1U) * 2 * shape().depth());
  cq_.reset(mrc_create_cq(device_.context(), entries, nullptr, made, 0));
  if (!cq_) refuse("mrc_create_cq", errno);
  for (unsigned peer = 0; peer < ranks(); ++peer) {
    const unsigned ahead = (peer + ranks() - rank()) % ranks();
    const bool wanted = ahead != 0 && (has_mesh() || ahead == 1 || ahead + 1 == ranks());
    if (wanted)
      channels_[peer] =
          std::make_unique<Channel>(device_, cq_.get(), peer, shape(), options_.profiles);
  }
}

void Communicator::connect() {
  json own = json::object();
  for (unsigned peer = 0; peer < ranks(); ++peer)
    if (channels_[peer]) own[std::to_string(peer)] = channels_[peer]->address();
  const std::vector<json> all = rendezvous_.all_gather(own);
  for (unsigned peer = 0; peer < ranks(); ++peer) {
    if (!channels_[peer]) continue;
    const std::string name = fmt::format("rank {}", peer);
    const auto address = all[peer].find(std::to_string(rank()));
    if (address == all[peer].end())
      throw Failure(name + " was started for another collective; give all ranks the same");
    channels_[peer]->connect(*address, name);
  }
  // Nobody writes before all can receive.
  rendezvous_.all_gather(json::object());
}

std::vector<mrc_qp*> Communicator::queue_pairs() const {
  std::vector<mrc_qp*> all;
  for (const auto& channel : channels_)
    if (channel) all.push_back(channel->queue_pair());
  return all;
}

std::uint64_t Communicator::bytes_received() const {
  std::uint64_t sum = 0;
  for (const auto& channel : channels_)
    if (channel) sum += channel->bytes_received();
  return sum;
}

bool Communicator::poll() {
  std::array<ibv_wc, 32> found;
  const int count = mrc_poll_cq(cq_.get(), static_cast<int>(found.size()), found.data());
  if (count < 0) throw Failure("a completion queue ran over");
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = found[static_cast<std::size_t>(i)];
    to(Channel::channel_of(wc)).on_completion(wc);
  }
  return count > 0;
}

void Communicator::progress() {
  const bool found = poll();
  if (++polls_ % kPollsPerLook == 0) look_around();
  if (found) {
    empty_polls_ = 0;
    restart_patience();
    return;
  }
  if (++empty_polls_ < kEmptyPolls) return;
  expect_ok("mrc_req_notify_cq", mrc_req_notify_cq(cq_.get(), 0));
  if (poll()) {
    empty_polls_ = 0;
    restart_patience();
    return;
  }
  sleep();
  look_around();
}

void Communicator::sleep() {
  std::vector<pollfd> waiting;
  waiting.reserve(rendezvous_.descriptors().size() + 1);
  waiting.push_back({events_fd_, POLLIN, 0});
  for (const int descriptor : rendezvous_.descriptors())
    waiting.push_back({descriptor, POLLIN, 0});
  ::poll(waiting.data(), waiting.size(), kSleepMs);
  if ((waiting.front().revents & POLLIN) == 0) return;
  mrc_cq* cq = nullptr;
  void* context = nullptr;
  if (mrc_get_cq_event(events_.get(), &cq, &context) == 0) mrc_ack_cq_events(cq, 1);
}

void Communicator::look_around() {
  const std::int64_t now = now_ns();
  if (moved_ns_ == 0) moved_ns_ = now;
  if (now < next_look_ns_) return;
  next_look_ns_ = now + kLookEveryNs;
  if (look_) look_();
  rendezvous_.check();
  if (static_cast<double>(now - moved_ns_) > options_.timeout_s * 1e9)
    throw Failure(fmt::format("nothing came from {} and nothing could be sent to {} for {:.0f} s",
                              previous().peer(), next().peer(), options_.timeout_s),
                  FailureKind::kTimeout);
}

}  // namespace mrc::collective
