// Memory that runs out on demand: replaces operator new of the whole program.
#pragma once

namespace mrc::api_test {

// While it lives, the n-th allocation of this thread from now on fails, and only that one; 0 =
// none.
class FailingNew {
 public:
  explicit FailingNew(unsigned n);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  // True when it has failed.
  bool fired() const;
};

}  // namespace mrc::api_test
