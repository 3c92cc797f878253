#include "cli/other_program.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/standard_output.h"

namespace octet::cli {
namespace {

// Of this program; empty where the system does not tell.
std::filesystem::path own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

}  // namespace

bool has_program(const std::string& name) {
  return ::access((own_path().parent_path() / name).c_str(), X_OK) == 0;
}

void become_program(const std::string& name, const std::vector<std::string>& arguments) {
  const std::filesystem::path own = own_path();
  if (own.empty()) fail("/proc/self/exe cannot be read, so ", name, " is not found");
  std::string path = (own.parent_path() / name).string();
  std::vector<std::string> all{path};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::cout.flush();
  restore_standard_output();
  ::execv(path.c_str(), pointers.data());
  const int reason = errno;
  const std::string command = arguments.empty() ? name : arguments[0];
  if (reason == ENOENT)
    fail("'octet ", command, "' needs the program ", name, ", which is not beside ", own.string(),
         ": install the package octet-training, or build with -DOCTET_TRAIN=ON");
  fail(path, ": cannot be started: ", std::strerror(reason), "; 'octet ", command, "' is its work");
}

int run_octet(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"octet"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::cout.flush();
  pid_t child = 0;
  if (const int reason = ::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ))
    fail("octet ", arguments.empty() ? "" : arguments[0], " cannot be started: ", std::strerror(reason));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("octet ", arguments.empty() ? "" : arguments[0], " is lost: ", std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace octet::cli
