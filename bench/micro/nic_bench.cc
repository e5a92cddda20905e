// Two processes on one machine: the software NIC beside plain UDP sockets.
//
//   mrc_nic_bench bw  [bytes] [messages]   writes in a row, verified
//   mrc_nic_bench lat [bytes] [round trips]
//   mrc_nic_bench rate [bytes] [messages]  small writes, one signaled in 64
//   mrc_nic_bench udp [bytes] [round trips]  the same exchange over two sockets that spin
//
// Prints one JSON object. Data is checked in every mode.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nic/device.h"

namespace {

using mrc::TimeNs;
namespace core = mrc::core;
namespace nic = mrc::nic;
namespace node = mrc::node;

TimeNs clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * mrc::kSecondNs + now.tv_nsec;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "mrc_nic_bench: %s\n", what.c_str());
  std::_Exit(1);
}

void must(int error, const char* what) {
  if (error != 0) fail(std::string(what) + ": " + std::strerror(error));
}

struct Hello {
  std::uint32_t qp = 0;
  std::uint32_t key = 0;
  std::uint64_t address = 0;
};

std::uint8_t pattern(std::size_t i, std::uint64_t salt) {
  return static_cast<std::uint8_t>(((i / 8 + salt) * 0x9E37'79B9'7F4A'7C15) >> (i % 8 * 8));
}

struct Options {
  std::string mode;
  std::size_t bytes = 0;
  unsigned count = 0;
};

// One end: a device, a queue pair, a buffer to send from and one to be written into.
class End {
 public:
  End(const Options& options, int channel, std::string directory)
      : options_(options), channel_(channel) {
    node::DeviceConfig config = node::default_device();
    config.directory = std::move(directory);
    std::string error;
    device_ = nic::Device::open(config, error);
    if (!device_) fail(error);
    must(device_->create_completion_queue(4096, nullptr, nullptr, cq_), "completion queue");
    const std::uint32_t domain = device_->new_domain();
    nic::QpSetup setup{.domain = domain,
                       .send_cq = cq_.get(),
                       .receive_cq = cq_.get(),
                       .max_sends = 128,
                       .max_inline = 64};
    must(device_->create_queue_pair(setup, qp_), "queue pair");
    const std::size_t size = std::max<std::size_t>(options.bytes, 64);
    from_.resize(size);
    to_.resize(size);
    must(device_->register_memory(domain, from_.data(), size, address(from_), true, false,
                                  from_keys_),
         "memory");
    must(device_->register_memory(domain, to_.data(), size, address(to_), true, true, to_keys_),
         "memory");
  }

  void connect() {
    const Hello mine{static_cast<std::uint32_t>(qp_->number()), to_keys_.remote, address(to_)};
    if (write(channel_, &mine, sizeof mine) != sizeof mine) fail("channel");
    if (read(channel_, &peer_, sizeof peer_) != sizeof peer_) fail("channel");
    must(qp_->to_init({}), "INIT");
    nic::QpPeer peer{.gid = device_->gid(), .settings = {}};
    peer.settings.remote_qp = mrc::QpNumber{peer_.qp};
    must(qp_->to_rtr(peer), "RTR");
    must(qp_->to_rts({}), "RTS");
    char go = 1;
    if (write(channel_, &go, 1) != 1 || read(channel_, &go, 1) != 1) fail("channel");
  }

  void wait_for_peer() {
    char go = 1;
    if (write(channel_, &go, 1) != 1 || read(channel_, &go, 1) != 1) fail("channel");
  }

  bool post(std::uint64_t id, std::size_t length, bool signaled, bool inline_data = false) {
    const nic::Buffer buffer{from_.data(), static_cast<std::uint32_t>(length), from_keys_.local};
    const nic::SendWork work{.id = id,
                             .buffers = {&buffer, 1},
                             .inline_data = inline_data,
                             .signaled = signaled,
                             .remote_address = peer_.address,
                             .remote_key = peer_.key};
    std::size_t posted = 0;
    const int error = qp_->post_sends({&work, 1}, posted);
    if (error == ENOMEM) return false;
    must(error, "post");
    return true;
  }

  // How many sends finished.
  unsigned poll() {
    std::array<nic::WorkCompletion, 16> done;
    const int count = cq_->poll(done);
    if (count < 0) must(-count, "poll");
    for (int i = 0; i < count; ++i) {
      if (done[static_cast<std::size_t>(i)].status != core::CompletionStatus::kSuccess) {
        fail(qp_->report().explanation);
      }
    }
    return static_cast<unsigned>(count);
  }

  void check(std::uint64_t salt) {
    for (std::size_t i = 0; i < options_.bytes; ++i)
      if (static_cast<std::uint8_t>(to_[i]) != pattern(i, salt)) {
        fail("data wrong at byte " + std::to_string(i));
      }
  }
  void fill(std::uint64_t salt) {
    for (std::size_t i = 0; i < from_.size(); ++i)
      from_[i] = std::byte{pattern(i, salt)};
  }

  std::byte* from() { return from_.data(); }
  std::byte* to() { return to_.data(); }
  nic::QueuePair& qp() { return *qp_; }
  nic::Device& device() { return *device_; }

 private:
  static std::uint64_t address(std::vector<std::byte>& v) {
    return reinterpret_cast<std::uintptr_t>(v.data());
  }

  Options options_;
  int channel_;
  std::shared_ptr<nic::Device> device_;
  std::unique_ptr<nic::CompletionQueue> cq_;
  std::unique_ptr<nic::QueuePair> qp_;
  std::vector<std::byte> from_;
  std::vector<std::byte> to_;
  nic::MemoryKeys from_keys_;
  nic::MemoryKeys to_keys_;
  Hello peer_;
};

void print_counters(End& end) {
  const core::QpCounters c = end.qp().report().status.counters;
  const nic::DeviceReport d = end.device().report();
  std::printf(
      "\"data_sent\": %lu, \"retransmitted\": %lu, \"spurious\": %lu, \"duplicates\": %lu, "
      "\"by_path\": %lu, \"by_time\": %lu, \"by_timeout\": %lu, \"hedged\": %lu, "
      "\"probes\": %lu, \"timeouts\": %lu, \"sacks_in\": %lu, \"sacks_out\": %lu, "
      "\"acks_out\": %lu, \"data_in\": %lu, \"send_calls\": %lu, \"receive_calls\": %lu, "
      "\"packets_sent\": %lu, \"packets_received\": %lu, \"refused\": %lu, "
      "\"overflow\": %lu, ",
      c.data_sent, c.retransmitted, c.spurious, c.duplicates, c.lost_by_path_order, c.lost_by_time,
      c.lost_by_timeout, c.hedged, c.probes_sent, c.timeouts, c.sacks_received, c.sacks_sent,
      c.acks_sent, c.data_received, d.backend.send_calls, d.backend.receive_calls,
      d.backend.packets_sent, d.backend.packets_received, d.backend.send_refused,
      d.backend.receive_overflow);
}

void run_bandwidth(const Options& options, End& end, bool client) {
  end.fill(1);
  end.connect();
  if (client) {
    const bool small = options.mode == "rate";
    const double cpu = cpu_seconds();
    const TimeNs start = clock_ns();
    unsigned posted = 0;
    for (unsigned finished = 0; finished < options.count;) {
      while (posted < options.count) {
        const bool signaled = !small || posted % 64 == 63 || posted + 1 == options.count;
        if (!end.post(posted, options.bytes, signaled)) break;
        ++posted;
      }
      const unsigned done = end.poll();
      finished += small ? 64 * done : done;
    }
    const auto ns = static_cast<double>(clock_ns() - start);
    const double total = static_cast<double>(options.bytes) * options.count;
    std::printf(
        "{\"mode\": \"%s\", \"bytes\": %zu, \"messages\": %u, \"gigabytes_per_second\": "
        "%.3f, \"messages_per_second\": %.0f, \"cpu_seconds_per_gigabyte\": %.3f, ",
        options.mode.c_str(), options.bytes, options.count, total / ns, options.count * 1e9 / ns,
        (cpu_seconds() - cpu) / (total * 1e-9));
    print_counters(end);
  }
  end.wait_for_peer();
  if (!client) {
    end.check(1);
    if (std::getenv("MRC_BENCH_SERVER") != nullptr) {
      print_counters(end);
      std::printf("\"server_cpu\": %.3f\n", cpu_seconds());
    }
  }
}

// The receiver watches the last byte of a write of one packet, as ib_write_lat does.
void run_latency(const Options& options, End& end, bool client) {
  end.connect();
  std::atomic_ref<std::byte> flag(end.to()[options.bytes - 1]);
  std::vector<TimeNs> samples;
  samples.reserve(options.count);
  const unsigned warm_up = options.count / 10;
  for (unsigned i = 1; i <= options.count + warm_up; ++i) {
    const auto mark = static_cast<std::byte>(i % 255 + 1);
    end.from()[options.bytes - 1] = mark;
    const TimeNs start = clock_ns();
    const auto send = [&] {
      while (!end.post(i, options.bytes, true, options.bytes <= 64))
        end.poll();
    };
    if (client) send();
    while (flag.load(std::memory_order_acquire) != mark)
      end.poll();
    if (!client) send();
    if (i > warm_up) samples.push_back(clock_ns() - start);
  }
  if (client) {
    std::sort(samples.begin(), samples.end());
    std::printf(
        "{\"mode\": \"lat\", \"bytes\": %zu, \"one_way_median_us\": %.2f, "
        "\"one_way_p99_us\": %.2f, ",
        options.bytes, static_cast<double>(samples[samples.size() / 2]) / 2000.0,
        static_cast<double>(samples[samples.size() * 99 / 100]) / 2000.0);
    print_counters(end);
  }
  end.wait_for_peer();
}

void run_udp(const Options& options, int channel, bool client) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in mine{};
  mine.sin_family = AF_INET;
  mine.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof mine;
  if (bind(fd, reinterpret_cast<sockaddr*>(&mine), sizeof mine) != 0) fail("bind");
  getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &length);
  sockaddr_in peer{};
  if (write(channel, &mine, sizeof mine) != sizeof mine) fail("channel");
  if (read(channel, &peer, sizeof peer) != sizeof peer) fail("channel");
  if (connect(fd, reinterpret_cast<sockaddr*>(&peer), sizeof peer) != 0) fail("connect");
  char go = 1;
  if (write(channel, &go, 1) != 1 || read(channel, &go, 1) != 1) fail("channel");
  std::vector<char> out(options.bytes);
  std::vector<char> in(options.bytes);
  std::vector<TimeNs> samples;
  for (unsigned i = 0; i < options.count; ++i) {
    const TimeNs start = clock_ns();
    out[0] = static_cast<char>(i);
    if (client && send(fd, out.data(), out.size(), 0) < 0) fail("send");
    while (recv(fd, in.data(), in.size(), 0) < 0) {
    }
    if (in[0] != static_cast<char>(i)) fail("data wrong");
    if (!client && send(fd, out.data(), out.size(), 0) < 0) fail("send");
    samples.push_back(clock_ns() - start);
  }
  close(fd);
  if (!client) return;
  std::sort(samples.begin(), samples.end());
  std::printf(
      "{\"mode\": \"udp\", \"bytes\": %zu, \"one_way_median_us\": %.2f, "
      "\"one_way_p99_us\": %.2f, ",
      options.bytes, static_cast<double>(samples[samples.size() / 2]) / 2000.0,
      static_cast<double>(samples[samples.size() * 99 / 100]) / 2000.0);
}

