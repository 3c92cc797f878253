// Numbers that cannot be meant.
#include <gmock/gmock.h>

#include "cli/network_files.h"

namespace {

using octet::test::NetworkFiles;
using octet::test::Outcome;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Numbers : public NetworkFiles {
 protected:
  Outcome quantize(const std::string& more) const {
    return octet("quantize -m m.onnx --images data -o q.onnx --force " + more);
  }
};

TEST_F(Numbers, MeansOfBytesAreRefusedAndOddDeviationsWarnedOf) {
  write_images();
  ASSERT_EQ(octet("models resnet20 -o m.onnx --input 3,8,8").code, 0);
  const Outcome bytes = quantize("--mean 123.675,116.28,103.53 --std 58.395,57.12,57.375");
  EXPECT_EQ(bytes.code, 2);
  EXPECT_THAT(bytes.err, AllOf(HasSubstr("0 .. 255"), HasSubstr("divide mean and std by 255 (0.485,0.456,0.406)")));
  EXPECT_THAT(quantize("--std 255").err, AllOf(HasSubstr("warning"), HasSubstr("0 .. 255")));
  EXPECT_THAT(quantize("--set data.mean=[127.5]").err, HasSubstr("'data.mean' is 127.5, of pixels of 0 .. 255"));
  for (const char* const usual : {"", "--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225", "--mean 0.5 --std 0.5",
                                  "--mean 0 --std 1", "--std 0.00392157"})
    EXPECT_THAT(quantize(usual).err, Not(HasSubstr("0 .. 255"))) << usual;
}

TEST_F(Numbers, FlagsHaveRanges) {
  write_images();
  ASSERT_EQ(octet("models resnet20 -o m.onnx --input 3,8,8").code, 0);
  for (const char* const wrong : {"--count -5", "--count 0", "--count 1.5", "--mean nan", "--mean inf", "--mean 1e9",
                                  "--std 0", "--std -1", "--std nan", "--std x", "--mean 1,,2"})
    EXPECT_EQ(quantize(wrong).code, 2) << wrong;
  EXPECT_EQ(octet("verify -e spec.yaml -m m.onnx --agreement nan").code, 2);
  EXPECT_EQ(quantize("--count 3").code, 0);
}

TEST_F(Numbers, ExportWantsQuantizersOrTheWord) {
  write_images();
  ASSERT_EQ(octet("models resnet20 -o m.onnx --input 3,8,8").code, 0);
  ASSERT_EQ(quantize("").code, 0);
  for (const char* const target : {"onnxruntime", "openvino", "tensorrt"}) {
    const std::string flags = std::string(" --force -o x.onnx --target ") + target;
    const Outcome refused = octet("export -m m.onnx" + flags);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("m.onnx: has no quantizers"), HasSubstr("--data_type fp32")));
    EXPECT_FALSE(exists("x.onnx"));
    EXPECT_EQ(octet("export -m m.onnx --data_type fp32" + flags).code, 0);
    EXPECT_EQ(octet("export -m q.onnx" + flags).code, 0);
    std::filesystem::remove(folder_ + "/x.onnx");
  }
}

}  // namespace
