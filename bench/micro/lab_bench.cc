// How fast the lab's switches are, per second of processor time of the thread that runs them.
//
//   mrc_lab_bench hops     [frames] [payload]   switch hops in memory, without sockets
//   mrc_lab_bench sockets  [frames] [payload]   from a host's socket over four links to another's
//
// Links are so fast that they never wait. Prints one JSON object.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "fabric/host_address.h"
#include "lab/cables.h"
#include "lab/cluster.h"
#include "wire/frame.h"

namespace {

namespace fabric = mrc::fabric;
namespace lab = mrc::lab;
namespace wire = mrc::wire;

constexpr unsigned kSource = 0;
constexpr unsigned kDestination = 6;
constexpr unsigned kBatch = 64;

fabric::TopologySpec fast_fabric() {
  fabric::TopologySpec spec;
  spec.planes = 1;
  spec.hosts = 8;
  spec.t0 = 2;
  spec.t1 = 4;
  for (fabric::LinkClass* link : {&spec.host_link, &spec.t0_t1_link, &spec.t1_t2_link})
    *link = {.bits_per_second = 1'000'000'000'000, .delay_ps = 1};
  return spec;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::byte> make_frame(std::size_t payload_length) {
  const fabric::Topology topology(fast_fabric());
  const fabric::Routing routing(topology);
  wire::FrameHeader header;
  header.source = fabric::host_address(0, kSource);
  header.destination = fabric::host_address(0, kDestination);
  header.dscp = wire::DscpMap{}.trimmable;
  header.ecn = wire::Ecn::kEct0;
  header.srv6 = true;
  header.outer.source = header.source;
  header.outer.carrier = routing.carrier(kSource, kDestination, {.up = 2});
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kWriteOnly;
  wire::Write write;
  write.message_length = static_cast<std::uint32_t>(payload_length);
  packet.body = write;
  const std::vector<std::byte> payload(payload_length);
  const std::span<const std::byte> piece(payload);
  std::vector<std::byte> frame(lab::FramePool::kMaxFrameBytes);
  frame.resize(wire::build_frame({}, header, packet, {&piece, 1}, frame));
  return frame;
}

class Discard final : public lab::HostSide {
 public:
  explicit Discard(lab::FramePool& pool) : pool_(&pool) {}
  bool deliver(unsigned, unsigned, lab::FrameId frame) override {
    pool_->give_back(frame);
    ++frames;
    return true;
  }
  std::uint64_t frames = 0;

 private:
  lab::FramePool* pool_;
};

void print(const char* what, std::uint64_t frames, std::size_t payload, double seconds) {
  const double rate = static_cast<double>(frames) / seconds;
  std::printf(
      "{\"mode\": \"%s\", \"frames\": %llu, \"payload\": %zu, \"cpu_s\": %.3f, "
      "\"frames_per_core_s\": %.0f, \"switch_hops_per_core_s\": %.0f}\n",
      what, static_cast<unsigned long long>(frames), payload, seconds, rate, rate * 3);
}

int hops(std::uint64_t count, std::size_t payload) {
  const fabric::Topology topology(fast_fabric());
  const fabric::Routing routing(topology);
  lab::FramePool pool(1'024);
  Discard hosts(pool);
  lab::Network network(routing, {}, pool, hosts);
  const std::vector<std::byte> frame = make_frame(payload);
  lab::Picoseconds now = 0;
  const double start = thread_seconds();
  for (std::uint64_t sent = 0; sent < count; sent += kBatch) {
    for (unsigned i = 0; i < kBatch; ++i) {
      const lab::FrameId id = pool.take();
      std::memcpy(pool.room(id).data(), frame.data(), frame.size());
      pool.set_length(id, frame.size());
      network.send(now, now, 0, kSource, id);
    }
    now += 1'000'000'000;
    network.run(now);
  }
  print("hops", hosts.frames, payload, thread_seconds() - start);
  return 0;
}

int connect_host(const std::string& directory, unsigned host) {
  const std::string path = lab::Cables::socket_path(directory, 0, host);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const void* const raw = &address;
  if (::connect(socket, static_cast<const sockaddr*>(raw), sizeof(address)) != 0) std::abort();
  return socket;
}

// Sends or receives whole batches until `stop`.
void pump(int socket, std::vector<std::byte> frame, bool send, const std::atomic<bool>& stop) {
  std::vector<std::byte> room(kBatch * frame.size());
  std::array<mmsghdr, kBatch> headers{};
  std::array<iovec, kBatch> pieces;
  for (unsigned i = 0; i < kBatch; ++i) {
    pieces[i] = {send ? frame.data() : room.data() + i * frame.size(), frame.size()};
    headers[i].msg_hdr.msg_iov = &pieces[i];
    headers[i].msg_hdr.msg_iovlen = 1;
  }
  while (!stop) {
    const int done = send ? ::sendmmsg(socket, headers.data(), kBatch, MSG_NOSIGNAL)
                          : ::recvmmsg(socket, headers.data(), kBatch, MSG_WAITFORONE, nullptr);
    if (done <= 0) return;
  }
}

int sockets(std::uint64_t count, std::size_t payload) {
  std::string directory = std::filesystem::temp_directory_path() / "mrc_lab_bench_XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  lab::ClusterOptions options;
  options.topology = fast_fabric();
  options.socket_directory = directory;
  options.network.host_latency_ps = 20'000'000'000;
  {
    lab::Cluster cluster(options);
    const std::vector<std::byte> frame = make_frame(payload);
    std::atomic<bool> stop = false;
    const int source = connect_host(directory, kSource);
    const int destination = connect_host(directory, kDestination);
    std::thread sender([&] { pump(source, frame, true, stop); });
    std::thread receiver([&] { pump(destination, frame, false, stop); });
    const lab::LinkId last = cluster.topology().host_down(0, kDestination);
    const double start = thread_seconds();
    while (cluster.network().counters(last).frames < count) {
      cluster.step();
      pollfd descriptor{cluster.descriptor(), POLLIN, 0};
      ::poll(&descriptor, 1, cluster.next_time() == fabric::kForever ? 100 : 0);
    }
    const double seconds = thread_seconds() - start;
    print("sockets", cluster.network().counters(last).frames, payload, seconds);
    stop = true;
    ::shutdown(source, SHUT_RDWR);
    ::shutdown(destination, SHUT_RDWR);
    sender.join();
    receiver.join();
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "hops";
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
  const std::size_t payload = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 64;
  if ((mode != "hops" && mode != "sockets") || count == 0 || payload > 8'192) {
    std::fprintf(stderr, "usage: mrc_lab_bench hops|sockets [frames] [payload up to 8192]\n");
    return 2;
  }
  return mode == "hops" ? hops(count, payload) : sockets(count, payload);
}
