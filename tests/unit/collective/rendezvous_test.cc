// Ranks as threads that meet over TCP on loopback.
#include "collective/rendezvous.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "collective/failure.h"

namespace mrc::collective {
namespace {

constexpr double kPatienceS = 30;
constexpr unsigned kRanks = 3;

class RendezvousTest : public testing::Test {
 protected:
  Placement place_of(unsigned rank) const {
    return {.rank = rank,
            .ranks = kRanks,
            .root_host = "localhost",
            .root_port = listener_.port(),
            .listener = rank == 0 ? ::dup(listener_.descriptor()) : -1};
  }

  // Runs `body` as each rank; what a rank died of, by rank, empty for a good end.
  std::vector<std::string> as_ranks(const std::function<void(unsigned, Rendezvous&)>& body) const {
    std::vector<std::string> ends(kRanks);
    std::vector<std::thread> ranks;
    for (unsigned rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          Rendezvous rendezvous(place_of(rank), kPatienceS);
          body(rank, rendezvous);
        } catch (const Failure& failure) {
          ends[rank] = failure.what();
        }
      });
    }
    for (std::thread& rank : ranks)
      rank.join();
    return ends;
  }

  Listener listener_{0};
};

TEST_F(RendezvousTest, EveryRankHearsWhatEveryRankSays) {
  std::vector<std::vector<nlohmann::json>> heard(kRanks);
  const auto ends = as_ranks([&](unsigned rank, Rendezvous& rendezvous) {
    heard[rank] = rendezvous.all_gather({{"rank", rank}});
    rendezvous.check();
    rendezvous.finish();
  });
  EXPECT_EQ(ends, std::vector<std::string>(kRanks));
  for (const auto& all : heard) {
    ASSERT_EQ(all.size(), kRanks);
    for (unsigned rank = 0; rank < kRanks; ++rank)
      EXPECT_EQ(all[rank].at("rank"), rank);
  }
}

TEST_F(RendezvousTest, AFailureReachesTheRoot) {
  const auto ends = as_ranks([](unsigned rank, Rendezvous& rendezvous) {
    if (rank == 2) {
      rendezvous.tell_failure("out of luck");
      return;
    }
    rendezvous.finish();
  });
  EXPECT_NE(ends[0].find("rank 2"), std::string::npos) << ends[0];
  EXPECT_NE(ends[0].find("out of luck"), std::string::npos) << ends[0];
  EXPECT_FALSE(ends[1].empty());
}

TEST_F(RendezvousTest, ARankThatDiesWithoutAWordIsNamed) {
  const auto ends = as_ranks([](unsigned rank, Rendezvous& rendezvous) {
    if (rank != 1) rendezvous.finish();
  });
  EXPECT_NE(ends[0].find("rank 1"), std::string::npos) << ends[0];
}

TEST_F(RendezvousTest, TheSameRankTwiceDoesNotBelongHere) {
  std::string root_end;
  std::thread root([&] {
    try {
      const Rendezvous rendezvous(place_of(0), kPatienceS);
    } catch (const Failure& failure) {
      root_end = failure.what();
    }
  });
  const auto hello = [](unsigned rank) {
    return nlohmann::json{{"mrc_collective", 1}, {"rank", rank}, {"ranks", kRanks}};
  };
  Exchange first = Exchange::connect("localhost", listener_.port(), kPatienceS);
  first.send(hello(1));
  Exchange second = Exchange::connect("localhost", listener_.port(), kPatienceS);
  second.send(hello(1));
  root.join();
  EXPECT_NE(root_end.find("rank 1 is there already"), std::string::npos) << root_end;
}

TEST_F(RendezvousTest, MissingRanksAreNamed) {
  try {
    const Rendezvous rendezvous(place_of(0), 0.05);
    ADD_FAILURE() << "met nobody";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.kind(), FailureKind::kTimeout);
    EXPECT_NE(std::string(failure.what()).find("rank 1 is missing"), std::string::npos);
  }
}

TEST(RendezvousAlone, OneRankMeetsItself) {
  Rendezvous rendezvous(Placement{}, 1);
  const auto all = rendezvous.all_gather({{"own", true}});
  ASSERT_EQ(all.size(), 1U);
  rendezvous.check();
  rendezvous.finish();
}

}  // namespace
}  // namespace mrc::collective
