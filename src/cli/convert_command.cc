// octet convert: files of other tools to Octet's, and back.
#include "cli/commands.h"

namespace octet::cli {

Command convert_command() {
  return {.name = "convert",
          .summary = "Convert files of other tools to Octet's, and back",
          .kinds = {convert_spec_command(), convert_dataset_command(), convert_images_command()}};
}

}  // namespace octet::cli
