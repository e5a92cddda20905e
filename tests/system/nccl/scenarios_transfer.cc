// Scenarios in which everything goes well.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "link.h"
#include "scenarios.h"

namespace mrc::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::uint64_t seed_of(int from, std::size_t index) {
  return static_cast<std::uint64_t>(from) * 1'000'003 + index;
}

LinkOptions pair_options(const Setting& setting, int number = 0) {
  const int other = 1 - setting.rank;
  return {.rank = setting.rank, .next = other, .previous = other, .number = number};
}

// One message each way, the receive larger than the message where there is room.
void exchange(Driver& driver, Link& link, const Setting& setting, std::size_t size,
              std::size_t room) {
  Buffer out(driver, link.send, size);
  Buffer in(driver, link.receive, room);
  out.fill(seed_of(setting.rank, size), size);
  in.clear();
  void* const receive = post_receive(driver, link.receive, in, room, 7);
  void* const send = post_send(driver, link.send, out, size, 7);
  MRC_CHECK(finish(driver, receive) == size);
  MRC_CHECK(finish(driver, send) == size);
  in.check(seed_of(1 - setting.rank, size), size);
}

// As many as NCCL may have at a time, small and large ones, tested newest first.
void many_at_a_time(Driver& driver, Link& link, const Setting& setting) {
  constexpr std::size_t kCount = nccl::kMaxRequests;
  constexpr std::size_t kRoom = 70'000;
  std::vector<std::unique_ptr<Buffer>> in;
  std::vector<std::unique_ptr<Buffer>> out;
  std::vector<void*> receives;
  std::vector<void*> sends;
  const auto size_of = [](std::size_t i) { return i * i * 67 % kRoom; };
  for (std::size_t i = 0; i < kCount; ++i) {
    in.push_back(std::make_unique<Buffer>(driver, link.receive, kRoom));
    out.push_back(std::make_unique<Buffer>(driver, link.send, kRoom));
    in[i]->clear();
    out[i]->fill(seed_of(setting.rank, i), size_of(i));
    receives.push_back(post_receive(driver, link.receive, *in[i], kRoom, 1));
  }
  for (std::size_t i = 0; i < kCount; ++i)
    sends.push_back(post_send(driver, link.send, *out[i], size_of(i), 1));
  for (std::size_t i = kCount; i > 0; --i) {
    MRC_CHECK(finish(driver, receives[i - 1]) == size_of(i - 1));
    in[i - 1]->check(seed_of(1 - setting.rank, i - 1), size_of(i - 1));
    MRC_CHECK(finish(driver, sends[i - 1]) == size_of(i - 1));
  }
}

// NCCL says so for data that carries its own flags; a request must come back all the same.
void optional_completion(Driver& driver, Link& link, const Setting& setting) {
  constexpr std::size_t kSize = 8'192;
  Buffer in(driver, link.receive, kSize);
  Buffer out(driver, link.send, kSize);
  in.clear();
  out.fill(seed_of(setting.rank, 99), kSize);
  void* request = nullptr;
  const Patience patience("irecv");
  while (request == nullptr) {
    void* data = in.data();
    void* memory = in.memory();
    std::size_t size = kSize;
    int tag = 3;
    request = reinterpret_cast<void*>(nccl::kOptionalReceiveCompletion);
    MRC_CHECK(driver.irecv(link.receive, 1, &data, &size, &tag, &memory, &request) ==
              Result::kSuccess);
    patience.wait();
  }
  void* const send = post_send(driver, link.send, out, kSize, 3);
  MRC_CHECK(finish(driver, request) == kSize);
  MRC_CHECK(finish(driver, send) == kSize);
  in.check(seed_of(1 - setting.rank, 99), kSize);
  // Another plug-in (docs/interop.md) may leave it as it is; ours says that there is none.
  void* flushed = driver.name() == "OpenMRC" ? &request : nullptr;
  void* data = in.data();
  void* memory = in.memory();
  int size = static_cast<int>(kSize);
  MRC_CHECK(driver.iflush(link.receive, 1, &data, &size, &memory, &flushed) == Result::kSuccess);
  MRC_CHECK(flushed == nullptr);
}

