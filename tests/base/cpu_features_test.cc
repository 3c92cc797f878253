#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

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

TEST(CpuFeatures, NamesWithoutANumberGetFamilyAndModel) {
  const auto name_of = [](const std::string& text) {
    std::istringstream cpuinfo(text);
    return cpu_model_name(cpuinfo);
  };
  const std::string second = "\nprocessor\t: 1\nmodel name\t: Another\n";
  EXPECT_EQ(name_of("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n" + second),
            "AMD EPYC (family 25, model 17)");
  EXPECT_EQ(name_of("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9654 96-Core Processor\n" + second),
            "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(name_of("model name\t: Some CPU\n"), "Some CPU");
  EXPECT_EQ(name_of("processor\t: 0\n"), "unknown CPU");
}

TEST(CpuFeatures, CountsAtLeastOneCpu) {
  EXPECT_GE(available_cpus(), 1);
}

}  // namespace
}  // namespace octet
