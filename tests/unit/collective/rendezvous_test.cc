// Ranks as threads that meet over TCP on loopback.
#include "collective/rendezvous.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
            .listener = rank == 0 ? ::dup(listener_.descriptor()) : -1,
            .job_key = job_key_};
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
  std::string job_key_;
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

// --- Callers that are not ranks of this job

// A stranger's connection that says `line`; empty: it says nothing.
Exchange stray(std::uint16_t port, const std::string& line) {
  Exchange made = Exchange::connect("localhost", port, kPatienceS);
  EXPECT_GE(::write(made.descriptor(), line.data(), line.size()), 0);
  return made;
}

TEST_F(RendezvousTest, StraysEndNobody) {
  const std::string too_long = "{\"mrc_collective\": \"" + std::string(1 << 16, 'x');
  std::vector<Exchange> strays;
  for (const std::string& line :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("[]\n"), std::string("{}\n"), too_long,
        std::string("{\"error\": \"no\"}\n"), std::string("{\"mrc_collective\": 9}\n"),
        std::string("{\"mrc_collective\": 1, \"rank\": 1, \"ranks\": 99}\n"), std::string(),
        std::string("{\"mrc_colle")}) {
    strays.push_back(stray(listener_.port(), line));
  }
  { const Exchange gone = stray(listener_.port(), ""); }
  const auto ends = as_ranks([](unsigned rank, Rendezvous& rendezvous) {
    EXPECT_EQ(rendezvous.all_gather({{"rank", rank}}).size(), kRanks);
    rendezvous.finish();
  });
  EXPECT_EQ(ends, std::vector<std::string>(kRanks));
}

TEST_F(RendezvousTest, SilentCallersByTheHundredKeepNobodyWaiting) {
  std::vector<Exchange> strays;
  for (unsigned i = 0; i < 200; ++i)
    strays.push_back(stray(listener_.port(), ""));
  const auto ends =
      as_ranks([](unsigned /*rank*/, Rendezvous& rendezvous) { rendezvous.finish(); });
  EXPECT_EQ(ends, std::vector<std::string>(kRanks));
}

TEST_F(RendezvousTest, WhoDoesNotKnowTheKeyIsTurnedAwayAndTold) {
  job_key_ = "sesame";
  std::vector<Exchange> strays;
  for (const char* key : {"", ", \"key\": \"wrong\"", ", \"key\": 7"}) {
    strays.push_back(stray(listener_.port(), "{\"mrc_collective\": 1, \"rank\": 1, \"ranks\": 3" +
                                                 std::string(key) + "}\n"));
  }
  const auto ends = as_ranks([](unsigned rank, Rendezvous& rendezvous) {
    EXPECT_EQ(rendezvous.all_gather({{"rank", rank}}).size(), kRanks);
    rendezvous.finish();
  });
  EXPECT_EQ(ends, std::vector<std::string>(kRanks));
  for (Exchange& turned_away : strays) {
    try {
      turned_away.receive(kPatienceS);
      ADD_FAILURE() << "let in";
    } catch (const Failure& failure) {
      EXPECT_NE(std::string(failure.what()).find("MRC_JOB_KEY"), std::string::npos);
    }
  }
}

// Two processes that were given the same rank: who knows the key shows that the job is wrong.
TEST_F(RendezvousTest, TheSameRankTwiceDoesNotBelongHere) {
  job_key_ = "sesame";
  std::string root_end;
  std::thread root([&] {
    try {
      const Rendezvous rendezvous(place_of(0), kPatienceS);
    } catch (const Failure& failure) {
      root_end = failure.what();
    }
  });
  const nlohmann::json hello = {
      {"mrc_collective", 1}, {"rank", 1}, {"ranks", kRanks}, {"key", job_key_}};
  Exchange first = Exchange::connect("localhost", listener_.port(), kPatienceS);
  first.send(hello);
  Exchange second = Exchange::connect("localhost", listener_.port(), kPatienceS);
  second.send(hello);
  root.join();
  EXPECT_NE(root_end.find("rank 1 is there already"), std::string::npos) << root_end;
}

TEST_F(RendezvousTest, WhoWasTurnedAwayIsNamedWhenRanksAreMissing) {
  const Exchange other =
      stray(listener_.port(), "{\"mrc_collective\": 1, \"rank\": 1, \"ranks\": 2}\n");
  try {
    const Rendezvous rendezvous(place_of(0), 0.5);
    ADD_FAILURE() << "met nobody";
  } catch (const Failure& failure) {
    const std::string said = failure.what();
    EXPECT_NE(said.find("rank 1 is missing; 1 turned away"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 0 was started for 3 ranks"), std::string::npos) << said;
  }
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