// One grouped receive of up to eight buffers; sends come in reverse order, some of them empty.
void one_group(Driver& driver, Link& link, const Setting& setting, std::size_t count,
               std::size_t round) {
  constexpr std::size_t kRoom = 100'000;
  const auto size_of = [&](std::size_t i) {
    return i == 2 ? 0 : (round * 7'919 + i * 104'729) % kRoom;
  };
  std::vector<std::unique_ptr<Buffer>> in;
  std::vector<std::unique_ptr<Buffer>> out;
  std::vector<void*> data;
  std::vector<void*> memory;
  std::vector<std::size_t> sizes(count, kRoom);
  std::vector<int> tags;
  for (std::size_t i = 0; i < count; ++i) {
    in.push_back(std::make_unique<Buffer>(driver, link.receive, kRoom));
    out.push_back(std::make_unique<Buffer>(driver, link.send, kRoom));
    in[i]->clear();
    out[i]->fill(seed_of(setting.rank, round * 8 + i), size_of(i));
    data.push_back(in[i]->data());
    memory.push_back(in[i]->memory());
    tags.push_back(static_cast<int>(1'000 + i));
  }
  void* receive = nullptr;
  const Patience patience("grouped irecv");
  while (receive == nullptr) {
    MRC_CHECK(driver.irecv(link.receive, static_cast<int>(count), data.data(), sizes.data(),
                           tags.data(), memory.data(), &receive) == Result::kSuccess);
    patience.wait();
  }
  std::vector<void*> sends;
  for (std::size_t i = count; i > 0; --i)
    sends.push_back(post_send(driver, link.send, *out[i - 1], size_of(i - 1), tags[i - 1]));
  int done = 0;
  std::array<int, 8> got{};
  while (done == 0) {
    MRC_CHECK(driver.test(receive, &done, got.data()) == Result::kSuccess);
    patience.wait();
  }
  for (void* send : sends)
    finish(driver, send);
  for (std::size_t i = 0; i < count; ++i) {
    MRC_CHECK(static_cast<std::size_t>(got.at(i)) == size_of(i));
    in[i]->check(seed_of(1 - setting.rank, round * 8 + i), size_of(i));
  }
}

// The part of a ring all-reduce that one rank does, on 32-bit integers.
class RingReduce {
 public:
  RingReduce(Driver& driver, Link& link, const Setting& setting, std::size_t count)
      : driver_(driver),
        link_(link),
        setting_(setting),
        part_((count + static_cast<std::size_t>(setting.ranks) - 1) /
              static_cast<std::size_t>(setting.ranks)),
        values_(part_ * static_cast<std::size_t>(setting.ranks)),
        out_(driver, link.send, part_ * sizeof(std::uint32_t)),
        in_(driver, link.receive, part_ * sizeof(std::uint32_t)) {}

  void run(std::uint32_t round) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = value(setting_.rank, round, i);
    const int ranks = setting_.ranks;
    for (int step = 0; step < 2 * (ranks - 1); ++step) {
      const bool reduce = step < ranks - 1;
      const int sent = (setting_.rank - step + 2 * ranks) % ranks;
      const int received = (sent - 1 + ranks) % ranks;
      pass(part(sent), part(received), reduce);
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::uint32_t expected = 0;
      for (int rank = 0; rank < ranks; ++rank)
        expected += value(rank, round, i);
      if (values_[i] != expected) die("round %u: value %zu is wrong", round, i);
    }
  }

 private:
  static std::uint32_t value(int rank, std::uint32_t round, std::size_t at) {
    return static_cast<std::uint32_t>(at * 2'654'435'761U) + static_cast<std::uint32_t>(rank) +
           round * 31;
  }
  std::uint32_t* part(int index) {
    return values_.data() + static_cast<std::size_t>(index) * part_;
  }
  void pass(const std::uint32_t* sent, std::uint32_t* received, bool reduce) {
    const std::size_t bytes = part_ * sizeof(std::uint32_t);
    std::memcpy(out_.data(), sent, bytes);
    void* const receive = post_receive(driver_, link_.receive, in_, bytes, 0);
    void* const send = post_send(driver_, link_.send, out_, bytes, 0);
    MRC_CHECK(finish(driver_, receive) == bytes && finish(driver_, send) == bytes);
    std::vector<std::uint32_t> got(part_);
    std::memcpy(got.data(), in_.data(), bytes);
    for (std::size_t i = 0; i < part_; ++i)
      received[i] = reduce ? received[i] + got[i] : got[i];
  }

  Driver& driver_;
  Link& link_;
  const Setting& setting_;
  std::size_t part_;
  std::vector<std::uint32_t> values_;
  Buffer out_;
  Buffer in_;
};

double seconds_of(const std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

// One connection each way with several chunks under way, as a channel of NCCL has them.
class Channel {
 public:
  Channel(Driver& driver, Link& link, std::size_t chunk, std::size_t count)
      : driver_(driver), link_(link), chunk_(chunk), count_(count) {
    for (std::size_t i = 0; i < kDepth; ++i) {
      in_.push_back(std::make_unique<Buffer>(driver, link.receive, chunk));
      out_.push_back(std::make_unique<Buffer>(driver, link.send, chunk));
      out_.back()->fill(i, chunk);
      in_.back()->clear();
    }
  }

  bool finished() const { return sent_ == count_ && received_ == count_; }
  // Posts what there is room for and tests the oldest of what is under way.
  void step() {
    post();
    int done = 0;
    if (received_ < posted_receives_) {
      MRC_CHECK(driver_.test(receives_.at(received_ % kDepth), &done, nullptr) == Result::kSuccess);
      received_ += static_cast<std::size_t>(done);
    }
    done = 0;
    if (sent_ < posted_sends_) {
      MRC_CHECK(driver_.test(sends_.at(sent_ % kDepth), &done, nullptr) == Result::kSuccess);
      sent_ += static_cast<std::size_t>(done);
    }
  }
  void check() {
    for (std::size_t i = 0; i < std::min(kDepth, count_); ++i)
      in_[i]->check(i, chunk_);
  }

 private:
  static constexpr std::size_t kDepth = 8;

  void post() {
    if (posted_receives_ < std::min(count_, received_ + kDepth)) {
      Buffer& buffer = *in_[posted_receives_ % kDepth];
      void* data = buffer.data();
      void* memory = buffer.memory();
      int tag = 0;
      std::size_t size = chunk_;
      void*& request = receives_.at(posted_receives_ % kDepth);
      request = nullptr;
      MRC_CHECK(driver_.irecv(link_.receive, 1, &data, &size, &tag, &memory, &request) ==
                Result::kSuccess);
      if (request != nullptr) ++posted_receives_;
    }
    if (posted_sends_ < std::min(count_, sent_ + kDepth)) {
      Buffer& buffer = *out_[posted_sends_ % kDepth];
      void*& request = sends_.at(posted_sends_ % kDepth);
      MRC_CHECK(driver_.isend(link_.send, buffer.data(), chunk_, 0, buffer.memory(), &request) ==
                Result::kSuccess);
      if (request != nullptr) ++posted_sends_;
    }
  }

  Driver& driver_;
  Link& link_;
  std::size_t chunk_;
  std::size_t count_;
  std::vector<std::unique_ptr<Buffer>> in_;
  std::vector<std::unique_ptr<Buffer>> out_;
  std::array<void*, kDepth> sends_{};
  std::array<void*, kDepth> receives_{};
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::size_t posted_sends_ = 0;
  std::size_t posted_receives_ = 0;
};

// Both directions at once over all links, driven by one thread as NCCL does it; GB/s of one
// direction. Data is checked.
double measure(Driver& driver, std::span<Link> links, std::size_t chunk, std::size_t count) {
  std::vector<std::unique_ptr<Channel>> channels;
  for (Link& link : links)
    channels.push_back(std::make_unique<Channel>(driver, link, chunk, count));
  const auto finished = [](const auto& channel) { return channel->finished(); };
  const Patience patience("measuring");
  const auto start = std::chrono::steady_clock::now();
  while (!std::all_of(channels.begin(), channels.end(), finished)) {
    for (const auto& channel : channels)
      channel->step();
    patience.wait();
  }
  const double seconds = seconds_of(std::chrono::steady_clock::now() - start);
  for (const auto& channel : channels)
    channel->check();
  return static_cast<double>(chunk * count * links.size()) / seconds / 1e9;
}

// Microseconds for a message there and one back, each into a receive posted in time.
double measure_latency(Driver& driver, Link& link, const Setting& setting, std::size_t size) {
  constexpr int kRounds = 2'000;
  Buffer in(driver, link.receive, size);
  Buffer out(driver, link.send, size);
  void* send = nullptr;
  void* receive = post_receive(driver, link.receive, in, size, 0);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) {
    if (setting.rank == 0) send = post_send(driver, link.send, out, size, 0);
    finish(driver, receive);
    if (i + 1 < kRounds) receive = post_receive(driver, link.receive, in, size, 0);
    if (setting.rank == 1) send = post_send(driver, link.send, out, size, 0);
    finish(driver, send);
  }
  return seconds_of(std::chrono::steady_clock::now() - start) / kRounds * 1e6;
}

}  // namespace

void all_sizes(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  Link link = make_link(driver, meeting, pair_options(setting));
  std::thread progress([&] {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{127}, std::size_t{128}, std::size_t{4'096},
          std::size_t{4'097}, std::size_t{65'535}, kMiB + 3, 16 * kMiB, 64 * kMiB}) {
      exchange(driver, link, setting, size, size);
      if (size <= kMiB) exchange(driver, link, setting, size, size + 1'000);
    }
    many_at_a_time(driver, link, setting);
    optional_completion(driver, link, setting);
  });
  progress.join();
  close_link(driver, link);
}

void groups(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  Link link = make_link(driver, meeting, pair_options(setting));
  std::thread progress([&] {
    for (std::size_t round = 0; round < 80; ++round)
      one_group(driver, link, setting, round % 8 + 1, round);
  });
  progress.join();
  close_link(driver, link);
}

void many_threads(const Setting& setting) {
  constexpr int kThreads = 4;
  Driver driver(setting.plugin, setting.version);
  driver.init();
  if (driver.set_attributes) {
    nccl::NetAttributes attributes{.send = {4, 1, 2, 1}, .receive = {4, 1, 2, 1}};
    MRC_CHECK(driver.set_attributes(&attributes) == Result::kSuccess);
  }
  const Meeting meeting(setting.directory, setting.rank);
  std::vector<Link> links;
  for (int i = 0; i < kThreads; ++i)
    links.push_back(make_link(driver, meeting, pair_options(setting, i)));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      Link& link = links[static_cast<std::size_t>(i)];
      for (std::size_t round = 0; round < 50; ++round)
        exchange(driver, link, setting, round * 9'973 % 300'000, 300'000);
      many_at_a_time(driver, link, setting);
    });
  }
  // The service thread goes on registering memory meanwhile.
  for (int i = 0; i < 200; ++i)
    const Buffer buffer(driver, links[static_cast<std::size_t>(i) % kThreads].send, 10'000);
  for (std::thread& thread : threads)
    thread.join();
  for (Link& link : links)
    close_link(driver, link);
}

