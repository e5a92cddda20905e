// Pages of processes that live, were killed, are of others, or are not pages at all.
#include "node/telemetry_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "node/telemetry_writer.h"
#include "support/temporary_directory.h"

namespace mrc::node {
namespace {

using mrc::test::TemporaryDirectory;

std::unique_ptr<TelemetryBody> body_of(const std::string& device) {
  auto body = std::make_unique<TelemetryBody>();
  body->process = own_process();
  body->device.set(device);
  return body;
}

class TelemetryReader : public ::testing::Test {
 protected:
  std::unique_ptr<TelemetryWriter> write(const std::string& device, const std::string& group = {}) {
    std::unique_ptr<TelemetryWriter> writer = TelemetryWriter::open({scratch.path(), group}, error);
    if (writer) writer->write(*body_of(device));
    return writer;
  }
  TelemetryListing read() const { return read_telemetry({.directory = scratch.path()}); }
  std::string folder() const { return telemetry_folder(scratch.path(), ::geteuid()); }
  std::string only_page() const { return read().readings.at(0).path; }
  mode_t mode_of(const std::string& path) const {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  }

  TemporaryDirectory scratch;
  std::string error;
};

// A process that wrote a page and was killed.
void leave_page_behind(const std::string& directory) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::string error;
    const auto writer = TelemetryWriter::open({directory, {}}, error);
    if (writer) writer->write(*body_of("killed"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_F(TelemetryReader, SeesWhoWroteAndSelectsByPidAndDevice) {
  const auto first = write("mrc0");
  const auto second = write("mrc1");
  ASSERT_NE(first, nullptr) << error;
  const TelemetryListing listing = read();
  ASSERT_EQ(listing.readings.size(), 2U);
  EXPECT_TRUE(listing.problems.empty());
  const TelemetryReading& reading = listing.readings[0];
  EXPECT_EQ(reading.body.device.text(), "mrc0");
  EXPECT_EQ(reading.body.process.pid, static_cast<std::uint64_t>(::getpid()));
  EXPECT_NE(reading.body.process.start_ticks, 0U);
  EXPECT_EQ(reading.owner, ::geteuid());
  EXPECT_TRUE(reading.alive);
  const auto count = [&](const TelemetryQuery& query) {
    return read_telemetry(query).readings.size();
  };
  EXPECT_EQ(count({.directory = scratch.path(), .device = "mrc1"}), 1U);
  EXPECT_EQ(count({.directory = scratch.path(), .device = "mrc2"}), 0U);
  EXPECT_EQ(count({.directory = scratch.path(), .pid = ::getpid()}), 2U);
  EXPECT_EQ(count({.directory = scratch.path(), .pid = 1}), 0U);
}

TEST_F(TelemetryReader, PageGoesWithItsDeviceAndIsTheOwnersAlone) {
  auto writer = write("mrc0");
  ASSERT_NE(writer, nullptr) << error;
  EXPECT_EQ(mode_of(only_page()), 0600U);
  EXPECT_EQ(mode_of(folder()), 0700U);
  writer.reset();
  EXPECT_TRUE(read().readings.empty());
}

TEST_F(TelemetryReader, GroupMayReadWhereOneIsNamed) {
  const auto writer = write("mrc0", std::to_string(::getegid()));
  ASSERT_NE(writer, nullptr) << error;
  EXPECT_EQ(error, "");
  EXPECT_EQ(mode_of(only_page()), 0640U);
  EXPECT_EQ(mode_of(folder()), 0750U);
}

TEST_F(TelemetryReader, GroupThereIsNotIsSaidAndThePageStaysClosed) {
  const auto writer = write("mrc0", "no-such-group");
  ASSERT_NE(writer, nullptr);
  EXPECT_NE(error.find("no-such-group: there is none of that name"), std::string::npos) << error;
  EXPECT_EQ(mode_of(only_page()), 0600U);
}

TEST_F(TelemetryReader, KilledProcessLeavesItsPageToTheNextOne) {
  leave_page_behind(scratch.path());
  {
    const TelemetryListing listing = read();
    ASSERT_EQ(listing.readings.size(), 1U);
    EXPECT_FALSE(listing.readings[0].alive);
    EXPECT_EQ(listing.readings[0].body.device.text(), "killed");
  }
  const auto writer = write("next");
  ASSERT_NE(writer, nullptr) << error;
  const TelemetryListing listing = read();
  ASSERT_EQ(listing.readings.size(), 1U);
  EXPECT_EQ(listing.readings[0].body.device.text(), "next");
  EXPECT_TRUE(listing.readings[0].alive);
}

TEST_F(TelemetryReader, CleaningTakesTheDeadAlone) {
  const auto writer = write("mrc0");
  leave_page_behind(scratch.path());
  EXPECT_EQ(read().readings.size(), 2U);
  EXPECT_EQ(clean_all_telemetry(scratch.path()), 1U);
  EXPECT_EQ(read().readings.size(), 1U);
  EXPECT_EQ(clean_all_telemetry(scratch.path()), 0U);
}

TEST_F(TelemetryReader, WhatIsNoPageIsNamedOrPassedOver) {
  const auto writer = write("mrc0");
  ASSERT_NE(writer, nullptr) << error;
  const std::string base = folder() + "/page-";
  std::ofstream(base + "text") << "hello";
  std::ofstream(base + "huge");
  std::filesystem::resize_file(base + "huge", kTelemetryPageBytes + 1);
  ASSERT_EQ(::mkfifo((base + "pipe").c_str(), 0600), 0);
  ASSERT_EQ(::symlink(only_page().c_str(), (base + "link").c_str()), 0);
  const TelemetryListing listing = read();
  EXPECT_EQ(listing.readings.size(), 1U);
  EXPECT_EQ(listing.problems.size(), 2U);  // the text and the huge one
}

TEST_F(TelemetryReader, FolderOfSomebodyElseIsNotWrittenTo) {
  ASSERT_EQ(::mkdir(folder().c_str(), 0777), 0);
  ASSERT_EQ(::chmod(folder().c_str(), 0777), 0);
  EXPECT_EQ(write("mrc0"), nullptr);
  EXPECT_NE(error.find("is not a folder of ours alone"), std::string::npos) << error;
  std::filesystem::remove(folder());
  std::filesystem::create_directory(scratch / "other");
  ASSERT_EQ(::symlink((scratch / "other").c_str(), folder().c_str()), 0);
  EXPECT_EQ(write("mrc0"), nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "other"));
}

// Only root can make files of somebody else.
TEST_F(TelemetryReader, PageOfAnotherUserInOurFolderIsPassedOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto writer = write("mrc0");
  std::filesystem::copy_file(only_page(), folder() + "/page-foreign");
  EXPECT_EQ(read().readings.size(), 2U);
  ASSERT_EQ(::chown((folder() + "/page-foreign").c_str(), 12'345, 12'345), 0);
  EXPECT_EQ(read().readings.size(), 1U);
}

// Every field of a body is the same number here, so that a mixture of two would show.
TEST_F(TelemetryReader, ReadingsAreWholeWhileTheyAreWritten) {
  const auto writer = write("mrc0");
  ASSERT_NE(writer, nullptr) << error;
  std::atomic<bool> done{false};
  std::thread thread([&] {
    auto body = body_of("mrc0");
    for (std::uint64_t round = 1; !done; ++round) {
      body->sweeps = round;
      body->drops.fill(round);
      body->list.back().window_bytes = round;
      writer->write(*body);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  unsigned seen = 0;
  for (unsigned i = 0; i < 2'000; ++i) {
    const TelemetryListing listing = read();
    if (listing.readings.empty()) continue;
    const TelemetryBody& body = listing.readings[0].body;
    ASSERT_EQ(body.list.back().window_bytes, body.sweeps);
    ASSERT_EQ(body.drops.back(), body.sweeps);
    ++seen;
  }
  done = true;
  thread.join();
  EXPECT_GT(seen, 0U);
}

}  // namespace
}  // namespace mrc::node
