// Tensors of ONNX files: typed fields, raw and external data.
#include "onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "base/files.h"
#include "draft_model.h"

namespace octet::onnx {
namespace {

namespace fs = std::filesystem;
using ir::Graph;
using ir::Tensor;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A model "y = x + t" whose TensorProto is written by `fill`.
template <typename F>
std::string model_with_tensor(F fill) {
  std::string bytes;
  protozero::pbf_writer model(bytes);
  model.add_int64(1, 8);
  {
    protozero::pbf_writer graph(model, 7);
    {
      protozero::pbf_writer node(graph, 1);
      node.add_string(1, "t");
      node.add_string(2, "y");
      node.add_string(4, "Identity");
    }
    {
      protozero::pbf_writer tensor(graph, 5);
      tensor.add_string(8, "t");
      fill(tensor);
    }
    protozero::pbf_writer output(graph, 12);
    output.add_string(1, "y");
  }
  protozero::pbf_writer opset(model, 8);
  opset.add_int64(2, 13);
  return bytes;
}

template <typename F>
Tensor tensor_read(F fill) {
  return *import_bytes(model_with_tensor(fill), {}).outputs()[0]->constant;
}

TEST(Tensors, TypedFields) {
  using Writer = protozero::pbf_writer;
  const std::vector<float> f = {1.5f, -2};
  const std::vector<int32_t> i = {1, -2};
  const std::vector<double> d = {0.1, -3};
  const std::vector<int64_t> l = {1ll << 40, -1};
  const auto fill = [](int type, auto more) {
    return [=](Writer& w) {
      w.add_int64(1, 2);
      w.add_int32(2, type);
      more(w);
    };
  };
  EXPECT_EQ(tensor_read(fill(1, [&](Writer& w) { w.add_packed_float(4, f.begin(), f.end()); })).to_floats(), f);
  EXPECT_EQ(tensor_read(fill(1,
                             [&](Writer& w) {
                               w.add_float(4, 1.5f);
                               w.add_float(4, -2);
                             }))
                .to_floats(),
            f);
  EXPECT_EQ(tensor_read(fill(7, [&](Writer& w) { w.add_packed_int64(7, l.begin(), l.end()); })).to_ints(), l);
  EXPECT_EQ(tensor_read(fill(11, [&](Writer& w) { w.add_packed_double(10, d.begin(), d.end()); })).to_floats(),
            (std::vector<float>{0.1f, -3}));
  for (const int type : {3, 6})
    EXPECT_EQ(tensor_read(fill(type, [&](Writer& w) { w.add_packed_int32(5, i.begin(), i.end()); })).to_ints(),
              (std::vector<int64_t>{1, -2}));
  const std::vector<int32_t> half = {0x3c00, 0xc000}, brain = {0x3f80, 0xc000}, flags = {7, 0}, bytes = {200, 3};
  EXPECT_EQ(tensor_read(fill(10, [&](Writer& w) { w.add_packed_int32(5, half.begin(), half.end()); })).to_floats(),
            (std::vector<float>{1, -2}));
  EXPECT_EQ(tensor_read(fill(16, [&](Writer& w) { w.add_packed_int32(5, brain.begin(), brain.end()); })).to_floats(),
            (std::vector<float>{1, -2}));
  EXPECT_EQ(tensor_read(fill(2, [&](Writer& w) { w.add_packed_int32(5, bytes.begin(), bytes.end()); })).to_ints(),
            (std::vector<int64_t>{200, 3}));
  EXPECT_EQ(tensor_read(fill(9, [&](Writer& w) { w.add_packed_int32(5, flags.begin(), flags.end()); })).to_ints(),
            (std::vector<int64_t>{1, 0}));
}

TEST(Tensors, WrongLengthsAndTypes) {
  using Writer = protozero::pbf_writer;
  const auto error = [](auto fill) -> std::string {
    try {
      tensor_read(fill);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, 2), w.add_int32(2, 1), w.add_bytes(9, "1234567"); }),
              AllOf(HasSubstr("'t' float32[2]"), HasSubstr("7 bytes, expected 8")));
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, 2), w.add_int32(2, 1), w.add_float(4, 1); }),
              HasSubstr("1 elements, expected 2"));
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, 1ll << 62), w.add_int64(1, 1ll << 62), w.add_int32(2, 1); }),
              HasSubstr("impossible shape"));
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, 1ll << 35), w.add_int32(2, 1); }), HasSubstr("0 bytes"));
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, -2), w.add_int32(2, 1); }), HasSubstr("impossible shape"));
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, 1), w.add_int32(2, 8), w.add_bytes(6, "s"); }), HasSubstr("string"));
  EXPECT_THAT(error([](Writer& w) { w.add_int64(1, 1), w.add_int32(2, 22), w.add_bytes(9, "s"); }), HasSubstr("int4"));
}

TEST(Tensors, ExternalDataStaysInTheFolder) {
  const fs::path top = fs::path(::testing::TempDir()) / "octet_onnx_external_test", folder = top / "model";
  fs::create_directories(folder);
  const float values[] = {1, 2, 3};
  const std::string_view bytes(reinterpret_cast<const char*>(values), sizeof values);
  write_file_atomically(folder / "w.bin", bytes);
  write_file_atomically(top / "secret.bin", bytes);
  fs::create_symlink(top / "secret.bin", folder / "link.bin");
  const auto read = [&](const std::string& location, const std::string& offset,
                        const std::string& length) -> std::string {
    const std::string model = model_with_tensor([&](protozero::pbf_writer& w) {
      w.add_int64(1, 2);
      w.add_int32(2, 1);
      w.add_int32(14, 1);
      for (const auto& [key, value] :
           {std::pair<std::string, std::string>{"location", location}, {"offset", offset}, {"length", length}}) {
        if (value.empty()) continue;
        protozero::pbf_writer entry(w, 13);
        entry.add_string(1, key);
        entry.add_string(2, value);
      }
    });
    try {
      const Graph graph = import_bytes(model, folder);
      const std::vector<float> v = graph.outputs()[0]->constant->to_floats();
      return str(v[0], " ", v[1]);
    } catch (const UserError& e) {
      return e.what();
    }
  };
  EXPECT_EQ(read("w.bin", "4", "8"), "2 3");
  EXPECT_EQ(read("w.bin", "4", ""), "2 3");
  EXPECT_EQ(read("./w.bin", "", "8"), "1 2");
  EXPECT_THAT(read("w.bin", "8", "8"), HasSubstr("has only 12 bytes"));
  EXPECT_THAT(read("w.bin", "99999999999999999999", "8"), HasSubstr("is no number"));
  EXPECT_THAT(read("w.bin", "18446744073709551615", "8"), HasSubstr("has only 12 bytes"));
  EXPECT_THAT(read("w.bin", "-4", "8"), HasSubstr("is no number"));
  EXPECT_THAT(read("w.bin", "", ""), HasSubstr("12 bytes, expected 8"));
  for (const std::string& bad : {std::string("../secret.bin"), (top / "secret.bin").string(), std::string("link.bin"),
                                 std::string("a/../../secret.bin"), std::string()})
    EXPECT_THAT(read(bad, "", "8"), HasSubstr("outside of the model's folder")) << bad;
  EXPECT_THAT(read("missing.bin", "", "8"), HasSubstr("missing.bin"));
  fs::remove_all(top);
}

}  // namespace
}  // namespace octet::onnx
