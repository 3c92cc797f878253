// write_small_engine FILE: the engine file of the tests' small plan.
#include "engine/engine_file.h"
#include "engine/engine_test_util.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  octet::engine::save_engine(octet::testing::small_plan(), argv[1]);
}
