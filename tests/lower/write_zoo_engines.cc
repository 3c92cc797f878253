// write_zoo_engines FOLDER: small networks of the zoo as engine files, FOLDER/NAME.octet.
#include "engine/engine_file.h"
#include "lower/quantized_zoo.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const char* arch : {"resnet20", "resnet18", "mobilenet_v2", "efficientnet_b0"})
    octet::engine::save_engine(*octet::testing::compile(octet::testing::quantized(arch, 32).graph),
                               std::string(argv[1]) + "/" + arch + ".octet");
}
