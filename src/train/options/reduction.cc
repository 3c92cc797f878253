#include "train/options/reduction.h"

namespace octet::train {

OCTET_ENUM_NAMES(Compression, {Compression::kNone, "none"}, {Compression::kFp16, "fp16"}, {Compression::kBf16, "bf16"})

void describe(schema::Section& s, ReductionOptions& reduction) {
  s.field("bucket_mb", reduction.bucket_mb)
      .range(0.001, 10'000)
      .unit("MiB")
      .known_elsewhere_as({"bucket_cap_mb", "message_size"})
      .help("Gradients that travel together, while backward computes the next ones.");
  s.field("compression", reduction.compression)
      .known_elsewhere_as({"comm_hook", "fp16_allreduce"})
      .help(
          "Type in which gradients travel: none is fp32; bf16 and fp16 halve the traffic and round each to 8 or 11 "
          "bits.");
}

}  // namespace octet::train
