#include "cli/rival_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"

namespace octet::cli {
namespace {

namespace fs = std::filesystem;

// OCTET_PEERS_PYTHON, else the environment that scripts/peers_venv.sh makes.
std::string peers_python() {
  if (const char* named = std::getenv("OCTET_PEERS_PYTHON"); named && *named) return named;
  fs::path cache;
  if (const char* c = std::getenv("OCTET_CACHE"); c && *c) cache = c;
  else if (const char* x = std::getenv("XDG_CACHE_HOME"); x && *x) cache = fs::path(x) / "octet";
  else if (const char* h = std::getenv("HOME"); h && *h) cache = fs::path(h) / ".cache" / "octet";
  return (cache / "venv-peers-1" / "bin" / "python").string();
}

// OCTET_RIVAL_SCRIPT, else bench/rival.py in the first folder above the program that has one.
fs::path rival_script() {
  if (const char* named = std::getenv("OCTET_RIVAL_SCRIPT"); named && *named) return named;
  std::error_code error;
  for (fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / "bench" / "rival.py", error)) return folder / "bench" / "rival.py";
  return "bench/rival.py";
}

}  // namespace

RivalProcess::RivalProcess(const Options& options) : peer_(options.peer) {
  const std::string python = peers_python(), script = rival_script().string();
  if (::access(python.c_str(), X_OK) != 0 || ::access(script.c_str(), R_OK) != 0)
    fail("--compare ", peer_, ": ", ::access(script.c_str(), R_OK) != 0 ? script : python,
         " is not there; run scripts/peers_venv.sh of the source tree, or leave --compare out");
  int to[2], from[2];
  OCTET_CHECK(::pipe2(to, O_CLOEXEC) == 0 && ::pipe2(from, O_CLOEXEC) == 0);
  const std::string threads = std::to_string(options.threads), batch = std::to_string(options.batch);
  std::signal(SIGPIPE, SIG_IGN);
  pid_ = ::fork();
  OCTET_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    ::execl(python.c_str(), python.c_str(), script.c_str(), peer_.c_str(), options.model.c_str(), threads.c_str(),
            batch.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  to_ = ::fdopen(to[1], "w");
  from_ = ::fdopen(from[0], "r");
  const std::string line = read_line();
  std::istringstream words(line);
  std::string state, name;
  words >> state >> name >> version_;
  if (state != "ready") fail(options.model, ": ", peer_, " refuses it: ", line.empty() ? "no answer" : line);
}

RivalProcess::~RivalProcess() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
}

std::string RivalProcess::read_line() {
  std::string line;
  for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) line += static_cast<char>(c);
  return line;
}

std::vector<double> RivalProcess::run(int count) {
  std::fprintf(to_, "run %d\n", count);
  std::fflush(to_);
  const nlohmann::json times = nlohmann::json::parse(read_line(), nullptr, false);
  if (!times.is_array() || times.size() != static_cast<size_t>(count)) fail(peer_, " stopped while it was measured");
  return times.get<std::vector<double>>();
}

}  // namespace octet::cli
