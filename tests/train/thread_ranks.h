// Ranks that are threads of the test.
#pragma once
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "train/communicator.h"

namespace octet::train::testing {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : barrier_(size), given_(static_cast<size_t>(size)), bytes_(given_.size()) {}

  // Runs `work` once on each rank, all at a time. An exception ends the test program: the other ranks wait for ever.
  void run(const std::function<void(Communicator&)>& work) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank)
      threads.emplace_back([this, rank, &work]() noexcept {
        Rank communicator(*this, rank);
        work(communicator);
      });
  }

 private:
  class Rank : public Communicator {
   public:
    Rank(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return all_.size(); }
    void all_reduce(std::span<at::Tensor> tensors, Reduce reduce) override {
      all_.given_[static_cast<size_t>(rank_)] = tensors;
      all_.barrier_.arrive_and_wait();
      if (rank_ == 0) all_.reduce(reduce);
      all_.barrier_.arrive_and_wait();
    }
    std::string broadcast(std::string bytes) override {
      all_.bytes_[static_cast<size_t>(rank_)] = std::move(bytes);
      all_.barrier_.arrive_and_wait();
      std::string out = all_.bytes_[0];
      all_.barrier_.arrive_and_wait();
      return out;
    }
    std::vector<std::string> gather(const std::string& bytes) override {
      all_.bytes_[static_cast<size_t>(rank_)] = bytes;
      all_.barrier_.arrive_and_wait();
      std::vector<std::string> out = rank_ == 0 ? all_.bytes_ : std::vector<std::string>();
      all_.barrier_.arrive_and_wait();
      return out;
    }

   private:
    ThreadRanks& all_;
    int rank_;
  };

  int size() const { return static_cast<int>(given_.size()); }
  void reduce(Reduce reduce) {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < given_[0].size(); ++i) {
      std::vector<at::Tensor> each;
      for (const std::span<at::Tensor> tensors : given_) each.push_back(tensors[i]);
      const at::Tensor all = at::stack(each), result = reduce == Reduce::kMean  ? all.mean(0)
                                                       : reduce == Reduce::kMax ? all.amax(0)
                                                                                : all.sum(0);
      for (at::Tensor& tensor : each) tensor.copy_(result);
    }
  }

  std::barrier<> barrier_;
  std::vector<std::span<at::Tensor>> given_;
  std::vector<std::string> bytes_;
};

}  // namespace octet::train::testing
