// How several workers bring their gradients together.
#pragma once
#include <cstdint>
#include <span>

#include "schema/schema.h"

namespace octet::train {

// The type in which gradients travel.
enum class Compression { kNone, kFp16, kBf16 };
std::span<const schema::EnumName<Compression>> enum_names(Compression);

struct ReductionOptions {
  double bucket_mb = 25;
  Compression compression = Compression::kNone;
  int64_t bucket_bytes() const { return static_cast<int64_t>(bucket_mb * (1 << 20)); }
};
void describe(schema::Section& s, ReductionOptions& reduction);

}  // namespace octet::train
