#include "connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "log.h"

namespace mrc::nccl {
namespace {

constexpr std::size_t kPollBatch = 16;
constexpr std::uint64_t kLookEveryMs = 10;
constexpr std::uint64_t kGraceMs = 250;
// The clock is read once in so many empty polls.
constexpr unsigned kPollsPerLook = 64;
constexpr std::size_t kMaxText = 512;

const char* explain(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "it does not answer on any path";
    case IBV_WC_REM_ACCESS_ERR:
      return "it refused a write: the memory is not registered there any more";
    case IBV_WC_REM_INV_REQ_ERR:
      return "it refused a request as invalid";
    case IBV_WC_REM_OP_ERR:
      return "it could not take a message";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "it had no receive posted";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair was ended";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return "our memory is not registered any more";
    default:
      return "the queue pair failed";
  }
}

Result result_of(ibv_wc_status status) {
  const bool local = status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_LOC_ACCESS_ERR ||
                     status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR;
  return local ? Result::kSystemError : Result::kRemoteError;
}

}  // namespace

std::string peer_text(const Message& peer) {
  return peer.name + " at " + to_text(Address{peer.gid});
}

void log_connected(QueuePair& pair, const Message& peer, const char* direction) {
  const DeviceInfo& info = pair.adapter().info();
  log_info("%s %s %s: queue pair 0x%06x over %u planes, each packet on the path of its turn",
           info.name.c_str(), direction, peer_text(peer).c_str(), peer.qp_number, info.planes);
  if (peer.plane_count != info.planes) {
    log_warning("%s has %u planes and %s has %u: planes that only one of them has carry nothing",
                info.name.c_str(), info.planes, peer_text(peer).c_str(),
                unsigned{peer.plane_count});
  }
}

Connection::Connection(ConnectionParts parts)
    : pair_(std::move(parts.pair)),
      stream_(std::move(parts.stream)),
      peer_(std::move(parts.peer)) {}

Connection::~Connection() {
  // Regions belong to the queue pair's protection domain.
  for (MemoryHandle* handle : memory_) {
    if (handle->region != nullptr) ibv_dereg_mr(handle->region);
    delete handle;
  }
}

Result Connection::register_memory(void* data, std::size_t size, int type, void** handle) {
  if (handle == nullptr || (data == nullptr && size > 0)) return Result::kInvalidArgument;
  if (type != kPointerHost) {
    log_warning(
        "memory of type %d cannot be registered: this transport reads and writes host "
        "memory only",
        type);
    return Result::kInvalidArgument;
  }
  auto made = std::make_unique<MemoryHandle>();
  if (size > 0) {
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    made->region = ibv_reg_mr(pair_->domain(), data, size, kAccess);
    if (made->region == nullptr) {
      log_warning("%zu bytes of memory cannot be registered: %s", size, std::strerror(errno));
      return Result::kSystemError;
    }
  }
  const std::lock_guard lock(memory_mutex_);
  memory_.insert(made.get());
  *handle = made.release();
  return Result::kSuccess;
}

Result Connection::deregister_memory(void* handle) {
  auto* const memory = static_cast<MemoryHandle*>(handle);
  {
    const std::lock_guard lock(memory_mutex_);
    if (memory_.erase(memory) == 0) {
      log_warning("memory that is not registered was to be deregistered");
      return Result::kInvalidArgument;
    }
  }
  const int error = memory->region == nullptr ? 0 : ibv_dereg_mr(memory->region);
  delete memory;
  return error == 0 ? Result::kSuccess : Result::kSystemError;
}

void Connection::say_bye() {
  if (stream_.state() != StreamState::kOpen) return;
  stream_.send({.kind = MessageKind::kBye, .messages_received = messages_received()});
  // What waits unread would turn our goodbye into a reset.
  std::string ignored;
  while (stream_.receive(ignored)) {
  }
}

Result Connection::progress() {
  if (failure_ != Result::kSuccess) return failure_;
  std::array<ibv_wc, kPollBatch> done;
  const int got = pair_->poll(done);
  if (got < 0) return fail(Result::kSystemError, "its completion queue overran");
  for (int i = 0; i < got; ++i) {
    const ibv_wc& one = done.at(static_cast<std::size_t>(i));
    if (one.status == IBV_WC_SUCCESS) {
      on_completion(one);
    } else {
      on_error(one);
    }
  }
  if (got == 0 && ++empty_polls_ % kPollsPerLook == 0) look_after_peer();
  return failure_;
}

Result Connection::fail(Result result, const char* format, ...) {
  if (failure_ != Result::kSuccess) return failure_;
  std::array<char, kMaxText> text;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  failure_ = result;
  log_warning("%s: the connection with %s is lost: %s", pair_->adapter().info().name.c_str(),
              peer_.c_str(), text.data());
  return failure_;
}

void Connection::on_error(const ibv_wc& failed) {
  note_trouble(result_of(failed.status), explain(failed.status));
}

void Connection::note_trouble(Result result, std::string text) {
  if (trouble_ != Result::kSuccess) return;
  trouble_ = result;
  trouble_text_ = std::move(text);
  trouble_since_ms_ = coarse_clock_ms();
}

void Connection::look_after_peer() {
  const std::uint64_t now = coarse_clock_ms();
  if (now < next_look_ms_) return;
  next_look_ms_ = now + kLookEveryMs;
  pair_->adapter().watch_planes();
  stream_.flush();
  if (stream_.state() == StreamState::kOpen) {
    std::string error;
    while (const auto message = stream_.receive(error)) {
      if (message->kind == MessageKind::kBye) on_bye(message->messages_received);
    }
    if (stream_.state() != StreamState::kOpen)
      note_trouble(Result::kRemoteError, error.empty() ? "it went away" : error);
  }
  if (trouble_ != Result::kSuccess && now - trouble_since_ms_ > kGraceMs)
    fail(trouble_, "%s", trouble_text_.c_str());
}

}  // namespace mrc::nccl
