// Where the bytes of an output go: not every path names a file that may be replaced by another one.
#pragma once
#include <filesystem>
#include <string>

namespace octet {

struct Destination {
  enum Kind {
    kFile,    // a regular file, or nothing yet: written beside `path` and renamed over it
    kFolder,  // a folder that exists
    kDirect,  // a character device, a pipe, or an open descriptor of this process: written as it is
  };
  Kind kind = kFile;
  std::filesystem::path path;  // with all symbolic links of its last part followed
  bool exists = false;
  int descriptor = -1;  // of this process, where the path names one (/dev/stdout, /dev/fd/5)
};

// UserError for what nobody can have meant: a block device, a socket, links that go round in a circle.
Destination find_destination(const std::filesystem::path& path);

// Opens what is kDirect for writing. Waits for the reader of a pipe, as a shell does. UserError when it cannot be
// opened.
int open_directly(const std::filesystem::path& path, const Destination& destination);

// "a folder", "a pipe" ... for messages, from the mode of a stat.
std::string file_type_name(unsigned mode);

}  // namespace octet
