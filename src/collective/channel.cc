#include "collective/channel.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "collective/dialect_check.h"
#include "collective/failure.h"
#include "os/errors.h"

namespace mrc::collective {
namespace {

using nlohmann::json;

// An immediate is the number of a chunk, or with this bit a number of slots that are free again.
constexpr std::uint32_t kCreditBit = std::uint32_t{1} << 31;
constexpr std::uint32_t kNumberMask = kCreditBit - 1;
constexpr std::uint64_t kMaxQpNumber = 0xff'ffff;

std::uint64_t read(const json& address, const char* key, std::uint64_t most,
                   const std::string& peer) {
  const auto found = address.find(key);
  if (found == address.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > most)
    throw Failure(
        fmt::format("{} does not keep to the protocol of the collectives: {}", peer, key));
  return found->get<std::uint64_t>();
}

Gid read_gid(const json& address, const std::string& peer) {
  const auto found = address.find("gid");
  Gid gid = {};
  const bool fits = found != address.end() && found->is_array() && found->size() == gid.size() &&
                    std::all_of(found->begin(), found->end(), [](const json& byte) {
                      return byte.is_number_unsigned() && byte.get<std::uint64_t>() <= UINT8_MAX;
                    });
  if (!fits) throw Failure(peer + " does not keep to the protocol of the collectives: gid");
  std::transform(found->begin(), found->end(), gid.begin(),
                 [](const json& byte) { return byte.get<std::uint8_t>(); });
  return gid;
}

}  // namespace

Channel::Channel(const Device& device, mrc_cq* cq, unsigned index, const ChannelShape& shape,
                 const QpProfileIds& profiles)
    : device_(device),
      index_(index),
      shape_(shape),
      slots_(std::size_t{shape.chunk_bytes} * shape.slots),
      lengths_(shape.slots),
      region_(device.register_memory(slots_.data(), slots_.size(), Device::Access::kPeersWrite)),
      psn_(random_psn()),
      granted_(shape.slots) {
  mrc_qp_init_attr setup = {};
  setup.send_cq = cq;
  setup.recv_cq = cq;
  setup.cap.max_send_wr = shape.depth();
  setup.cap.max_recv_wr = shape.depth();
  setup.cap.max_send_sge = 1;
  setup.cap.max_recv_sge = 1;
  setup.pd = device.pd();
  qp_.reset(mrc_create_qp(device.context(), &setup));
  if (!qp_) refuse("mrc_create_qp", errno);
  expect_ok("mrc_get_qpn", os::errno_of(mrc_get_qpn(qp_.get(), &number_)));
  to_init(qp_.get(), profiles);
  post_receives(shape.depth());
}

json Channel::address() const {
  return {{"gid", device_.gid()},
          {"qp", number_},
          {"psn", psn_},
          {"mtu", device_.mtu()},
          {"dialect", device_.dialect()},
          {"security", device_.security()},
          {"slots", reinterpret_cast<std::uintptr_t>(slots_.data())},
          {"key", region_->rkey},
          {"chunk_bytes", shape_.chunk_bytes},
          {"slot_count", shape_.slots}};
}

void Channel::connect(const json& peer, const std::string& name) {
  peer_ = name;
  if (read(peer, "chunk_bytes", UINT32_MAX, name) != shape_.chunk_bytes ||
      read(peer, "slot_count", UINT32_MAX, name) != shape_.slots)
    throw Failure(name + " was started with other sizes of chunks; give all ranks the same");
  const auto dialect = peer.find("dialect");
  const bool told = dialect != peer.end() && dialect->is_string();
  check_dialect(device_.dialect(),
                told ? std::string_view(dialect->get_ref<const std::string&>()) : "", name);
  if (peer.contains("security"))
    device_.check_security(read(peer, "security", UINT64_MAX, name), name);
  peer_slots_ = read(peer, "slots", UINT64_MAX, name);
  peer_key_ = static_cast<std::uint32_t>(read(peer, "key", UINT32_MAX, name));
  const auto mtu = static_cast<std::uint32_t>(read(peer, "mtu", UINT16_MAX, name));
  to_ready(qp_.get(), device_,
           {.gid = read_gid(peer, name),
            .peer_qp = static_cast<std::uint32_t>(read(peer, "qp", kMaxQpNumber, name)),
            .peer_psn = static_cast<std::uint32_t>(read(peer, "psn", kMaxQpNumber, name)),
            .own_psn = psn_,
            .mtu = std::min(mtu, device_.mtu()),
            .waits_for_ever = true});
}

void Channel::post_receives(unsigned count) {
  std::array<ibv_recv_wr, 16> requests;
  for (unsigned posted = 0; posted < count;) {
    const auto batch = std::min<unsigned>(count - posted, requests.size());
    for (unsigned i = 0; i < batch; ++i) {
      requests[i] = {};
      requests[i].wr_id = id_of(Work::kReceive);
      requests[i].next = i + 1 < batch ? &requests[i + 1] : nullptr;
    }
    ibv_recv_wr* bad = nullptr;
    expect_ok("mrc_post_recv", os::errno_of(mrc_post_recv(qp_.get(), requests.data(), &bad)));
    posted += batch;
  }
}

void Channel::send(std::span<const std::byte> chunk, std::uint32_t key) {
  ibv_sge piece = {};
  piece.addr = reinterpret_cast<std::uintptr_t>(chunk.data());
  piece.length = static_cast<std::uint32_t>(chunk.size());
  piece.lkey = key;
  ibv_send_wr request = {};
  request.wr_id = id_of(Work::kChunk);
  request.sg_list = &piece;
  request.num_sge = chunk.empty() ? 0 : 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(static_cast<std::uint32_t>(sent_) & kNumberMask);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = peer_slots_ + sent_ % shape_.slots * shape_.chunk_bytes;
  request.wr.rdma.rkey = peer_key_;
  ibv_send_wr* bad = nullptr;
  expect_ok("mrc_post_send", mrc_post_send(qp_.get(), &request, &bad));
  ++sent_;
  ++under_way_;
}

std::span<const std::byte> Channel::slot(std::uint64_t number) const {
  return std::span(slots_).subspan(number % shape_.slots * shape_.chunk_bytes, shape_.chunk_bytes);
}

std::span<const std::byte> Channel::chunk(std::size_t bytes) const {
  if (lengths_[taken_ % shape_.slots] != bytes)
    throw Failure(
        fmt::format("{} sent a chunk of {} bytes where {} were due; do all ranks do the "
                    "same?",
                    peer_, lengths_[taken_ % shape_.slots], bytes));
  return slot(taken_).first(bytes);
}

void Channel::release() {
  ++taken_;
  give_credit();
}

// Half a ring at a time, and as soon as the send queue has room.
void Channel::give_credit() {
  const auto free = static_cast<std::uint32_t>(taken_ - credited_);
  if (free < std::max(shape_.slots / 2, 1U) || under_way_ >= shape_.depth()) return;
  ibv_send_wr request = {};
  request.wr_id = id_of(Work::kCredit);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(kCreditBit | free);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = peer_slots_;
  request.wr.rdma.rkey = peer_key_;
  ibv_send_wr* bad = nullptr;
  expect_ok("mrc_post_send", mrc_post_send(qp_.get(), &request, &bad));
  credited_ = taken_;
  ++under_way_;
}

void Channel::on_completion(const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) fail(wc);
  switch (static_cast<Work>(wc.wr_id & 3)) {
    case Work::kChunk:
      ++completed_;
      [[fallthrough]];
    case Work::kCredit:
      --under_way_;
      give_credit();
      break;
    case Work::kReceive:
      on_receive(wc);
      break;
  }
}

void Channel::on_receive(const ibv_wc& wc) {
  post_receives(1);
  const std::uint32_t word = ntohl(wc.imm_data);
  if ((word & kCreditBit) != 0) {
    granted_ += word & kNumberMask;
    return;
  }
  if (word != (arrived_ & kNumberMask) || arrived_ - taken_ >= shape_.slots ||
      wc.byte_len > shape_.chunk_bytes)
    throw Failure(
        fmt::format("{} sent chunk {} where {} was due", peer_, word, arrived_ & kNumberMask));
  lengths_[arrived_ % shape_.slots] = wc.byte_len;
  bytes_received_ += wc.byte_len;
  ++arrived_;
}

void Channel::fail(const ibv_wc& wc) const {
  throw Failure(
      fmt::format("queue pair {:#x} to {}: {}", number_, peer_, ibv_wc_status_str(wc.status)),
      wc.status == IBV_WC_RETRY_EXC_ERR ? FailureKind::kTimeout : FailureKind::kFailed);
}

}  // namespace mrc::collective
