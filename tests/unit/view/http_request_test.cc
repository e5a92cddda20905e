#include "view/http_request.h"

#include <gtest/gtest.h>

namespace mrc::view {
namespace {

using State = HttpParse::State;

const Gate kGate{.token = "0123456789abcdef", .port = 80};

HttpParse get(const std::string& path, const std::string& headers = "Host: 127.0.0.1:80\r\n") {
  return parse_http_request("GET " + path + " HTTP/1.1\r\n" + headers + "\r\n");
}

unsigned status(const std::string& path, const std::string& headers) {
  const HttpParse parse = get(path, headers);
  return parse.state == State::kDone ? kGate.judge(parse.request).status : parse.status;
}

TEST(HttpRequest, WaitsUntilHeadAndBodyAreThere) {
  const std::string whole = "POST /x HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3\r\n\r\nabc";
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_http_request(whole.substr(0, size)).state, State::kIncomplete) << size;
  const HttpParse parse = parse_http_request(whole);
  ASSERT_EQ(parse.state, State::kDone);
  EXPECT_EQ(parse.request.body, "abc");
  EXPECT_EQ(parse.request.path, "/x");
  EXPECT_EQ(parse_http_request(whole + "d").state, State::kRefused);
}

TEST(HttpRequest, RefusesWhatIsOdd) {
  EXPECT_EQ(get("/../etc/passwd").status, 404U);
  EXPECT_EQ(get("/%2e%2e/").status, 404U);
  EXPECT_EQ(get("/a?b").status, 404U);
  EXPECT_EQ(get("/", "Host: a:1\r\nHost: b:1\r\n").status, 400U);
  EXPECT_EQ(get("/", "Host: a:1\r\nTransfer-Encoding: chunked\r\n").status, 501U);
  EXPECT_EQ(get("/", "Host: a:1\r\nContent-Length: 5000\r\n").status, 413U);
  EXPECT_EQ(get("/", "Host: a:1\r\nContent-Length: -1\r\n").status, 400U);
  EXPECT_EQ(get("/", "").status, 400U);
  EXPECT_EQ(parse_http_request("DELETE / HTTP/1.1\r\nHost: a:1\r\n\r\n").status, 405U);
  EXPECT_EQ(parse_http_request("GET / HTTP/1.0\r\nHost: a:1\r\n\r\n").status, 505U);
  EXPECT_EQ(parse_http_request(std::string(kMaxHeadBytes + 1, 'a')).status, 431U);
  EXPECT_EQ(parse_http_request(std::string("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 23)).status, 400U);
}

TEST(HttpRequest, LetsInWhoHasTheTokenAndCameByThisMachinesAddress) {
  const std::string page = "/0123456789abcdef/";
  EXPECT_EQ(status(page, "Host: 127.0.0.1:80\r\n"), 200U);
  EXPECT_EQ(status(page, "Host: localhost:80\r\n"), 200U);
  EXPECT_EQ(status(page, "Host: [::1]:80\r\n"), 200U);
  EXPECT_EQ(status(page, "Host: 127.0.0.1:81\r\n"), 403U);
  EXPECT_EQ(status(page, "Host: evil.example:80\r\n"), 403U);
  EXPECT_EQ(status(page, "Host: 127.0.0.1.evil.example:80\r\n"), 403U);
  EXPECT_EQ(status("/0123456789abcdee/", "Host: 127.0.0.1:80\r\n"), 403U);
  EXPECT_EQ(status("/0123456789abcdef", "Host: 127.0.0.1:80\r\n"), 403U);
  EXPECT_EQ(status("/", "Host: 127.0.0.1:80\r\n"), 403U);
}

TEST(HttpRequest, RefusesOtherOrigins) {
  const std::string page = "/0123456789abcdef/";
  const std::string host = "Host: 127.0.0.1:80\r\n";
  EXPECT_EQ(status(page, host + "Origin: http://127.0.0.1:80\r\n"), 200U);
  EXPECT_EQ(status(page, host + "Origin: http://evil.example\r\n"), 403U);
  EXPECT_EQ(status(page, host + "Origin: null\r\n"), 403U);
}

TEST(HttpRequest, ReadsDeedsAndNothingElse) {
  Deed deed;
  EXPECT_TRUE(parse_deed(R"({"verb": "cut", "target":"t0:0/t1:2/plane:1","value":""})", deed));
  EXPECT_EQ(lab_order(deed).verb, "fault");
  EXPECT_EQ(lab_order(deed).argument, "t0:0/t1:2/plane:1 down @0");
  EXPECT_FALSE(parse_deed(R"({"verb":"cut","target":"a\nb","value":""})", deed));
  EXPECT_FALSE(parse_deed(R"({"verb":"cut","target":"a b","value":""})", deed));
  EXPECT_FALSE(parse_deed(R"({"verb":"cut","target":"a"})", deed));
  EXPECT_FALSE(parse_deed("", deed));
  EXPECT_EQ(lab_order({.verb = "heal", .target = "all", .value = ""}).argument, "all");
  EXPECT_EQ(lab_order({.verb = "loss", .target = "x", .value = "1%"}).argument, "x loss 1% @0");
  EXPECT_EQ(lab_order({.verb = "loss", .target = "x", .value = ""}).verb, "");
  EXPECT_EQ(lab_order({.verb = "down", .target = "x", .value = ""}).verb, "");
}

}  // namespace
}  // namespace mrc::view
