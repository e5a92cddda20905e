#include "seal/fork_mark.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mrc::seal {
namespace {

// Ends the child with 0 if `holds` there; whether it did.
template <typename Check>
bool holds_in_child(pid_t child, Check holds) {
  if (child == 0) _exit(holds() ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ForkMark, StaysTheSameInOneProcess) {
  const std::uint64_t first = fork_generation();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(fork_generation(), first);
}

TEST(ForkMark, IsAnotherInAChildAndItsChildren) {
  const std::uint64_t parent = fork_generation();
  EXPECT_TRUE(holds_in_child(fork(), [&] {
    const std::uint64_t child = fork_generation();
    if (child == parent || fork_generation() != child) return false;
    return holds_in_child(
        fork(), [&] { return fork_generation() != child && fork_generation() != parent; });
  }));
  EXPECT_EQ(fork_generation(), parent);
}

// No handler runs; only the kernel can tell.
TEST(ForkMark, IsAnotherAfterABareClone) {
  const std::uint64_t parent = fork_generation();
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  EXPECT_TRUE(holds_in_child(child, [&] { return fork_generation() != parent; }));
}

}  // namespace
}  // namespace mrc::seal
