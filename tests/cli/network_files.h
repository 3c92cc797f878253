// Small networks, images and a spec as files in the folder of a test, for commands that feed images to networks.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "cli/program_fixture.h"
#include "ir/graph.h"
#include "ir/infer.h"
#include "onnx/export.h"

namespace octet::test {

inline ir::Tensor noise(const ir::Shape& shape, uint32_t seed, float size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, size);
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = normal(random);
  return ir::Tensor::of<float>(shape, values);
}

class NetworkFiles : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    if (!can_train()) GTEST_SKIP() << "this build has no LibTorch";
  }

  // data/a, data/b, data/c: six pictures each in which red, green, blue is the brightest; spec.yaml reads them.
  void write_images(int side = 8) {
    std::mt19937 random(3);
    for (int label = 0; label < 3; ++label) {
      const std::string folder = folder_ + "/data/" + std::string(1, static_cast<char>('a' + label));
      std::filesystem::create_directories(folder);
      for (int i = 0; i < 6; ++i) {
        std::string picture = "P6 " + std::to_string(side) + " " + std::to_string(side) + " 255\n";
        for (int p = 0; p < side * side; ++p)
          for (int c = 0; c < 3; ++c) picture += static_cast<char>(random() % 100 + (c == label ? 150 : 0));
        std::ofstream(folder + "/" + std::to_string(i) + ".ppm", std::ios::binary) << picture;
      }
    }
    const std::string size = std::to_string(side);
    write("spec.yaml", "model: {arch: resnet20, num_classes: 3, input: [3, " + size + ", " + size +
                           "]}\n"
                           "data:\n  train: {format: image_folder, path: " +
                           folder_ +
                           "/data}\n"
                           "  val: {format: image_folder, path: " +
                           folder_ +
                           "/data}\n"
                           "train: {epochs: 30, batch_size_per_gpu: 6, precision: fp32, threads: 1, "
                           "optimizer: {lr: 0.1, weight_decay: 0}}\n");
  }

  void save(ir::Graph graph, const std::string& name) const {
    ir::infer_shapes(graph);
    onnx::export_model(graph, folder_ + "/" + name);
  }

  void expect(int code, const std::string& arguments) const {
    const Outcome outcome = octet(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.out << outcome.err;
  }
};

}  // namespace octet::test