void run(const Options& options, int channel, bool client, const std::string& directory) {
  if (options.mode == "udp") {
    run_udp(options, channel, client);
    return;
  }
  End end(options, channel, directory);
  if (options.mode == "lat") {
    run_latency(options, end, client);
  } else {
    run_bandwidth(options, end, client);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.mode = argc > 1 ? argv[1] : "bw";
  const bool bulk = options.mode == "bw";
  options.bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : (bulk ? 1U << 20 : 64);
  options.count =
      argc > 3 ? static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)) : (bulk ? 4000 : 50'000);
  const bool known = options.mode == "bw" || options.mode == "lat" || options.mode == "rate" ||
                     options.mode == "udp";
  if (!known || options.bytes == 0 || options.count == 0) {
    std::fprintf(stderr, "usage: mrc_nic_bench bw|lat|rate|udp [bytes] [count]\n");
    return 2;
  }
  std::string name = std::filesystem::temp_directory_path() / "mrc_nic_bench_XXXXXX";
  const std::string directory = mkdtemp(name.data());
  std::array<int, 2> channel{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel.data()) != 0) fail("socketpair");
  const pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    run(options, channel[1], /*client=*/false, directory);
    std::fflush(stdout);
    std::_Exit(0);
  }
  close(channel[1]);
  run(options, channel[0], /*client=*/true, directory);
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::remove_all(directory);
  const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::printf("\"verified\": %s}\n", good ? "true" : "false");
  return good ? 0 : 1;
}
