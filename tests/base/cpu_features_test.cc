#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"

namespace octet {
namespace {

TEST(CpuFeatures, ScalarIsAlwaysThereAndNamesRoundTrip) {
  EXPECT_TRUE(isa_supported(Isa::kScalar));
  for (Isa isa : supported_isas()) EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  EXPECT_THROW(parse_isa("avx9"), UserError);
}

TEST(CpuFeatures, EnvironmentForcesAnIsa) {
  ::setenv("OCTET_ISA", "scalar", 1);
  EXPECT_EQ(default_isa(), Isa::kScalar);
  ::setenv("OCTET_ISA", "nonsense", 1);
  EXPECT_THROW(default_isa(), UserError);
  ::unsetenv("OCTET_ISA");
  EXPECT_EQ(default_isa(), supported_isas().back());
}

TEST(CpuFeatures, CountsAtLeastOneCpu) { EXPECT_GE(available_cpus(), 1); }

}  // namespace
}  // namespace octet
