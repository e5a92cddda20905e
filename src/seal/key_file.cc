#include "seal/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

#include "os/descriptor.h"
#include "os/host_bug.h"
#include "os/kernel_random.h"
#include "wire/byte_order.h"

namespace mrc::seal {
namespace {

constexpr std::size_t kSecretDigits = 64;
constexpr mode_t kOthers = 077;
constexpr mode_t kPermissions = 07777;

std::string system_error() { return std::strerror(errno); }

KeyFileResult failed(std::string error) { return {.keys = {}, .error = std::move(error)}; }

// --- Text ---

// Takes the next word off the front of a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string read_id(std::string_view word, KeyId& id) {
  unsigned value = 256;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size() || value > 255) {
    return "the number of a key is 0 to 255";
  }
  id = KeyId{static_cast<std::uint8_t>(value)};
  return {};
}

std::string read_secret(std::string_view word, SecretBytes<32>& secret) {
  if (word.size() != kSecretDigits) {
    return "a key has " + std::to_string(kSecretDigits) + " hexadecimal digits, this one has " +
           std::to_string(word.size()) + " characters; copy the file again";
  }
  for (std::size_t i = 0; i < word.size(); i += 2) {
    const int high = digit_of(word[i]);
    const int low = digit_of(word[i + 1]);
    if (high < 0 || low < 0) return "a key is hexadecimal digits only; copy the file again";
    secret.bytes[i / 2] = static_cast<std::byte>(high << 4 | low);
  }
  return {};
}

// One line; what it adds to `keys`, or what is wrong with it.
std::string read_line(std::string_view line, ClusterKeys& keys) {
  const std::string_view first = next_word(line);
  if (first.empty() || first.front() == '#') return {};
  if (first != "key") return "a line is a comment (#) or: key NUMBER DIGITS";
  ClusterKey key;
  std::string error = read_id(next_word(line), key.id);
  if (error.empty()) error = read_secret(next_word(line), key.secret);
  if (!error.empty()) return error;
  if (!next_word(line).empty()) return "there is something behind the key; a line holds one key";
  for (const ClusterKey& other : keys) {
    if (other.id == key.id) return "two keys have the same number; remove one";
    if (other.secret == key.secret) return "two keys are the same; remove one";
  }
  if (keys.size() == kMostKeys) return "a third key; the file holds the new one and the old one";
  keys.push_back(key);
  return {};
}

std::string in_line(const std::string& name, unsigned number, const std::string& error) {
  return name + ":" + std::to_string(number) + ": " + error;
}

// Text with secrets in it, which goes when it is no longer needed.
struct SecretText {
  std::string text;
  ~SecretText() { ::explicit_bzero(text.data(), text.size()); }
};

SecretText to_text(const ClusterKeys& keys) {
  SecretText out;
  out.text.reserve(kMostKeyFileBytes);
  out.text += "# OpenMRC cluster key. Whoever can read this is a member: mode 600, no copies.\n";
  for (const ClusterKey& key : keys) {
    out.text += "key " + std::to_string(static_cast<unsigned>(key.id)) + " ";
    for (const std::byte b : key.secret.bytes) {
      out.text += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
      out.text += "0123456789abcdef"[std::to_integer<unsigned>(b) & 0x0F];
    }
    out.text += "\n";
  }
  return out;
}

// --- Files ---

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & kPermissions));
  return text.data();
}

// Why this file must not be trusted, or empty.
std::string check_status(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return path + ": not a regular file; name the key file itself";
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return path + ": belongs to user " + std::to_string(status.st_uid) +
           ", who is neither you nor root; chown it";
  }
  if ((status.st_mode & kOthers) != 0 && !MRC_HOST_BUG(kKeyFileOpenToAll)) {
    return path + ": open to others than its owner (mode " + octal(status.st_mode) +
           "); chmod 600 it, and make a new key if somebody may have read it";
  }
  if (static_cast<std::size_t>(status.st_size) > kMostKeyFileBytes) {
    return path + ": more than " + std::to_string(kMostKeyFileBytes) +
           " bytes; a key file holds two keys and a few comments at most";
  }
  return {};
}

