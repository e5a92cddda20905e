// The head of an HTTP request, as far as somebody with one page to give has to understand it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mrc::tool::exporter {

inline constexpr std::size_t kMaxHeadBytes = 8'192;

struct HttpRequest {
  int status = 200;  // 400: no request; 405: neither GET nor HEAD; 505: not HTTP 1
  std::string path;  // without what is asked behind a question mark
  std::string accept;
  bool head_only = false;
};

// Whether `bytes` holds a whole head: up to the empty line.
bool is_whole_head(std::string_view bytes);
HttpRequest parse_http_request(std::string_view head);

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};
// Ready to be sent; the connection ends behind it.
std::string http_text(const HttpAnswer& answer, bool head_only);

}  // namespace mrc::tool::exporter
