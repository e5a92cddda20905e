#include "commands/exporter/http_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace mrc::tool::exporter {
namespace {

// Takes the text up to `end` and what ends it off the front.
std::string_view take(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
  return part;
}

bool is_name(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, [](unsigned char a, char b) {
    return std::tolower(a) == static_cast<unsigned char>(b);
  });
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Bad Request";
  }
}

}  // namespace

bool is_whole_head(std::string_view bytes) {
  return bytes.find("\r\n\r\n") != std::string_view::npos;
}

HttpRequest parse_http_request(std::string_view head) {
  HttpRequest request;
  std::string_view first = take(head, "\r\n");
  const std::string_view method = take(first, " ");
  std::string_view target = take(first, " ");
  const bool printable = std::ranges::all_of(target, [](char c) { return c > ' ' && c <= '~'; });
  if (method.empty() || !target.starts_with('/') || !printable || !first.starts_with("HTTP/")) {
    request.status = 400;
    return request;
  }
  request.head_only = method == "HEAD";
  if (!request.head_only && method != "GET") request.status = 405;
  if (!first.starts_with("HTTP/1.")) request.status = 505;
  request.path = take(target, "?");
  while (!head.empty()) {
    std::string_view value = take(head, "\r\n");
    const std::string_view name = take(value, ":");
    if (is_name(name, "accept")) request.accept = value;
  }
  return request;
}

std::string http_text(const HttpAnswer& answer, bool head_only) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
      answer.status, reason_of(answer.status), answer.type, answer.body.size(),
      head_only ? "" : answer.body);
}

}  // namespace mrc::tool::exporter
