// Files that belong together, in one folder: all of them are written, or what was written is taken
// away again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <vector>

namespace mrc::tool {

class FileSet {
 public:
  // Makes the folder, unless it is there. Throws std::runtime_error with the system's reason, as
  // write() and make_folder() do.
  explicit FileSet(std::filesystem::path folder);
  // Removes the files and folders that were not there before, unless keep() was called.
  ~FileSet();
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;

  // A folder or a file by its name in the folder.
  void make_folder(const std::filesystem::path& name);
  void write(const std::filesystem::path& name, const std::function<void(std::ostream&)>& fill);
  void keep() { kept_ = true; }

  // Throws where the file system is known to have less room than that.
  void check_room(std::uint64_t bytes) const;

 private:
  void make(const std::filesystem::path& folder);
  void take_back();

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  // folders before what is in them
  bool kept_ = false;
};

}  // namespace mrc::tool
