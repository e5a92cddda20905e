// The node's profiles a queue pair counts as a user of, for as long as this lives.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "node/node_state.h"

namespace mrc::nic {

class ProfileUse {
 public:
  ProfileUse() = default;
  explicit ProfileUse(node::NodeState& node) : node_(&node) {}
  ~ProfileUse() {
    if (ev_) node_->remove_user(node::ProfileKind::kEv, *ev_);
    if (cc_) node_->remove_user(node::ProfileKind::kCc, *cc_);
  }
  ProfileUse(ProfileUse&& other) noexcept
      : node_(other.node_),
        ev_(std::exchange(other.ev_, std::nullopt)),
        cc_(std::exchange(other.cc_, std::nullopt)) {}
  ProfileUse& operator=(ProfileUse&& other) noexcept {
    std::swap(node_, other.node_);
    std::swap(ev_, other.ev_);
    std::swap(cc_, other.cc_);
    return *this;
  }

  // One of each kind; 0 or an errno.
  int add(node::ProfileKind kind, std::uint64_t id) {
    const int added = node_->add_user(kind, id);
    if (added == 0) (kind == node::ProfileKind::kEv ? ev_ : cc_) = id;
    return added;
  }

  std::optional<std::uint64_t> cc() const { return cc_; }

 private:
  node::NodeState* node_ = nullptr;
  std::optional<std::uint64_t> ev_;
  std::optional<std::uint64_t> cc_;
};

}  // namespace mrc::nic
