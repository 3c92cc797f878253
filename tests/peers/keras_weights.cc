// Reads weight files as a training does, and writes each beside it as safetensors: FILE.safetensors.
#include <iostream>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/safetensors.h"
#include "weights/weight_file.h"

int main(int argc, char** argv) {
  using namespace octet;
  try {
    for (int i = 1; i < argc; ++i)
      write_file_atomically(str(argv[i], ".safetensors"),
                            checkpoint::safetensors_bytes(weights::read_weights(argv[i])));
  } catch (const UserError& e) {
    std::cerr << e.what() << "\n";
    return 1;
  }
  return 0;
}