void ring(const Setting& setting) {
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  const int ranks = setting.ranks;
  Link link = make_link(driver, meeting,
                        {.rank = setting.rank,
                         .next = (setting.rank + 1) % ranks,
                         .previous = (setting.rank + ranks - 1) % ranks});
  const char* const text = std::getenv("ROUNDS");
  const auto rounds = static_cast<std::uint32_t>(text == nullptr ? 10 : std::atoi(text));
  std::thread progress([&] {
    RingReduce reduce(driver, link, setting, kMiB);
    for (std::uint32_t round = 0; round < rounds; ++round) {
      reduce.run(round);
      if (setting.rank == 0) meeting.put("round." + std::to_string(round), {});
    }
  });
  progress.join();
  meeting.barrier("finished", ranks);
  close_link(driver, link);
}

void bandwidth(const Setting& setting) {
  constexpr int kLinks = 4;
  Driver driver(setting.plugin, setting.version);
  driver.init();
  const Meeting meeting(setting.directory, setting.rank);
  std::vector<Link> links;
  for (int i = 0; i < kLinks; ++i)
    links.push_back(make_link(driver, meeting, pair_options(setting, i)));
  for (const std::size_t used : {std::size_t{1}, std::size_t{2}, std::size_t{kLinks}}) {
    for (const std::size_t chunk : {std::size_t{4'096}, std::size_t{65'536}, kMiB / 2}) {
      const std::size_t count = std::min<std::size_t>(512 * kMiB / chunk / used, 20'000);
      meeting.barrier("start" + std::to_string(used) + "." + std::to_string(chunk), setting.ranks);
      const double before = processor_seconds();
      const double rate = measure(driver, std::span(links).first(used), chunk, count);
      if (setting.rank != 0) continue;
      std::printf("%zu channels, %8zu bytes: %6.2f GB/s each way, %.2f processor seconds\n", used,
                  chunk, rate, processor_seconds() - before);
      std::fflush(stdout);
    }
  }
  for (const std::size_t size :
       {std::size_t{64}, std::size_t{4'096}, std::size_t{65'536}, kMiB / 4}) {
    meeting.barrier("latency" + std::to_string(size), setting.ranks);
    const double us = measure_latency(driver, links.front(), setting, size);
    if (setting.rank == 0) std::printf("%8zu bytes there and back: %.1f us\n", size, us);
  }
  meeting.barrier("measured", setting.ranks);
  for (Link& link : links)
    close_link(driver, link);
}

}  // namespace mrc::test
