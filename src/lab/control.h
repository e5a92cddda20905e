// Commands to a running lab over its control socket (SOCK_SEQPACKET).
//
// A request is one message: words separated by newlines, the verb first. The answer is one message:
// '+' or '-' and a text. A connection may ask again; what it began (a capture, a program in a host)
// ends when it is closed, however that comes about.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "os/descriptor.h"

namespace mrc::lab {

struct Reply {
  bool ok = false;
  std::string text;
};

// At least one word, which may be empty.
std::vector<std::string> parse_request(const std::string& text);

enum class ClientId : std::uint32_t {};

class ControlServer {
 public:
  using Handler = std::function<Reply(ClientId, const std::vector<std::string>& words)>;
  using Farewell = std::function<void(ClientId)>;

  // Listens at `path`, which must be free. Throws std::system_error.
  ControlServer(const std::string& path, Handler handler, Farewell farewell);

  // Readable when poll() has something to do.
  int descriptor() const { return epoll_.get(); }
  void poll();

 private:
  void accept_all();
  bool serve(ClientId client, int socket);

  Handler handler_;
  Farewell farewell_;
  os::Descriptor epoll_;
  os::Descriptor listener_;
  std::map<ClientId, os::Descriptor> clients_;
  std::uint32_t next_client_ = 0;
};

class ControlClient {
 public:
  // False when nobody answers there.
  bool connect(const std::string& path);
  // Not ok with a text of its own when the lab goes away meanwhile, or says nothing for half a
  // minute: one that has 2 % of a processor, beside others' work, needs more than 5 s.
  Reply ask(std::span<const std::string> words);
  Reply ask(const std::vector<std::string>& words) { return ask(std::span(words)); }
  // Called when an answer takes longer than two seconds.
  void when_slow(std::function<void()> tell) { slow_ = std::move(tell); }
  // Becomes readable when the lab goes away.
  int descriptor() const { return socket_.get(); }

 private:
  os::Descriptor socket_;
  std::function<void()> slow_;
};

}  // namespace mrc::lab
