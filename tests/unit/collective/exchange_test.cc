// The connection between processes, and what a peer may do to it. TCP on loopback.
#include "collective/exchange.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "collective/failure.h"

namespace mrc::collective {
namespace {

constexpr double kPatienceS = 30;

class ExchangeTest : public testing::Test {
 protected:
  // Bytes from a peer that need not be messages.
  void peer_says(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t n =
          ::send(client_.descriptor(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) return;  // the other side has had enough
      if (n > 0) sent += static_cast<std::size_t>(n);
    }
  }

  void expect_failure(const std::string& part, FailureKind kind = FailureKind::kFailed,
                      double timeout_s = kPatienceS) {
    try {
      server_.receive(timeout_s);
      ADD_FAILURE() << "a message, instead of: " << part;
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find(part), std::string::npos) << failure.what();
      EXPECT_EQ(failure.kind(), kind);
    }
  }

  Listener listener_{0};
  Exchange client_ = Exchange::connect("localhost", listener_.port(), kPatienceS);
  Exchange server_ = listener_.accept(kPatienceS);
};

TEST_F(ExchangeTest, MessagesGoBothWaysInOrder) {
  client_.send({{"number", 1}});
  client_.send({{"number", 2}});
  EXPECT_EQ(server_.receive(kPatienceS).at("number"), 1);
  EXPECT_TRUE(server_.readable());
  EXPECT_EQ(server_.receive(kPatienceS).at("number"), 2);
  EXPECT_FALSE(server_.readable());
  server_.send({{"text", "two\nlines"}});
  EXPECT_EQ(client_.receive(kPatienceS).at("text"), "two\nlines");
}

TEST_F(ExchangeTest, AMessageInPiecesIsOneMessage) {
  peer_says("{\"number\"");
  std::thread rest([this] { peer_says(":7}\n"); });
  EXPECT_EQ(server_.receive(kPatienceS).at("number"), 7);
  rest.join();
}

TEST_F(ExchangeTest, WhatIsNoObjectIsRefused) {
  peer_says("[1,2]\n");
  expect_failure("does not speak our protocol");
}

TEST_F(ExchangeTest, ALineWithoutEndIsRefused) {
  std::thread peer([this] { peer_says(std::string(std::size_t{2} << 20, 'x')); });
  expect_failure("does not speak our protocol");
  ::shutdown(server_.descriptor(), SHUT_RDWR);
  peer.join();
}

TEST_F(ExchangeTest, AnErrorOfThePeerIsToldWithoutControlCharacters) {
  client_.send({{"error", "no \x1b[31mmemory"}});
  expect_failure("says: no ?[31mmemory");
}

// 400 bytes of it, which would end in the middle of a letter.
TEST_F(ExchangeTest, AnErrorOfThePeerIsCutBetweenLetters) {
  std::string said = "x";
  for (int i = 0; i < 300; ++i)
    said += "\u00e9";
  client_.send({{"error", said}});
  try {
    server_.receive(kPatienceS);
    FAIL() << "no error";
  } catch (const Failure& failure) {
    EXPECT_TRUE(std::string_view(failure.what()).ends_with("says: " + said.substr(0, 399)));
  }
}

TEST_F(ExchangeTest, WhatIsNotUtf8IsSentAllTheSame) {
  server_.send({{"text", "file \xC3"}});
  EXPECT_EQ(client_.receive(kPatienceS).at("text"), "file \uFFFD");
}

TEST_F(ExchangeTest, SilenceIsATimeout) {
  expect_failure("no word from", FailureKind::kTimeout, 0.05);
}

TEST_F(ExchangeTest, HangingUpIsNoticed) {
  EXPECT_FALSE(server_.hung_up());
  ::shutdown(client_.descriptor(), SHUT_RDWR);
  expect_failure("hung up");
  EXPECT_TRUE(server_.hung_up());
}

TEST_F(ExchangeTest, AnInheritedSocketMustListen) {
  EXPECT_THROW(Listener::inherited(client_.descriptor()), Failure);
  const int copy = ::dup(listener_.descriptor());
  const Listener inherited = Listener::inherited(copy);
  EXPECT_EQ(inherited.port(), listener_.port());
}

}  // namespace
}  // namespace mrc::collective
