#include "connector.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "log.h"

namespace mrc::nccl {
namespace {

// An address that does not answer is left for the next one; silence may have other reasons than
// refusals, so it gets more time in all.
constexpr std::uint64_t kAddressMs = 3'000;
constexpr std::uint64_t kPauseMs = 50;
constexpr std::uint64_t kRefusedMs = 5'000;
constexpr std::uint64_t kSilentMs = 120'000;

}  // namespace

Connector::Connector(std::unique_ptr<QueuePair> pair, Handle handle)
    : pair_(std::move(pair)), handle_(std::move(handle)), started_ms_(coarse_clock_ms()) {}

std::string Connector::where() const {
  const std::size_t count = handle_.addresses.size();
  const Address& address = handle_.addresses[(next_address_ + count - 1) % count];
  return to_text(address) + " port " + std::to_string(handle_.port);
}

void Connector::open_next() {
  const Address& address = handle_.addresses[next_address_ % handle_.addresses.size()];
  ++next_address_;
  stage_since_ms_ = coarse_clock_ms();
  stage_ = Stage::kOpening;
  // A failure shows as a closed stream in the next step.
  static_cast<void>(stream_.open(socket_name(address, handle_.port)));
}

Result Connector::on_no_way(int reason) {
  const std::uint64_t waited = coarse_clock_ms() - started_ms_;
  stream_.close();
  stage_ = Stage::kIdle;
  stage_since_ms_ = coarse_clock_ms();
  if (waited < (reason == ECONNREFUSED ? kRefusedMs : kSilentMs)) return Result::kSuccess;
  log_warning("%s: nobody answers at %s: %s", pair_->adapter().info().name.c_str(), where().c_str(),
              std::strerror(reason));
  return Result::kRemoteError;
}

Result Connector::on_welcome(const Message& welcome, std::unique_ptr<SendComm>& made) {
  if (welcome.kind == MessageKind::kRefusal || welcome.kind == MessageKind::kBye) {
    // The same line as there, where we can tell.
    if (welcome.kind == MessageKind::kRefusal) static_cast<void>(pair_->compare(welcome));
    log_warning("%s at %s refused the connection; its log says why", welcome.name.c_str(),
                where().c_str());
    return Result::kRemoteError;
  }
  if (welcome.kind != MessageKind::kWelcome || welcome.cookie != handle_.cookie) {
    log_warning("%s answered, but not to us", where().c_str());
    return Result::kRemoteError;
  }
  const int error = pair_->connect(welcome);
  if (error != 0) {
    log_warning("%s: no queue pair with %s: %s", pair_->adapter().info().name.c_str(),
                peer_text(welcome).c_str(), std::strerror(error));
    return Result::kSystemError;
  }
  Message ready;
  ready.kind = MessageKind::kReady;
  ready.cookie = handle_.cookie;
  stream_.send(ready);
  log_connected(*pair_, welcome, "sends to");
  made = std::make_unique<SendComm>(ConnectionParts{
      .pair = std::move(pair_), .stream = std::move(stream_), .peer = peer_text(welcome)});
  return Result::kSuccess;
}

Result Connector::advance(std::unique_ptr<SendComm>& made) {
  const std::uint64_t now = coarse_clock_ms();
  if (stage_ == Stage::kIdle && (next_address_ == 0 || now - stage_since_ms_ >= kPauseMs))
    open_next();
  if (stage_ == Stage::kOpening) {
    switch (stream_.advance()) {
      case StreamState::kClosed:
        return on_no_way(errno);
      case StreamState::kOpening:
        return now - stage_since_ms_ > kAddressMs ? on_no_way(ETIMEDOUT) : Result::kSuccess;
      case StreamState::kOpen:
        break;
    }
    Message hello = pair_->introduction();
    hello.kind = MessageKind::kHello;
    hello.cookie = handle_.cookie;
    stream_.send(hello);
    stage_ = Stage::kWaiting;
  }
  if (stage_ != Stage::kWaiting) return Result::kSuccess;
  // The peer answers when its NCCL gets to it; that may take its time.
  stream_.flush();
  std::string error;
  const std::optional<Message> answer = stream_.receive(error);
  if (answer) return on_welcome(*answer, made);
  if (stream_.state() == StreamState::kOpen) return Result::kSuccess;
  log_warning("%s ended the set-up of a connection: %s", where().c_str(), error.c_str());
  return Result::kRemoteError;
}

}  // namespace mrc::nccl