std::string open_error(const std::string& path) {
  if (errno == ELOOP) return path + ": a symbolic link; name the key file itself";
  const bool missing = errno == ENOENT;
  return path + ": " + system_error() + (missing ? "; make one with: mrc key new " + path : "");
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// So that a new name survives a power failure; where the system does not let us, it is there all
// the same.
void sync_folder(const std::string& path) {
  const os::Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
}

// A file that goes again unless it is kept.
class DraftFile {
 public:
  explicit DraftFile(const std::string& path) : path_(path + ".new") {}
  ~DraftFile() {
    if (made_) ::unlink(path_.c_str());
  }
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;

  const char* path() const { return path_.c_str(); }
  void keep() { made_ = false; }

  // Its name is the same for everybody, so that two rotations of one file do not overtake each
  // other.
  std::string write(const ClusterKeys& keys, const struct stat* owner) {
    const os::Descriptor file(
        ::open(path(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) {
      const bool exists = errno == EEXIST;
      return path_ + ": " + system_error() +
             (exists ? "; somebody else is at it, or was killed: then remove it" : "");
    }
    made_ = true;
    const bool given = owner == nullptr || owner->st_uid == ::geteuid() ||
                       ::fchown(file.get(), owner->st_uid, owner->st_gid) == 0;
    if (!given || !write_all(file.get(), to_text(keys).text) || ::fsync(file.get()) != 0) {
      return path_ + ": " + system_error();
    }
    return {};
  }

 private:
  std::string path_;
  bool made_ = false;
};

}  // namespace

KeyFileResult parse_key_text(std::string_view text, const std::string& name) {
  KeyFileResult result;
  for (unsigned number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string error = read_line(line, result.keys);
    if (!error.empty()) return failed(in_line(name, number, error));
  }
  if (result.keys.empty()) return failed(name + ": no key in it; make one with: mrc key new FILE");
  return result;
}

KeyFileResult load_key_file(const std::string& path) {
  // Without O_NONBLOCK a pipe of that name would keep us waiting.
  const os::Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.valid()) return failed(open_error(path));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed(path + ": " + system_error());
  std::string error = check_status(path, status);
  if (!error.empty()) return failed(std::move(error));

  SecretBytes<kMostKeyFileBytes> buffer;
  std::size_t length = 0;
  while (length < buffer.bytes.size()) {
    const ssize_t got =
        ::read(file.get(), buffer.bytes.data() + length, buffer.bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path + ": " + system_error());
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return parse_key_text({reinterpret_cast<const char*>(buffer.bytes.data()), length}, path);
}

std::string create_key_file(const std::string& path, const ClusterKeys& keys) {
  DraftFile draft(path);
  std::string error = draft.write(keys, nullptr);
  if (!error.empty()) return error;
  // Unlike a rename, a link never takes the place of another file.
  if (::link(draft.path(), path.c_str()) != 0) {
    const bool exists = errno == EEXIST;
    return path + ": " + system_error() +
           (exists ? "; it stays as it is (to replace its key: mrc key rotate)" : "");
  }
  sync_folder(path);
  return {};
}

std::string replace_key_file(const std::string& path, const ClusterKeys& keys) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return open_error(path);
  DraftFile draft(path);
  std::string error = draft.write(keys, &status);
  if (!error.empty()) return error;
  if (::rename(draft.path(), path.c_str()) != 0) return path + ": " + system_error();
  draft.keep();
  sync_folder(path);
  return {};
}

ClusterKey draw_cluster_key(KeyId id) {
  ClusterKey key;
  key.id = id;
  os::KernelRandom random;
  for (std::size_t at = 0; at < key.secret.bytes.size(); at += sizeof(std::uint64_t))
    wire::store_big_endian(&key.secret.bytes[at], random.next64());
  return key;
}

std::string rotate_keys(ClusterKeys& keys, RotationStep step) {
  const auto after = [](KeyId id) {
    return KeyId{static_cast<std::uint8_t>(static_cast<unsigned>(id) + 1)};
  };
  const auto name = [](const ClusterKey& key) {
    return "key " + std::to_string(static_cast<unsigned>(key.id));
  };
  if (step == RotationStep::kAdd) {
    if (keys.size() == kMostKeys) {
      return "there are two keys already; finish that rotation first (--promote, then --drop)";
    }
    keys.push_back(draw_cluster_key(after(keys.front().id)));
    return {};
  }
  if (keys.size() < kMostKeys) return "there is one key only; add the new one first (no option)";
  // The number tells the new key from the old one.
  const bool added = keys[1].id == after(keys[0].id);
  if (step == RotationStep::kPromote) {
    if (!added) return name(keys[0]) + " seals already; the next step is --drop";
    std::swap(keys[0], keys[1]);
    return {};
  }
  if (added) return name(keys[1]) + " is the new one and does not seal yet; --promote it first";
  keys.pop_back();
  return {};
}

}  // namespace mrc::seal
