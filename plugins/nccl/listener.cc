#include "listener.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "log.h"
#include "random.h"

namespace mrc::nccl {
namespace {

constexpr std::size_t kMaxGuests = 64;
constexpr std::uint64_t kHelloMs = 10'000;

}  // namespace

Listener::Listener(std::shared_ptr<Context> context, std::shared_ptr<Adapter> adapter,
                   Socket socket)
    : context_(std::move(context)),
      adapter_(std::move(adapter)),
      socket_(std::move(socket)),
      cookie_(random_number()) {}

std::unique_ptr<Listener> Listener::create(std::shared_ptr<Context> context,
                                           std::shared_ptr<Adapter> adapter,
                                           std::span<std::byte, kHandleBytes> handle) {
  const DeviceInfo& info = adapter->info();
  Socket socket = listen_on(info.gid);
  const std::uint16_t port = socket.valid() ? bound_port(socket.get()) : 0;
  if (port == 0) {
    log_warning("%s: cannot listen at %s: %s", info.name.c_str(), to_text(info.gid).c_str(),
                std::strerror(errno));
    return nullptr;
  }
  std::unique_ptr<Listener> made(
      new Listener(std::move(context), std::move(adapter), std::move(socket)));
  encode({.cookie = made->cookie_,
          .port = port,
          .addresses = reachable_addresses(made->adapter_->info().gid, Handle::kMaxAddresses)},
         handle);
  return made;
}

void Listener::let_in() {
  while (guests_.size() < kMaxGuests) {
    Socket socket = accept_from(socket_);
    if (!socket.valid()) return;
    guests_.push_back({.stream = Stream(std::move(socket)), .since_ms = coarse_clock_ms()});
  }
}

bool Listener::on_hello(Guest& guest, const Message& hello, Result& result) {
  if (hello.kind != MessageKind::kHello || hello.cookie != cookie_) {
    if (!stranger_told_) log_warning("somebody who does not know the secret tried to connect");
    stranger_told_ = true;
    return false;
  }
  QueuePairOptions options = ReceiveComm::options();
  options.traffic_class = context_->traffic_class();
  options.hint = context_->hint();
  guest.hello = hello;
  guest.pair = QueuePair::create(adapter_, options);
  const int error = guest.pair == nullptr ? ENOMEM : guest.pair->connect(hello);
  Message answer = guest.pair == nullptr ? Message{} : guest.pair->introduction();
  answer.kind = error == 0 ? MessageKind::kWelcome : MessageKind::kRefusal;
  answer.cookie = cookie_;
  guest.stream.send(answer);
  if (error == 0) return true;
  log_warning("%s: no queue pair with %s: %s", adapter_->info().name.c_str(),
              peer_text(hello).c_str(), std::strerror(error));
  result = Result::kSystemError;
  return false;
}

bool Listener::advance(Guest& guest, std::unique_ptr<ReceiveComm>& made, Result& result) {
  guest.stream.flush();
  std::string error;
  const std::optional<Message> message = guest.stream.receive(error);
  if (!message) {
    const bool open = guest.stream.state() == StreamState::kOpen;
    if (guest.pair != nullptr) {
      if (!open) {
        log_warning("%s: %s ended the set-up of a connection: %s", adapter_->info().name.c_str(),
                    peer_text(guest.hello).c_str(), error.c_str());
        result = Result::kRemoteError;
      }
      return open;
    }
    return open && coarse_clock_ms() - guest.since_ms < kHelloMs;
  }
  if (guest.pair == nullptr) return on_hello(guest, *message, result);
  if (message->kind != MessageKind::kReady) return false;
  log_connected(*guest.pair, guest.hello, "receives from");
  made = std::make_unique<ReceiveComm>(ConnectionParts{.pair = std::move(guest.pair),
                                                       .stream = std::move(guest.stream),
                                                       .peer = peer_text(guest.hello)});
  return false;
}

Result Listener::accept(std::unique_ptr<ReceiveComm>& made) {
  let_in();
  Result result = Result::kSuccess;
  for (auto guest = guests_.begin(); guest != guests_.end() && made == nullptr;) {
    guest = advance(*guest, made, result) ? std::next(guest) : guests_.erase(guest);
  }
  return made != nullptr ? Result::kSuccess : result;
}

}  // namespace mrc::nccl
