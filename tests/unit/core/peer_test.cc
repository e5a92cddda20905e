// Which queue pairs to one peer share a congestion controller.
#include "core/peer.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/endpoint.h"

namespace mrc::core {
namespace {

constexpr Address kPeer{0, 9};

class PeerTest : public testing::Test {
 protected:
  // A queue pair to the peer that is ready to send.
  QpNumber connect(const CcProfile& cc, const QpHints& hints = {}) {
    const QpNumber number{next_++};
    EXPECT_TRUE(endpoint_->create_qp({.number = number}).ok());
    EXPECT_TRUE(endpoint_->init_qp(number, {.cc = cc, .hints = hints}).ok());
    EXPECT_TRUE(
        endpoint_->ready_to_receive(number, {.remote = kPeer, .remote_qp = QpNumber{77}}).ok());
    EXPECT_TRUE(endpoint_->ready_to_send(0, number, {}).ok());
    return number;
  }
  std::int64_t window(QpNumber number) { return endpoint_->query_qp(number).value().window_bytes; }
  static CcProfile nscc(std::uint32_t max_cwnd) { return {.nscc = {.max_cwnd = max_cwnd}}; }

  std::unique_ptr<Endpoint> endpoint_ =
      std::move(Endpoint::create({.address = {0, 1}, .max_qps = 8, .max_peers = 1})).value();
  std::uint32_t next_ = 10;
};

TEST_F(PeerTest, EachQueuePairRunsUnderTheProfileItNamed) {
  const QpNumber wide = connect(nscc(900'000));
  const QpNumber narrow = connect(nscc(90'000));
  const QpNumber none = connect({.algorithm = CcAlgorithm::kNone});
  EXPECT_LE(window(narrow), 90'000);
  EXPECT_GT(window(wide), 90'000);
  EXPECT_LE(window(wide), 900'000);
  EXPECT_GT(window(none), window(wide));
}

TEST_F(PeerTest, HintsAreItsOwnToo) {
  const QpNumber alone = connect(nscc(900'000));
  const QpNumber crowded = connect(nscc(900'000), {.remote_recv_peers = 64});
  EXPECT_LT(window(crowded), window(alone)) << "one of 64 that send there";
}

TEST_F(PeerTest, OneProfileIsOneController) {
  const QpNumber first = connect(nscc(900'000));
  const QpNumber second = connect(nscc(900'000));
  ASSERT_TRUE(endpoint_->post_send(0, first, {.id = 1, .length = 0}).ok());
  TxPacket out;
  ASSERT_TRUE(endpoint_->next_packet(0, PortMask::first(1), out));
  EXPECT_GT(endpoint_->query_qp(second).value().peer_bytes_in_flight, 0);
}

TEST_F(PeerTest, QueuePairsThatComeAndGoUnderNewProfilesGetThem) {
  const QpNumber stays = connect(nscc(900'000));
  const std::int64_t before = window(stays);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const QpNumber number = connect(nscc(100'000 - 500 * i));
    EXPECT_LE(window(number), 100'000 - 500 * i);
    ASSERT_TRUE(endpoint_->destroy_qp(number).ok());
  }
  EXPECT_EQ(window(stays), before);
}

}  // namespace
}  // namespace mrc::core
