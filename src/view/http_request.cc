#include "view/http_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace mrc::view {
namespace {

using State = HttpParse::State;

constexpr std::string_view kWhite = " \t";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z'); }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kWhite);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kWhite) - from + 1);
}

bool is_plain(std::string_view text, std::string_view also) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return is_alnum(c) || also.find(c) != std::string_view::npos; });
}

HttpParse refused(unsigned status) { return {.state = State::kRefused, .status = status}; }

// "GET /path HTTP/1.1". 0, or the status of a refusal.
unsigned read_first_line(std::string_view line, HttpRequest& request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return 400;
  const std::string_view method = line.substr(0, first);
  const std::string_view path = line.substr(first + 1, last - first - 1);
  if (line.substr(last + 1) != "HTTP/1.1") return 505;
  if (method == "POST") {
    request.method = HttpRequest::Method::kPost;
  } else if (method != "GET") {
    return 405;
  }
  if (path.empty() || path[0] != '/' || !is_plain(path, "/-_.")) return 404;
  if (path.find("..") != std::string_view::npos) return 404;
  request.path = path;
  return 0;
}

struct Seen {
  std::size_t body_bytes = 0;
  bool host = false;
  bool length = false;
  bool origin = false;
};

// 0, or the status of a refusal. What matters may be said once only.
unsigned read_header(std::string_view line, HttpRequest& request, Seen& seen) {
  const std::size_t colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return 400;
  const std::string_view name = line.substr(0, colon);
  if (!is_plain(name, "-_")) return 400;
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (same_word(name, "transfer-encoding")) return 501;
  if (same_word(name, "host")) {
    if (std::exchange(seen.host, true)) return 400;
    request.host = value;
  } else if (same_word(name, "origin")) {
    if (std::exchange(seen.origin, true)) return 400;
    request.origin = value.empty() ? std::string_view("null") : value;
  } else if (same_word(name, "content-type")) {
    request.content_type = value;
  } else if (same_word(name, "sec-fetch-site")) {
    request.fetch_site = value;
  } else if (same_word(name, "content-length")) {
    if (std::exchange(seen.length, true) || value.empty()) return 400;
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, seen.body_bytes);
    if (rest != end || error == std::errc::invalid_argument) return 400;
    if (error != std::errc() || seen.body_bytes > kMaxBodyBytes) return 413;
  }
  return 0;
}

bool is_number(std::string_view text, unsigned most) {
  unsigned value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return !text.empty() && error == std::errc() && rest == end && value <= most;
}

// "127.0.0.1", "[::1]" or "localhost": no name of the network, which could be made to lead here.
bool is_numeric_host(std::string_view host) {
  if (host == "localhost") return true;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return host.find_first_not_of("0123456789abcdefABCDEF:.", 1) == host.size() - 1;
  for (unsigned part = 0; part < 4; ++part) {
    const std::size_t dot = host.find('.');
    if ((dot == std::string_view::npos) != (part == 3)) return false;
    if (!is_number(host.substr(0, dot), 255)) return false;
    host.remove_prefix(dot == std::string_view::npos ? host.size() : dot + 1);
  }
  return true;
}

// In a time that does not depend on where they differ.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// A string of JSON without escapes, after white space; false: there is none.
bool take_text(std::string_view& rest, std::string& text) {
  rest = trimmed(rest);
  if (rest.empty() || rest[0] != '"') return false;
  const std::size_t end = rest.find('"', 1);
  if (end == std::string_view::npos || end > 101) return false;
  const std::string_view inside = rest.substr(1, end - 1);
  if (!is_plain(inside, ":/>*.%-")) return false;
  text = inside;
  rest = trimmed(rest.substr(end + 1));
  return true;
}

bool take(std::string_view& rest, char wanted) {
  rest = trimmed(rest);
  if (rest.empty() || rest[0] != wanted) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

HttpParse parse_http_request(std::string_view bytes) {
  const std::size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == std::string_view::npos ? bytes.size() > kMaxHeadBytes : head_end > kMaxHeadBytes)
    return refused(431);
  if (head_end == std::string_view::npos) return {};
  std::string_view head = bytes.substr(0, head_end);
  const bool text = std::all_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte < 0x7F) || c == '\t' || c == '\r' || c == '\n';
  });
  if (!text) return refused(400);
  HttpParse parse;
  Seen seen;
  for (unsigned number = 0; !head.empty(); ++number) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(head.size(), end + 2));
    if (line.find_first_of("\r\n") != std::string_view::npos || number > kMaxHeaders)
      return refused(400);
    const unsigned status =
        number == 0 ? read_first_line(line, parse.request) : read_header(line, parse.request, seen);
    if (status != 0) return refused(status);
  }
  if (!seen.host) return refused(400);
  const std::string_view body = bytes.substr(head_end + 4);
  if (body.size() > seen.body_bytes) return refused(400);
  if (body.size() < seen.body_bytes) return {};
  parse.request.body = body;
  parse.state = State::kDone;
  return parse;
}

Gate::Verdict Gate::judge(const HttpRequest& request) const {
  const std::string_view host = request.host;
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.substr(colon + 1) != std::to_string(port) ||
      !is_numeric_host(host.substr(0, colon)))
    return {.status = 403};
  if (!request.origin.empty() && request.origin != "http://" + request.host) return {.status = 403};
  const std::string_view site = request.fetch_site;
  const bool posts = request.method == HttpRequest::Method::kPost;
  if (posts && !site.empty() && site != "same-origin") return {.status = 403};
  if (posts && request.content_type != "application/json") return {.status = 415};
  std::string_view path = request.path;
  path.remove_prefix(1);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos || !same_secret(path.substr(0, slash), token))
    return {.status = 403};
  return {.wanted = path.substr(slash + 1)};
}

bool parse_deed(std::string_view body, Deed& deed) {
  std::array<std::pair<std::string_view, std::string*>, 3> members{
      {{"verb", &deed.verb}, {"target", &deed.target}, {"value", &deed.value}}};
  if (!take(body, '{')) return false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::string name;
    if (i > 0 && !take(body, ',')) return false;
    if (!take_text(body, name) || name != members[i].first || !take(body, ':') ||
        !take_text(body, *members[i].second))
      return false;
  }
  return take(body, '}') && trimmed(body).empty();
}

LabOrder lab_order(const Deed& deed) {
  if (deed.target.empty()) return {};
  if (deed.verb == "heal") return {.verb = "heal", .argument = deed.target};
  const auto fault = [&](const std::string& what) {
    return LabOrder{.verb = "fault", .argument = deed.target + " " + what + " @0"};
  };
  if (deed.verb == "cut") return fault("down");
  if (deed.value.empty()) return {};
  if (deed.verb == "degrade") return fault("rate " + deed.value);
  if (deed.verb == "loss") return fault("loss " + deed.value);
  if (deed.verb == "flap") return fault("flap " + deed.value);
  return {};
}

}  // namespace mrc::view
