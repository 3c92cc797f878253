// Parts of a dataset for training and validation without a validation set of its own.
#pragma once
#include <memory>
#include <string>

#include "data/dataset.h"

namespace octet::data {

// The images of the chosen fold, or of all others, in their order. Images are dealt to `folds` parts of equal size, but
// for one image, by a hash of their file names: neighbors in a video go to different parts, and neither the order nor
// the folder of the files matters. UserError (exit 2), starting with `where`, for fewer than two folds, a fold that
// there is not, and more folds than images.
std::unique_ptr<Dataset> take_fold(std::unique_ptr<Dataset> dataset, int64_t folds, const FoldChoice& choice,
                                   const std::string& where);

}  // namespace octet::data
