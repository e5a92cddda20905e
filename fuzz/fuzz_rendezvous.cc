// Strangers at the place where the ranks of a job meet: one calls, says what it likes, and hangs up
// at once (the first byte is even) or when it is over. The rank that belongs there gets in all the
// same, and rank 0 goes on.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "collective/failure.h"
#include "collective/rendezvous.h"
#include "fuzz/text_support.h"

using mrc::fuzz::require;
namespace collective = mrc::collective;

namespace {

constexpr const char* kJobKey = "0123456789abcdef0123456789abcdef";
constexpr double kPatienceS = 10;

class Meeting {
 public:
  Meeting() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    place_.sin_family = AF_INET;
    place_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof place_;
    require(::bind(listener_, address(), length) == 0 && ::listen(listener_, 8) == 0);
    require(::getsockname(listener_, address(), &length) == 0);
  }

  // Somebody who says this and hangs up.
  void call(std::string_view words) {
    const int caller = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    require(::connect(caller, address(), sizeof place_) == 0);
    const linger at_once{1, 0};  // leaves no closed connection behind, of which there may be 28,000
    require(::setsockopt(caller, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
    if (!words.empty()) require(::send(caller, words.data(), words.size(), MSG_NOSIGNAL) >= 0);
    callers_[count_++] = caller;
  }
  void hang_up() {
    for (; count_ > 0; --count_)
      ::close(callers_[count_ - 1]);
  }
  int listener() const { return listener_; }

 private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&place_); }

  int listener_;
  sockaddr_in place_{};
  int callers_[2] = {};
  unsigned count_ = 0;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string words = mrc::fuzz::text_of(data, std::min<std::size_t>(size, 8'192));
  if (words.find(kJobKey) != std::string::npos) return 0;  // not a stranger
  Meeting meeting;
  meeting.call(words);
  if (size > 0 && data[0] % 2 == 0) meeting.hang_up();
  meeting.call(
      nlohmann::json{{"mrc_collective", 1}, {"rank", 1}, {"ranks", 2}, {"key", kJobKey}}.dump() +
      "\n");
  collective::Placement place;
  place.ranks = 2;
  place.listener = meeting.listener();
  place.job_key = kJobKey;
  const collective::Rendezvous rendezvous(place, kPatienceS);
  require(rendezvous.descriptors().size() == 1);
  meeting.hang_up();
  return 0;
}
