#include "os/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace mrc::os {
namespace {

// Four pages of which the second may only be read and the third not be used at all.
class OwnMemory : public testing::Test {
 protected:
  OwnMemory() {
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(at(1), page_, PROT_READ), 0);
    EXPECT_EQ(mprotect(at(2), page_, PROT_NONE), 0);
  }
  ~OwnMemory() override { munmap(memory_, 4 * page_); }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  char* at(std::size_t page) const { return static_cast<char*>(memory_) + page * page_; }

  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory_ =
      mmap(nullptr, 4 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

TEST_F(OwnMemory, RightsOfEveryPageCount) {
  EXPECT_TRUE(may_use(at(0), page_, MemoryUse::kWrite));
  EXPECT_TRUE(may_use(at(0), 2 * page_, MemoryUse::kRead));
  EXPECT_FALSE(may_use(at(0), 2 * page_, MemoryUse::kWrite));
  EXPECT_FALSE(may_use(at(0) + page_ - 1, 2, MemoryUse::kWrite));
  EXPECT_FALSE(may_use(at(1), page_ + 1, MemoryUse::kRead));
  EXPECT_FALSE(may_use(at(2), 1, MemoryUse::kRead));
  EXPECT_TRUE(may_use(at(3), page_, MemoryUse::kWrite));
}

TEST_F(OwnMemory, HolesAreNotMapped) {
  ASSERT_EQ(munmap(at(3), page_), 0);
  EXPECT_FALSE(may_use(at(3), 1, MemoryUse::kRead));
  EXPECT_FALSE(may_use(nullptr, 100, MemoryUse::kRead));
}

TEST_F(OwnMemory, HeapStackAndConstantsAreWhatTheyAre) {
  std::vector<char> heap(1 << 20);
  const char stack = 0;
  static constexpr char kConstant[] = "constant";
  EXPECT_TRUE(may_use(heap.data(), heap.size(), MemoryUse::kWrite));
  EXPECT_TRUE(may_use(&stack, 1, MemoryUse::kWrite));
  EXPECT_TRUE(may_use(kConstant, sizeof(kConstant), MemoryUse::kRead));
  EXPECT_FALSE(may_use(kConstant, sizeof(kConstant), MemoryUse::kWrite));
}

}  // namespace
}  // namespace mrc::os
