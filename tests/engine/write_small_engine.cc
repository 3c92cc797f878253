// write_small_engine FILE: the engine file of the tests' small plan.
#include "engine/engine_file.h"
#include "engine/engine_test_util.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  octet::engine::Plan plan = octet::testing::small_plan();
  plan.metadata = {
      {"octet.task", "classification"},
      {"octet.classes", R"(["cat", "dog"])"},
      {"octet.input.mean", "[0.25, 0.5, 0.75]"},
      {"octet.input.std", "[0.5]"},
      {"octet.input.color_order", "bgr"},
      {"octet.input.layout", "NCHW"},
      {"octet.input.resize", R"({"mode": "center_crop", "shorter_side": 8, "interpolation": "antialias"})"},
      {"author", "somebody"}};
  octet::engine::save_engine(plan, argv[1]);
}
