// Shapes that a user says for sizes that the file leaves open.
#include "ir/input_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft_model.h"
#include "onnx/chosen_sizes.h"
#include "onnx/proto.h"

namespace octet::onnx {
namespace {

using ir::Graph;
using ir::kDynamic;
using ir::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

Graph import_with(const Draft& draft, const std::vector<std::string>& shapes) {
  return import_bytes(serialize(draft), {}, {.input_shapes = ir::parse_input_shapes(shapes)});
}

std::string error_with(const Draft& draft, const std::vector<std::string>& shapes) {
  try {
    import_with(draft, shapes);
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ExitCode::kUsage);
    return e.what();
  }
  return "";
}

TEST(InputShapeText, IsRead) {
  const auto read = [](const char* text) { return ir::parse_input_shape(text); };
  EXPECT_EQ(read("1x3x320x320").shape, (Shape{1, 3, 320, 320}));
  EXPECT_EQ(read("1,3,320,320").shape, (Shape{1, 3, 320, 320}));
  EXPECT_EQ(read("1x3x320x320").name, "");
  EXPECT_EQ(read("a:0:Nx3x?x-1").name, "a:0");
  EXPECT_EQ(read("a:0:Nx3x?x-1").shape, (Shape{kDynamic, 3, kDynamic, kDynamic}));
  EXPECT_EQ(read("x:7").shape, Shape{7});
  EXPECT_EQ(ir::input_shape_text(read("a:0:?x3x7x7")), "a:0:Nx3x7x7");
  for (const char* wrong : {"", "x:", "1x", "x3", "1xx3", "0x3", "-2x3", "1x3,4", "1x65537", "1x3 x4", "a:1x3:b", "1.5",
                            "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"})
    EXPECT_THROW(read(wrong), UserError) << wrong;
}

// [N, C, H / 2 * W / 2, 2, 2]: no constant Reshape does that for every H and W.
Draft two_open_sizes() {
  Draft d(13, {kDynamic, 3, kDynamic, kDynamic});
  for (const auto& [name, value] : {std::pair("i0", 0), std::pair("i1", 1), std::pair("i2", 2), std::pair("i3", 3)})
    d.constant(name, ints({value}));
  d.constant("two", ints({2})).node("Shape", {"x"}, {"shape"});
  for (const char* i : {"0", "1", "2", "3"}) d.node("Gather", {"shape", str("i", i)}, {str("s", i)});
  d.node("Mul", {"s2", "s1"}, {"h"}).node("Mul", {"s3", "s1"}, {"w"});
  d.node("Concat", {"s0", "h", "w", "i1"}, {"target"}, {{"axis", int64_t{0}}});
  d.node("Concat", {"s0", "s1", "s2", "s3", "s1", "i1"}, {"tiles"}, {{"axis", int64_t{0}}});
  d.node("Unsqueeze", {"x", "tile_axes"}, {"u"}).constant("tile_axes", ints({4, 5}));
  d.node("Expand", {"u", "tiles"}, {"e"}).node("Relu", {"e"}, {"r"}).node("Reshape", {"r", "target"}, {"y"});
  return d;
}

TEST(InputShapes, MakeConstantsOfWhatIsComputedFromThem) {
  const Draft d = two_open_sizes();
  EXPECT_THAT(d.error(), AllOf(HasSubstr("node 'n_y' (Reshape)"), HasSubstr("no constant can stand for it"),
                               HasSubstr("--input-shape Nx3x224x224")));
  const Graph free = import_with(d, {"Nx3x6x8"});  // a free batch stays free
  EXPECT_EQ(*free.inputs()[0]->type.shape, (Shape{kDynamic, 3, 6, 8}));
  EXPECT_EQ(*free.outputs()[0]->type.shape, (Shape{kDynamic, 18, 24, 1}));
  const Graph fixed = import_with(d, {"x:2,3,6,8"});
  EXPECT_EQ(*fixed.outputs()[0]->type.shape, (Shape{2, 18, 24, 1}));
  EXPECT_EQ(op_names(fixed), (std::vector<std::string>{"Unsqueeze", "Expand", "Relu", "Reshape"}));
}

TEST(InputShapes, ThatDoNotFitAreRefused) {
  Draft d(13, {kDynamic, 3, kDynamic, 8});
  d.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(error_with(d, {"1x4x6x8"}),
              AllOf(HasSubstr("'x' is [batch, 3, x_dim2, 8]"), HasSubstr("wants 4 for its 3")));
  EXPECT_THAT(error_with(d, {"1x3x6"}), AllOf(HasSubstr("of rank 4"), HasSubstr("has 3 sizes")));
  EXPECT_THAT(error_with(d, {"z:1x3x6x8"}), AllOf(HasSubstr("has no input 'z'"), HasSubstr("its inputs are 'x'")));
  EXPECT_THAT(error_with(d, {"1x3x6x8", "x:1x3x7x8"}), HasSubstr("gets two shapes"));
  EXPECT_THAT(error_with(d, {"1x3x6x8", "x:1x3x7x8"}), HasSubstr("octet compile"));
  EXPECT_EQ(*import_with(d, {"4x3x?x8"}).inputs()[0]->type.shape, (Shape{4, 3, kDynamic, 8}));
  Draft two(13, {kDynamic, 3, kDynamic, 8});
  two.inputs.push_back({"z", {ir::DataType::kFloat32, Shape{kDynamic, 3, 1, 8}}});
  two.node("Add", {"x", "z"}, {"y"});
  EXPECT_THAT(error_with(two, {"1x3x6x8"}), AllOf(HasSubstr("has 2 inputs ('x', 'z')"), HasSubstr("NAME:1x3x6x8")));
  const Graph g = import_with(two, {"x:2x3x6x8"});
  EXPECT_EQ(*g.inputs()[0]->type.shape, (Shape{2, 3, 6, 8}));
  EXPECT_EQ(*g.inputs()[1]->type.shape, (Shape{2, 3, 1, 8}));  // its batch has the same symbol
}

// Paddle's exporter calls all sizes that it does not know "?": they are sizes of their own.
TEST(InputShapes, SizesWithoutANameAreNotOne) {
  for (const char* name : {"?", "", "-1", "None", "side"}) {
    const bool named = std::string(name) == "side";
    proto::ValueInfo input;
    input.name = "x", input.is_tensor = true;
    input.shape = {{.value = 1, .parameter = {}}, {.value = -1, .parameter = name}, {.value = -1, .parameter = name}};
    const std::vector<ir::InputShape> shapes = ir::parse_input_shapes({"1x48x192"});
    if (named) {
      EXPECT_THROW(ChosenSizes({&input}, shapes), UserError);
    } else {
      const auto found = ChosenSizes({&input}, shapes).shape(input);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(found->at(1).value, 48) << name;
      EXPECT_EQ(found->at(2).value, 192) << name;
    }
  }
}

// What example sizes do not fit, as of a network that is made for one height, is told with what to do.
TEST(InputShapes, AreAdvisedWhereExampleSizesDoNotFit) {
  Draft d(13, {kDynamic, 3, kDynamic, kDynamic});
  d.constant("zero", ints({0})).constant("rest", ints({3 * 48}));
  d.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "zero"}, {"batch"});
  d.constant("three", ints({3})).node("Gather", {"shape", "three"}, {"width"});
  d.node("Concat", {"batch", "rest", "width"}, {"target"}, {{"axis", int64_t{0}}});
  d.node("Reshape", {"x", "target"}, {"y"});
  EXPECT_THAT(d.error(),
              AllOf(HasSubstr("node 'n_y' (Reshape)"), HasSubstr("example sizes"), HasSubstr("--input-shape")));
  EXPECT_EQ(*import_with(d, {"1x3x48x20"}).outputs()[0]->type.shape, (Shape{1, 144, 20}));
}

// A batch that the file has is changed, where it may be, by who imports (app/network_file.h).
TEST(InputShapes, LeaveAFixedBatchToTheirReader) {
  Draft d(13, {1, 3, kDynamic, 8});
  d.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(*import_with(d, {"4x3x6x8"}).inputs()[0]->type.shape, (Shape{1, 3, 6, 8}));
}

}  // namespace
}  // namespace octet::onnx
