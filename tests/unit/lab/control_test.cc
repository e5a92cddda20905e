#include "lab/control.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/temporary_directory.h"

namespace mrc::lab::test {
namespace {

// A lab that is short of processors answers late. It is waited for, and the user hears of it once.
TEST(Control, ASlowAnswerIsWaitedForAndToldOf) {
  const mrc::test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/control";
  ControlServer server(
      path,
      [](ClientId, const std::vector<std::string>& words) {
        if (words[0] == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(4'200));
        return Reply{.ok = true, .text = words[0]};
      },
      [](ClientId) {});
  std::atomic<bool> ended = false;
  std::thread thread([&] {
    while (!ended) {
      server.poll();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  ControlClient client;
  int told = 0;
  client.when_slow([&] { ++told; });
  EXPECT_TRUE(client.connect(path));
  EXPECT_EQ(client.ask({"slow"}).text, "slow");
  EXPECT_GE(told, 1);
  const int before = told;
  EXPECT_EQ(client.ask({"fast"}).text, "fast");
  EXPECT_LE(told, before + 1);  // one more on a machine that is slow itself
  ended = true;
  thread.join();
}

}  // namespace
}  // namespace mrc::lab::test
