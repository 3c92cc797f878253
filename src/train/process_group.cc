#include "train/process_group.h"

// What the library was built with; the headers ask for it.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gloo/transport/device.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <csignal>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/error.h"

namespace octet::train {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using Work = c10::intrusive_ptr<c10d::Work>;

// The first sentence of what LibTorch says, without its traces and its places in sources.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) text = text.substr(std::min(text.find(']') + 1, text.size()));
  const size_t begin = text.find_first_not_of(' ');
  return text.substr(begin == std::string::npos ? 0 : begin, text.find(". ") - begin);
}

at::Tensor as_tensor(const std::string& bytes) {
  const at::Tensor out = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::copy(bytes.begin(), bytes.end(), out.mutable_data_ptr<uint8_t>());
  return out;
}

std::string as_text(const at::Tensor& bytes, int64_t size) {
  const auto* data = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
  return std::string(data, static_cast<size_t>(size));
}

c10d::AllreduceOptions options_of(Reduce reduce) {
  c10d::AllreduceOptions options;
  options.reduceOp = reduce == Reduce::kMax ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
  return options;
}

// By which the others reach this machine: that of the way to rank 0's. Names of hosts often stand for the loop-back.
std::string own_address(const World& world) {
  constexpr const char* kLoopBack = "127.0.0.1";
  if (world.local_size == world.size) return kLoopBack;
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  const int error = ::getaddrinfo(world.master.c_str(), std::to_string(world.port).c_str(), &hints, &found);
  if (error != 0) fail("'", world.master, "' is not known: ", ::gai_strerror(error));
  std::string out;
  for (const addrinfo* each = found; each && out.empty(); each = each->ai_next) {
    const int socket = ::socket(each->ai_family, each->ai_socktype, each->ai_protocol);
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char text[NI_MAXHOST];
    // Connecting a datagram socket sends nothing; it chooses the way.
    if (socket >= 0 && ::connect(socket, each->ai_addr, each->ai_addrlen) == 0 &&
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      out = text;
    if (socket >= 0) ::close(socket);
  }
  ::freeaddrinfo(found);
  if (out.empty()) fail("there is no way to '", world.master, "'");
  return out;
}

class GlooRanks : public Communicator {
 public:
  GlooRanks(c10::intrusive_ptr<c10d::Store> store, c10::intrusive_ptr<Gloo> gloo, int rank, int size)
      : store_(std::move(store)), gloo_(std::move(gloo)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(std::span<at::Tensor> tensors, Reduce reduce) override {
    const at::NoGradGuard no_grad;
    // One message for all tensors of a type.
    std::map<at::ScalarType, std::vector<size_t>> by_type;
    for (size_t i = 0; i < tensors.size(); ++i) by_type[tensors[i].scalar_type()].push_back(i);
    for (const auto& [type, members] : by_type) {
      std::vector<at::Tensor> pieces;
      for (const size_t i : members) pieces.push_back(tensors[i].to(at::kCPU).reshape({-1}));
      at::Tensor all = pieces.size() == 1 ? pieces[0].contiguous() : at::cat(pieces);
      if (all.numel() == 0) continue;
      finish(begin(all, reduce), all, reduce);
      int64_t offset = 0;
      for (const size_t i : members) {
        at::Tensor& target = tensors[i];
        target.copy_(all.narrow(0, offset, target.numel()).view(target.sizes()));
        offset += target.numel();
      }
    }
  }

  std::unique_ptr<Pending> start_all_reduce(at::Tensor tensor, Reduce reduce) override {
    return std::make_unique<Started>(*this, std::move(tensor), reduce);
  }

  std::string broadcast(std::string bytes) override {
    std::vector<at::Tensor> size{at::scalar_tensor(static_cast<int64_t>(bytes.size()), at::kLong)};
    wait([&] { return gloo_->broadcast(size); });
    const int64_t count = size[0].item<int64_t>();
    if (count == 0) return "";
    std::vector<at::Tensor> data{rank_ == 0 ? as_tensor(bytes) : at::empty({count}, at::kByte)};
    wait([&] { return gloo_->broadcast(data); });
    return rank_ == 0 ? std::move(bytes) : as_text(data[0], count);
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    const at::Tensor sizes = at::zeros({size_}, at::kLong);
    sizes[rank_].fill_(static_cast<int64_t>(bytes.size()));
    std::vector<at::Tensor> all_sizes{sizes};
    wait([&] { return gloo_->allreduce(all_sizes); });
    // Gloo gathers pieces of one size.
    const int64_t most = sizes.max().item<int64_t>();
    if (most == 0)
      return rank_ == 0 ? std::vector<std::string>(static_cast<size_t>(size_)) : std::vector<std::string>();
    const at::Tensor mine = at::zeros({most}, at::kByte);
    mine.narrow(0, 0, static_cast<int64_t>(bytes.size())).copy_(as_tensor(bytes));
    std::vector<at::Tensor> given{mine};
    std::vector<std::vector<at::Tensor>> taken;
    if (rank_ == 0) {
      taken.emplace_back();
      for (int i = 0; i < size_; ++i) taken[0].push_back(at::empty({most}, at::kByte));
    }
    wait([&] { return gloo_->gather(taken, given); });
    std::vector<std::string> out;
    if (rank_ == 0)
      for (int i = 0; i < size_; ++i)
        out.push_back(as_text(taken[0][static_cast<size_t>(i)], sizes[i].item<int64_t>()));
    return out;
  }

 private:
  class Started : public Pending {
   public:
    Started(GlooRanks& ranks, at::Tensor tensor, Reduce reduce)
        : ranks_(ranks),
          target_(std::move(tensor)),
          sent_(target_.to(at::kCPU)),
          reduce_(reduce),
          work_(ranks.begin(sent_, reduce)) {}
    void wait() override {
      ranks_.finish(work_, sent_, reduce_);
      if (!target_.is_same(sent_)) target_.copy_(sent_);
    }

   private:
    GlooRanks& ranks_;
    at::Tensor target_, sent_;
    Reduce reduce_;
    Work work_;
  };

  template <typename Call>
  Work guarded(const Call& call) {
    try {
      return call();
    } catch (const std::exception& error) {
      fail_lost(error);
    }
  }

  template <typename Call>
  void wait(const Call& call) {
    guarded([&] {
      const Work work = call();
      work->wait();
      return work;
    });
  }

  Work begin(const at::Tensor& tensor, Reduce reduce) {
    std::vector<at::Tensor> one{tensor};
    return guarded([&] { return gloo_->allreduce(one, options_of(reduce)); });
  }

  void finish(const Work& work, at::Tensor& tensor, Reduce reduce) {
    wait([&] { return work; });
    if (reduce == Reduce::kMean) tensor.div_(size_);
  }

  [[noreturn]] void fail_lost(const std::exception& error) const {
    fail("rank ", rank_, " of ", size_, ": another worker has ended or cannot be reached any more (", reason_of(error),
         "); see what that one says; the same command goes on from the last checkpoint");
  }

  c10::intrusive_ptr<c10d::Store> store_;  // lives as long as the group: rank 0 may serve it
  c10::intrusive_ptr<Gloo> gloo_;
  int rank_, size_;
};

}  // namespace

std::unique_ptr<Communicator> join_process_group(const World& world, std::chrono::seconds timeout) {
  // Writing to one that is gone is to be an error of a call, not the end of this process.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    c10d::TCPStoreOptions where;
    where.port = static_cast<uint16_t>(world.port);
    where.isServer = world.rank == 0 && !world.served;
    where.numWorkers = static_cast<size_t>(world.size);
    where.waitWorkers = false;  // Gloo waits for them
    where.timeout = timeout;
    if (where.isServer && world.listening >= 0) where.masterListenFd = world.listening;
    const auto store = c10::make_intrusive<c10d::TCPStore>(world.master, where);
    const auto prefixed =
        c10::make_intrusive<c10d::PrefixStore>(str("octet/", world.restarts), c10::intrusive_ptr<c10d::Store>(store));
    const auto options = Gloo::Options::create(timeout);
    const char* interface = std::getenv("GLOO_SOCKET_IFNAME");  // as for torch.distributed
    options->devices = {interface ? Gloo::createDeviceForInterface(interface)
                                  : Gloo::createDeviceForHostname(own_address(world))};
    auto gloo = c10::make_intrusive<Gloo>(prefixed, world.rank, world.size, options);
    return std::make_unique<GlooRanks>(store, std::move(gloo), world.rank, world.size);
  } catch (const std::exception& error) {
    fail("rank ", world.rank, " of ", world.size, ", started by ", world.started_by, ", did not meet the others at ",
         world.master, ":", world.port, " within ", timeout.count(), " s: ", reason_of(error),
         "; see to it that all ranks run, and that the port is free and not behind a firewall");
  }
}

}  // namespace octet::train
