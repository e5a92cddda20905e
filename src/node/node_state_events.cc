#include "node/node_state_events.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <limits>

#include "node/node_state_files.h"
#include "os/kernel_random.h"
#include "wire/icrc.h"
#include "wire/reader.h"
#include "wire/writer.h"

namespace mrc::node {
namespace {

constexpr std::size_t kMaxListeners = 1'024;
constexpr std::size_t kMaxSenders = 4'096;          // whose sequence a listener follows
constexpr std::uint32_t kEventMagic = 0x4D45'5632;  // "MEV2"
constexpr std::size_t kEventBytes = 4 + 8 + 8 + 8 + 2 * wire::kEvBytes + 3 + 4;

// Small enough that the kernel writes one whole or not at all.
using Frame = std::array<std::byte, kEventBytes>;
static_assert(kEventBytes <= 512);

constexpr std::uint8_t kEvDenied = 1;
constexpr std::uint8_t kEvPopulated = 2;

std::uint32_t frame_sum(const Frame& frame) {
  return ~wire::crc32_update(0xFFFF'FFFF, std::span(frame).first(kEventBytes - 4));
}

Frame make_frame(std::uint64_t sender, std::uint64_t sequence, const NodeEvEvent& event) {
  Frame frame{};
  wire::ByteWriter out(frame);
  out.u32(kEventMagic);
  out.u64(sender);
  out.u64(sequence);
  out.u64(event.profile_id);
  out.copy_from(std::span<const std::uint8_t, wire::kEvBytes>(event.ev.value.bytes));
  out.copy_from(std::span<const std::uint8_t, wire::kEvBytes>(event.ev.compact.bytes));
  out.u8(static_cast<std::uint8_t>(event.ev.port));
  out.u8(static_cast<std::uint8_t>((event.ev.denied ? kEvDenied : 0) |
                                   (event.ev.populated ? kEvPopulated : 0)));
  out.u8(static_cast<std::uint8_t>(event.state));
  out.u32(frame_sum(frame));
  return frame;
}

struct Arrival {
  std::uint64_t sender = 0;
  std::uint64_t sequence = 0;
  NodeEvEvent event;
};

bool read_frame(const Frame& frame, Arrival& out) {
  wire::ByteReader in(frame);
  if (in.u32() != kEventMagic) return false;
  out.sender = in.u64();
  out.sequence = in.u64();
  out.event.profile_id = in.u64();
  in.copy_to(std::span(out.event.ev.value.bytes));
  in.copy_to(std::span(out.event.ev.compact.bytes));
  const std::uint8_t port = in.u8();
  const std::uint8_t flags = in.u8();
  const std::uint8_t state = in.u8();
  if (in.u32() != frame_sum(frame)) return false;
  out.event.ev.port = PortId{port};
  out.event.ev.denied = (flags & kEvDenied) != 0;
  out.event.ev.populated = (flags & kEvPopulated) != 0;
  out.event.state = static_cast<core::EvState>(state);
  return port <= kMaxPorts && state <= static_cast<std::uint8_t>(core::EvState::kDenied);
}

// Writes to a pipe whose reader may just have died, without the signal that would end the program.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~NoPipeSignal() {
    const timespec now{};
    if (raised_ && !was_waiting_) {
      while (sigtimedwait(&set_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  void raised() { raised_ = true; }

 private:
  sigset_t set_;
  sigset_t before_;
  bool was_waiting_ = false;
  bool raised_ = false;
};

// False when nobody will ever read it.
bool write_frame(const std::string& path, const Frame& frame) {
  const os::Descriptor pipe(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!pipe.valid()) return errno != ENXIO;
  struct stat info {};
  if (fstat(pipe.get(), &info) != 0 || !S_ISFIFO(info.st_mode)) return true;
  NoPipeSignal quiet;
  if (write(pipe.get(), frame.data(), frame.size()) >= 0 || errno != EPIPE) return true;
  quiet.raised();
  return false;
}

class PipeListener final : public NodeState::Listener {
 public:
  PipeListener(os::Descriptor pipe, std::string path)
      : pipe_(std::move(pipe)), path_(std::move(path)), owner_(getpid()) {}
  ~PipeListener() override {
    if (owner_ == getpid()) unlink(path_.c_str());
  }
  PipeListener(const PipeListener&) = delete;
  PipeListener& operator=(const PipeListener&) = delete;

  int descriptor() const override { return pipe_.get(); }

  // Reads no more than it hands out, so that the descriptor stays readable while there is more.
  // Anybody may write anything here; after noise it goes on with the next whole event.
  bool next(NodeEvEvent& event) override {
    while (true) {
      const ssize_t count = read(pipe_.get(), frame_.data() + have_, frame_.size() - have_);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      have_ += static_cast<std::size_t>(count);
      if (have_ < frame_.size()) continue;
      Arrival arrival;
      if (read_frame(frame_, arrival)) {
        have_ = 0;
        event = arrival.event;
        event.lost_before = lost_before(arrival);
        return true;
      }
      std::memmove(frame_.data(), frame_.data() + 1, frame_.size() - 1);
      --have_;
    }
  }

 private:
  // Every sender counts what it sends to this listener from 1 on. Numbers that go back tell
  // nothing, and nothing is known of senders beyond the limit.
  std::uint32_t lost_before(const Arrival& arrival) {
    auto last = last_.find(arrival.sender);
    if (last == last_.end()) {
      if (last_.size() == kMaxSenders) return 0;
      last = last_.emplace(arrival.sender, 0).first;
    }
    const std::uint64_t before = last->second;
    last->second = arrival.sequence;
    return arrival.sequence > before ? static_cast<std::uint32_t>(arrival.sequence - before - 1)
                                     : 0;
  }

  node_files::LifeDescriptor pipe_;
  std::string path_;
  pid_t owner_;
  Frame frame_{};
  std::size_t have_ = 0;
  std::map<std::uint64_t, std::uint64_t> last_;
};

// Room for so many events. A pipe is made of pages, and no event stands in two of them. Beyond
// what anybody may ask for (1 MiB) it takes the right to.
bool make_room(int pipe, std::size_t events) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t per_page = page / kEventBytes;
  const std::size_t wanted = (events + per_page - 1) / per_page * page;
  if (wanted > static_cast<std::size_t>(std::numeric_limits<int>::max())) return false;
  const int granted = fcntl(pipe, F_SETPIPE_SZ, static_cast<int>(wanted));
  return granted >= 0 && static_cast<std::size_t>(granted) >= wanted;
}

}  // namespace

EventSender::EventSender(std::string directory)
    : directory_(std::move(directory)), id_(os::KernelRandom().next64()) {}

void EventSender::send(const NodeEvEvent& event) {
  const std::vector<std::string> listeners = node_files::list_directory(directory_, kMaxListeners);
  if (listeners.empty()) return;
  const std::lock_guard lock(mutex_);
  if (sequence_.size() > 2 * kMaxListeners) sequence_.clear();
  for (const std::string& listener : listeners) {
    const std::string path = node_files::path_in(directory_, listener);
    if (write_frame(path, make_frame(id_, ++sequence_[listener], event))) continue;
    unlink(path.c_str());  // its listener died
    sequence_.erase(listener);
  }
}

std::unique_ptr<NodeState::Listener> open_listener(const std::string& directory,
                                                   std::size_t capacity) {
  // Senders look at so many: one more would hear nothing.
  if (node_files::list_directory(directory, kMaxListeners).size() >= kMaxListeners) {
    errno = ENOMEM;
    return nullptr;
  }
  const std::string path = node_files::path_in(directory, node_files::unique_name());
  if (mkfifo(path.c_str(), 0600) != 0) {
    if (errno == EACCES) errno = EPERM;
    return nullptr;
  }
  // Open for writing too: with no writer left the descriptor would be readable for ever.
  os::Descriptor pipe(open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  const bool has_room = pipe.valid() && make_room(pipe.get(), capacity);
  if (!has_room || fchmod(pipe.get(), 0622) != 0) {
    const int error = !pipe.valid() || has_room ? errno : ENOMEM;
    unlink(path.c_str());
    errno = error;
    return nullptr;
  }
  return std::make_unique<PipeListener>(std::move(pipe), path);
}

}  // namespace mrc::node
