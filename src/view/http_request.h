// What browsers ask the server of `mrc view`, as values. Pure: bytes in, a request or a refusal
// out; who may come in is decided here too, so that it can be fuzzed.
//
// HTTP/1.1 of the smallest kind: GET and POST, a body of known length, one request a connection.
// Everything else is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mrc::view {

inline constexpr std::size_t kMaxHeadBytes = 8'192;
inline constexpr std::size_t kMaxBodyBytes = 4'096;
inline constexpr unsigned kMaxHeaders = 64;

struct HttpRequest {
  enum class Method : std::uint8_t { kGet, kPost };
  Method method = Method::kGet;
  std::string path;  // begins with a slash; letters, digits and "/-_." only
  std::string host;
  std::string origin;  // empty: not said
  std::string content_type;
  std::string fetch_site;  // Sec-Fetch-Site
  std::string body;
};

struct HttpParse {
  enum class State : std::uint8_t { kIncomplete, kDone, kRefused };
  State state = State::kIncomplete;
  unsigned status = 400;  // of a refusal
  HttpRequest request;
};
// The bytes a client has sent so far.
HttpParse parse_http_request(std::string_view bytes);

// Whom the server lets in.
struct Gate {
  std::string token;
  std::uint16_t port = 0;

  // Of a request that may come in: what it wants, without the token ("" is the page). Otherwise a
  // status and an empty text.
  struct Verdict {
    unsigned status = 200;
    std::string_view wanted;
  };
  Verdict judge(const HttpRequest& request) const;
};

// What a page asks to be done: {"verb":"cut","target":"t0:0/t1:2/plane:1","value":""}.
struct Deed {
  std::string verb;
  std::string target;
  std::string value;
};
// False for anything else. Names and values are at most 100 characters of those that names of
// links, rates and times are made of.
bool parse_deed(std::string_view body, Deed& deed);
// The words for the lab's control socket: verb and argument. Empty when there is no such verb.
struct LabOrder {
  std::string verb;  // "fault" or "heal"
  std::string argument;
};
LabOrder lab_order(const Deed& deed);

}  // namespace mrc::view
