// Our NCCL plug-in, loaded as NCCL loads it.
#include "transport.h"

namespace mrc::bench {
namespace {

constexpr int kVersion = 11;
constexpr int kTag = 1;

class PluginTransport final : public Transport {
 public:
  PluginTransport(const RankSetting& setting, const test::Meeting& meeting)
      : driver_(setting.plugin, kVersion) {
    driver_.init();
    link_ = test::make_link(
        driver_, meeting,
        {.rank = setting.rank, .next = setting.next(), .previous = setting.previous()});
  }
  ~PluginTransport() override {
    if (out_ != nullptr) driver_.dereg_mr(link_.send, out_);
    if (in_ != nullptr) driver_.dereg_mr(link_.receive, in_);
    test::close_link(driver_, link_);
  }

  void use(std::span<std::byte> out, std::span<std::byte> in) override {
    out_ = registered(link_.send, out);
    in_ = registered(link_.receive, in);
  }
  void* send(std::span<std::byte> bytes) override {
    void* request = nullptr;
    MRC_CHECK(driver_.isend(link_.send, bytes.data(), bytes.size(), kTag, out_, &request) ==
              test::Result::kSuccess);
    return request;
  }
  void* receive(std::span<std::byte> bytes) override {
    void* data = bytes.data();
    std::size_t size = bytes.size();
    int tag = kTag;
    void* request = nullptr;
    MRC_CHECK(driver_.irecv(link_.receive, 1, &data, &size, &tag, &in_, &request) ==
              test::Result::kSuccess);
    return request;
  }
  bool test(void* request) override {
    int done = 0;
    int size = 0;
    MRC_CHECK(driver_.test(request, &done, &size) == test::Result::kSuccess);
    return done != 0;
  }

 private:
  void* registered(void* comm, std::span<std::byte> bytes) {
    void* memory = nullptr;
    MRC_CHECK(driver_.reg_mr(comm, bytes.data(), bytes.size(), nccl::kPointerHost, &memory) ==
              test::Result::kSuccess);
    return memory;
  }

  test::Driver driver_;
  test::Link link_;
  void* out_ = nullptr;
  void* in_ = nullptr;
};

}  // namespace

std::unique_ptr<Transport> open_plugin(const RankSetting& setting, const test::Meeting& meeting) {
  return std::make_unique<PluginTransport>(setting, meeting);
}

}  // namespace mrc::bench
