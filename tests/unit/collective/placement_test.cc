#include "collective/placement.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "collective/failure.h"

namespace mrc::collective {
namespace {

constexpr std::array<const char*, 11> kVariables = {
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK",   "PMI_SIZE",
    "SLURM_PROCID",         "SLURM_NTASKS",         "RANK",       "WORLD_SIZE",
    "MASTER_ADDR",          "MASTER_PORT",          "MRC_JOB_KEY"};

class PlacementTest : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name : kVariables)
      unsetenv(name);
  }
  static void launched_by(const char* rank_name, const char* rank, const char* ranks_name,
                          const char* ranks) {
    setenv(rank_name, rank, 1);
    setenv(ranks_name, ranks, 1);
  }
  static void expect_refused(const PlacementRequest& request, const std::string& part) {
    try {
      resolve(request);
      ADD_FAILURE() << "taken, though: " << part;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.kind(), FailureKind::kUsage);
      EXPECT_NE(std::string(failure.what()).find(part), std::string::npos) << failure.what();
    }
  }
};

PlacementRequest flags(unsigned rank, unsigned ranks, const std::string& root) {
  PlacementRequest request;
  request.rank = rank;
  request.ranks = ranks;
  request.root = root;
  return request;
}

TEST_F(PlacementTest, FlagsAlone) {
  const Placement place = resolve(flags(1, 2, "node1:4000"));
  EXPECT_EQ(place.rank, 1U);
  EXPECT_EQ(place.ranks, 2U);
  EXPECT_EQ(place.root_host, "node1");
  EXPECT_EQ(place.root_port, 4'000);
  EXPECT_FALSE(place.is_root());
}

TEST_F(PlacementTest, RootInEveryForm) {
  EXPECT_EQ(resolve(flags(1, 2, "node1")).root_port, kDefaultRootPort);
  const Placement bracketed = resolve(flags(1, 2, "[fd00::1]:7"));
  EXPECT_EQ(bracketed.root_host, "fd00::1");
  EXPECT_EQ(bracketed.root_port, 7);
  const Placement bare = resolve(flags(1, 2, "fd00::1"));
  EXPECT_EQ(bare.root_host, "fd00::1");
  EXPECT_EQ(bare.root_port, kDefaultRootPort);
  expect_refused(flags(1, 2, ":7"), "HOST:PORT");
  expect_refused(flags(1, 2, "node1:70000"), "0 to 65535");
  expect_refused(flags(1, 2, "node1:x"), "--root");
}

TEST_F(PlacementTest, ListOfHosts) {
  std::array<char, 256> own = {};
  ASSERT_EQ(gethostname(own.data(), own.size() - 1), 0);
  PlacementRequest request;
  request.hosts = {"first", own.data(), "third"};
  const Placement place = resolve(request);
  EXPECT_EQ(place.rank, 1U);
  EXPECT_EQ(place.ranks, 3U);
  EXPECT_EQ(place.root_host, "first");
  request.hosts = {"first", "second"};
  expect_refused(request, "is not in --hosts");
  request.rank = 1;
  EXPECT_EQ(resolve(request).rank, 1U);
}

TEST_F(PlacementTest, EveryLauncher) {
  for (std::size_t i = 0; i < 8; i += 2) {
    clear();
    launched_by(kVariables[i], "3", kVariables[i + 1], "5");
    setenv("MASTER_ADDR", "node9", 1);
    setenv("MASTER_PORT", "99", 1);
    const Placement place = resolve({});
    EXPECT_EQ(place.rank, 3U) << kVariables[i];
    EXPECT_EQ(place.ranks, 5U) << kVariables[i];
    EXPECT_EQ(place.root_host, "node9");
    EXPECT_EQ(place.root_port, 99);
  }
}

TEST_F(PlacementTest, FlagsCountBeforeTheEnvironment) {
  launched_by("RANK", "3", "WORLD_SIZE", "5");
  setenv("MASTER_ADDR", "node9", 1);
  const Placement place = resolve(flags(1, 2, "node1"));
  EXPECT_EQ(place.rank, 1U);
  EXPECT_EQ(place.ranks, 2U);
  EXPECT_EQ(place.root_host, "node1");
}

TEST_F(PlacementTest, TheKeyOfTheJobComesFromTheEnvironment) {
  EXPECT_EQ(resolve(flags(1, 2, "node1")).job_key, "");
  setenv("MRC_JOB_KEY", "sesame", 1);
  EXPECT_EQ(resolve(flags(1, 2, "node1")).job_key, "sesame");
}

TEST_F(PlacementTest, HalfALauncherIsNone) {
  setenv("RANK", "3", 1);
  expect_refused({}, "which rank is this?");
}

TEST_F(PlacementTest, WhatCannotBe) {
  expect_refused({}, "which rank is this?");
  expect_refused(flags(2, 2, "node1"), "rank 2 of 2");
  expect_refused(flags(0, 0, ""), "rank 0 of 0");
  expect_refused(flags(0, kMaxRanks + 1, ""), "at most 1024");
  expect_refused(flags(1, 2, ""), "where is rank 0?");
  EXPECT_TRUE(resolve(flags(0, 2, "")).is_root());
  launched_by("RANK", "minus one", "WORLD_SIZE", "5");
  expect_refused({}, "RANK");
}

}  // namespace
}  // namespace mrc::collective
