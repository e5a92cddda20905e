// Files the node state is made of: descriptors, locks that end with their process, replacement
// in one step. Internal to the node state.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "os/descriptor.h"

namespace mrc::node::node_files {

// A descriptor whose lock or pipe says "this process lives". A child of fork() must not keep it:
// there its number is made to lead nowhere.
class LifeDescriptor {
 public:
  LifeDescriptor() = default;
  explicit LifeDescriptor(os::Descriptor fd);
  ~LifeDescriptor();
  LifeDescriptor(LifeDescriptor&&) noexcept = default;
  LifeDescriptor& operator=(LifeDescriptor&& other) noexcept;
  bool valid() const { return fd_.valid(); }
  int get() const { return fd_.get(); }

 private:
  void forget();
  os::Descriptor fd_;
};

// All of these return 0 or an errno.

// The directory and what is missing above it.
int make_directories(const std::string& path);
// One directory with exactly that mode; one that is there stays as it is.
int make_directory(const std::string& path, mode_t mode);

// EPERM unless we own the directory or have CAP_NET_ADMIN.
int may_control(const std::string& directory);

// Why the state in a directory is not to be believed, with what to do about it, in one line; empty
// when it is. It and the folder it lies in must be ours, root's, or of somebody whom root gave them
// to, and nobody else may be able to put another in its place. Root believes what it was told to.
std::string distrust(const std::string& directory);
// Whether a file of that owner is the word of a controller in a directory of the node state.
bool speaks_for(const std::string& directory, uid_t owner);

// Takes the lock file `name`, which stays; waits at most `patience_ns`.
int lock_file(const std::string& directory, const std::string& name, DurationNs patience_ns,
              LifeDescriptor& out);

// Replaces `name` in `directory` by `bytes`: whoever opens it sees the old or the new contents,
// after a crash too. The caller holds the writers' lock.
int replace_file(const std::string& directory, const std::string& name,
                 std::span<const std::byte> bytes);

// At most `limit` bytes; EFBIG when there are more, EINVAL when it is no plain file.
int open_for_reading(const std::string& path, os::Descriptor& out);
int read_all(int fd, std::size_t limit, std::vector<std::byte>& out);

// A new file `<prefix><unique>` in `directory`, locked by us until `lock` closes.
int create_life_file(const std::string& directory, const std::string& prefix, LifeDescriptor& lock,
                     std::string& path, mode_t mode = 0644);
// Whether the file's process lives. What nobody can lock (pipes, links, files closed to us) is not
// one of ours; what we have no descriptor for may be. A dead one is locked until `fd` closes.
enum class Life : std::uint8_t { kNone, kDead, kAlive };
Life life_of(const std::string& path, os::Descriptor& fd);
struct LifeFile {
  int fd = -1;  // none when we are out of descriptors
  uid_t owner = 0;
};
// Calls `found` for each file of that prefix whose process lives, until it returns false. Files of
// the dead are removed. So many of one owner are looked at, so that none hides those of others.
// False: the directory cannot be looked at now, for want of a descriptor say.
inline constexpr unsigned kMaxLifeFilesOfOwner = 4'096;
bool for_each_life_file(const std::string& directory, std::string_view prefix,
                        const std::function<bool(const LifeFile& file)>& found);

// Names in a directory, at most `limit`, without those that begin with a dot.
std::vector<std::string> list_directory(const std::string& directory, std::size_t limit);

std::string path_in(const std::string& directory, std::string_view name);

// "<process>-<16 random hex digits>".
std::string unique_name();

// One line to stderr.
void complain(const std::string& line);

}  // namespace mrc::node::node_files
