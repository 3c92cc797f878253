#include "tasks/batch_message.h"

#include "base/byte_stream.h"
#include "vision/mask.h"

namespace octet::tasks {
namespace {

void put(ByteWriter& out, const vision::Object& object) {
  out.put(object.box);
  out.put(object.label);
  out.put(object.score);
  out.put(object.difficult);
  out.put(object.crowd);
  out.put(object.mask != nullptr);
  if (!object.mask) return;
  out.put(object.mask->height());
  out.put(object.mask->width());
  out.put_all(object.mask->counts());
}

vision::Object get_object(ByteReader& in) {
  vision::Object object;
  object.box = in.get<vision::Box>();
  object.label = in.get<int>();
  object.score = in.get<float>();
  object.difficult = in.get<bool>();
  object.crowd = in.get<bool>();
  if (!in.get<bool>()) return object;
  const int height = in.get<int>(), width = in.get<int>();
  object.mask = std::make_shared<const vision::Mask>(height, width, in.get_all<uint32_t>());
  return object;
}

void put(ByteWriter& out, const data::Annotation& truth) {
  out.put(truth.label);
  out.put(truth.weight);
  out.put(truth.objects.size());
  for (const vision::Object& object : truth.objects) put(out, object);
}

data::Annotation get_annotation(ByteReader& in) {
  data::Annotation truth;
  truth.label = in.get<int>();
  truth.weight = in.get<float>();
  const auto count = in.get<size_t>();
  for (size_t i = 0; i < count; ++i) truth.objects.push_back(get_object(in));
  return truth;
}

}  // namespace

std::string batch_message(const Outputs& outputs, const data::Batch& batch) {
  ByteWriter out;
  out.put(outputs.size());
  for (const OutputView& output : outputs) {
    out.put_text(output.name);
    out.put_all(std::span<const int64_t>(output.shape));
    out.put_all(output.values);
    out.put(output.scores);
  }
  out.put(batch.size);
  out.put(batch.channels);
  out.put(batch.height);
  out.put(batch.width);
  out.put_all(std::span<const int64_t>(batch.indices));
  for (const data::Annotation& truth : batch.truth) put(out, truth);
  for (const data::Geometry& geometry : batch.geometry) out.put(geometry);
  return out.take();
}

ReceivedBatch::ReceivedBatch(std::string_view message) {
  ByteReader in(message);
  outputs_.resize(in.get<size_t>());
  for (OutputView& output : outputs_) {
    output.name = in.get_text();
    output.shape = in.get_all<int64_t>();
    values_.push_back(in.get_all<float>());
    output.values = values_.back();  // of the heap: it stays where it is
    output.scores = in.get<metrics::ScoreKind>();
  }
  batch_.size = in.get<int64_t>();
  batch_.channels = in.get<int>();
  batch_.height = in.get<int>();
  batch_.width = in.get<int>();
  batch_.indices = in.get_all<int64_t>();
  for (int64_t i = 0; i < batch_.size; ++i) batch_.truth.push_back(get_annotation(in));
  for (int64_t i = 0; i < batch_.size; ++i) batch_.geometry.push_back(in.get<data::Geometry>());
}

}  // namespace octet::tasks
