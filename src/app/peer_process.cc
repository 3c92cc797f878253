#include "app/peer_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace octet::app {
namespace {

namespace fs = std::filesystem;

// Absolute paths only: what a relative one names depends on the folder that the program happens to be started in.
fs::path folder_named_by(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value == '/' ? fs::path(value) : fs::path();
}

// OCTET_PEERS_PYTHON, else that of the environment that scripts/peers_venv.sh makes; empty where nothing names a place.
fs::path peers_python() {
  if (const char* named = std::getenv("OCTET_PEERS_PYTHON"); named && *named) return named;
  fs::path cache = folder_named_by("OCTET_CACHE");
  if (cache.empty() && !folder_named_by("XDG_CACHE_HOME").empty()) cache = folder_named_by("XDG_CACHE_HOME") / "octet";
  if (cache.empty() && !folder_named_by("HOME").empty()) cache = folder_named_by("HOME") / ".cache" / "octet";
  return cache.empty() ? cache : cache / "venv-peers-1" / "bin" / "python";
}

// OCTET_RIVAL_SCRIPT, else bench/rival.py of the source tree that this program was built from, while it lies where it
// was built: elsewhere, also on another machine, that path may be anybody's.
fs::path rival_script() {
  if (const char* named = std::getenv("OCTET_RIVAL_SCRIPT"); named && *named) return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error), build = fs::canonical(OCTET_BUILD_FOLDER, error);
  if (error || !program.string().starts_with(build.string() + "/")) return {};
  return fs::path(OCTET_SOURCE_FOLDER) / "bench" / "rival.py";
}

// `flag`: "--compare onnxruntime".
void require_installed(const std::string& flag, const fs::path& file, const std::string& what, const char* variable,
                       int access) {
  if (!file.empty() && !file.is_absolute())
    fail(flag, ": ", variable, " must be an absolute path, not ", file.string());
  if (file.empty() || ::access(file.c_str(), access) != 0)
    fail(flag, ": ", what, file.empty() ? "" : ", " + file.string() + ",",
         " is not installed; run scripts/peers_venv.sh of ",
         "the source tree and use the octet that was built there, name it with ", variable, ", or leave the flag out");
}

}  // namespace

PeerProcess::PeerProcess(const Options& options) : peer_(options.peer) {
  const fs::path python = peers_python(), script = rival_script();
  const std::string flag = options.flag + " " + peer_;
  require_installed(flag, script, "the program that runs it", "OCTET_RIVAL_SCRIPT", R_OK);
  require_installed(flag, python, "its Python", "OCTET_PEERS_PYTHON", X_OK);
  start(options, python.string(), script.string());
  const std::string line = read_line();
  const nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
  if (answer.is_object() && answer.contains("version")) {
    version_ = answer.value("version", "");
    detail_ = answer.value("detail", "");
    return;
  }
  stop();
  fail(options.model, ": ", peer_, " refuses it: ",
       answer.is_object() ? answer.value("error", "no reason given")
       : line.empty()     ? "no answer"
                          : line);
}

PeerProcess::~PeerProcess() {
  stop();
}

void PeerProcess::start(const Options& options, const std::string& python, const std::string& script) {
  const std::vector<std::string> words = {
      python,      script, peer_, options.model, std::to_string(options.threads), std::to_string(options.batch),
      options.mode};
  // Built before the fork: a child of a program with threads must not allocate. The first of two settings counts.
  std::vector<char*> arguments, environment;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& setting : options.environment) environment.push_back(const_cast<char*>(setting.c_str()));
  for (char** setting = environ; *setting; ++setting) {
    const std::string_view name = std::string_view(*setting).substr(0, std::string_view(*setting).find('=') + 1);
    const auto same = [&](const std::string& s) { return s.rfind(name, 0) == 0; };
    if (std::none_of(options.environment.begin(), options.environment.end(), same)) environment.push_back(*setting);
  }
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  int to[2], from[2];
  OCTET_CHECK(::pipe2(to, O_CLOEXEC) == 0 && ::pipe2(from, O_CLOEXEC) == 0);
  std::signal(SIGPIPE, SIG_IGN);
  pid_ = ::fork();
  OCTET_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    ::execve(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  to_ = ::fdopen(to[1], "w");
  from_ = ::fdopen(from[0], "r");
}

// The child ends when its input does.
void PeerProcess::stop() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
  to_ = from_ = nullptr;
  pid_ = -1;
}

std::string PeerProcess::read_line() {
  std::string line;
  for (int c; (c = std::fgetc(from_)) != EOF && c != '\n';) line += static_cast<char>(c);
  return line;
}

void PeerProcess::send(const std::string& line, std::span<const float> values) {
  std::fputs((line + "\n").c_str(), to_);
  std::fwrite(values.data(), sizeof(float), values.size(), to_);
  std::fflush(to_);
}

void PeerProcess::read(std::span<float> values) {
  if (std::fread(values.data(), sizeof(float), values.size(), from_) != values.size())
    fail(peer_, " stopped while it ran the model");
}

}  // namespace octet::app
