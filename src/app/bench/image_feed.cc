#include "app/bench/image_feed.h"

#include <algorithm>
#include <optional>

#include "app/image_files.h"
#include "app/model_file.h"
#include "base/error.h"
#include "tasks/image_graph.h"

namespace octet::app {

ImageFeed::ImageFeed(const spec::ExperimentSpec& spec, const std::vector<std::string>& paths, const engine::Plan& plan)
    : input_(tasks::image_input(signature_of(plan))),
      stream_(open_image_files(spec, paths, {input_.channels, input_.height, input_.width}, input_.batch)) {
  data::LoaderOptions options = stream_.loader->options();
  options.threads = 0;  // what prepares ahead in other threads would hide its time
  stream_.loader = std::make_unique<data::Loader>(*stream_.dataset, options);
  const data::ImageShape& shape = stream_.loader->image_shape();
  data::require_fit(input_, shape.channels, shape.height, shape.width);
  stream_.loader->start_epoch(0);
}

void ImageFeed::next(std::span<float> input) {
  std::optional<data::Batch> batch = stream_.loader->next();
  if (!batch || batch->size == 0) {
    stream_.loader->start_epoch(0);
    batch = stream_.loader->next();
  }
  require(batch && batch->size > 0, "none of the ", images(), " images can be decoded");
  data::arrange(*batch, input_, input);
}

}  // namespace octet::app
