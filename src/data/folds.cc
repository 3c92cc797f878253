#include "data/folds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "data/selection.h"

namespace octet::data {

std::unique_ptr<Dataset> take_fold(std::unique_ptr<Dataset> dataset, int64_t folds, const FoldChoice& choice,
                                   const std::string& where) {
  if (folds < 2)
    fail_usage(where, ": data.validation_fold divides it, so `folds` has to say into how many parts, 2 or more");
  if (choice.fold < 0 || choice.fold >= folds)
    fail_usage(where, ": has the folds 0 to ", folds - 1, "; data.validation_fold is ", choice.fold);
  if (folds > dataset->size()) fail_usage(where, ": has ", dataset->size(), " images, too few for ", folds, " folds");
  std::vector<std::pair<uint64_t, int64_t>> order;  // hash, index
  for (int64_t i = 0; i < dataset->size(); ++i)
    order.emplace_back(hash64(std::filesystem::path(dataset->name(i)).filename().string()), i);
  std::sort(order.begin(), order.end());
  std::vector<int64_t> chosen;
  for (size_t rank = 0; rank < order.size(); ++rank)
    if ((static_cast<int64_t>(rank) % folds == choice.fold) != choice.others) chosen.push_back(order[rank].second);
  std::sort(chosen.begin(), chosen.end());
  return select(std::move(dataset), std::move(chosen));
}

}  // namespace octet::data
