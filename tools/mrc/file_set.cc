#include "file_set.h"

#include <fmt/core.h>

#include <stdexcept>
#include <system_error>
#include <utility>

#include "output_file.h"
#include "text.h"

namespace mrc::tool {

namespace fs = std::filesystem;

FileSet::FileSet(fs::path folder) : folder_(std::move(folder)) { make(folder_); }

FileSet::~FileSet() {
  if (!kept_) take_back();
}

void FileSet::take_back() {
  std::error_code ignored;
  for (auto at = made_.rbegin(); at != made_.rend(); ++at)
    fs::remove(*at, ignored);  // a folder only where nobody else has put something into it
  made_.clear();
}

// One folder after the other, so that those that were there are told from ours.
void FileSet::make(const fs::path& folder) {
  fs::path path;
  for (const fs::path& part : folder) {
    path /= part;
    std::error_code error;
    if (fs::is_directory(path, error)) continue;
    if (fs::exists(path, error)) error = std::make_error_code(std::errc::not_a_directory);
    if (!error && fs::create_directory(path, error)) made_.push_back(path);
    if (!error) continue;
    take_back();
    throw std::runtime_error(
        fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  }
}

void FileSet::make_folder(const fs::path& name) { make(folder_ / name); }

void FileSet::write(const fs::path& name, const std::function<void(std::ostream&)>& fill) {
  const fs::path path = folder_ / name;
  std::error_code ignored;
  const bool is_new = !fs::exists(path, ignored);
  OutputFile file(path.string());
  if (is_new) made_.push_back(path);
  fill(file.stream());
  file.close();
}

void FileSet::check_room(std::uint64_t bytes) const {
  std::error_code error;
  const fs::space_info room = fs::space(folder_, error);
  if (error || room.available >= bytes) return;
  throw std::runtime_error(fmt::format("{}: {} are to be written, and {} are free there",
                                       folder_.string(), byte_count(bytes),
                                       byte_count(room.available)));
}

}  // namespace mrc::tool
