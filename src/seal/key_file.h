// The secret that the nodes of a cluster share, as a file.
//
//   # comment
//   key 0 <64 hexadecimal digits>
//
// One key, or two while one takes the place of the other. The first one seals, both open. Whoever
// can read the file is a member of the cluster, so it must belong to the reader or to root and be
// closed to everybody else.
//
// Functions that can fail return an error for people, one line that names the file and the way out;
// it is empty when all went well. No error holds any part of a secret.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "seal/layout.h"
#include "seal/secret_bytes.h"

namespace mrc::seal {

struct ClusterKey {
  KeyId id{};
  SecretBytes<32> secret;
  friend bool operator==(const ClusterKey&, const ClusterKey&) = default;
};

// In the order of the file.
using ClusterKeys = std::vector<ClusterKey>;
inline constexpr std::size_t kMostKeys = 2;
inline constexpr std::size_t kMostKeyFileBytes = 4096;

struct KeyFileResult {
  ClusterKeys keys;
  std::string error;
  bool ok() const { return error.empty(); }
};

// `name` stands for the text in errors.
[[nodiscard]] KeyFileResult parse_key_text(std::string_view text, const std::string& name);
[[nodiscard]] KeyFileResult load_key_file(const std::string& path);

// Both write beside the file and then rename, so that there is never half a file. The first refuses
// to overwrite; the second keeps the owner. Comments are not kept.
[[nodiscard]] std::string create_key_file(const std::string& path, const ClusterKeys& keys);
[[nodiscard]] std::string replace_key_file(const std::string& path, const ClusterKeys& keys);

// A secret from the kernel.
[[nodiscard]] ClusterKey draw_cluster_key(KeyId id);

// A new key takes the place of the old one in three steps, between which the file is copied to all
// nodes: with the first all nodes open what the new key seals, with the second they seal with it,
// with the third the old one is gone. At no time does a node seal what another cannot open.
enum class RotationStep {
  kAdd,      // a second key, drawn now
  kPromote,  // the second key becomes the first
  kDrop,     // the second key, now the old one, goes
};
// The error has no file name.
[[nodiscard]] std::string rotate_keys(ClusterKeys& keys, RotationStep step);

}  // namespace mrc::seal
