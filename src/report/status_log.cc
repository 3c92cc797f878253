#include "report/status_log.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"

namespace octet::report {
namespace {

const char* status_name(RunStatus status) {
  switch (status) {
    case RunStatus::kStarted:
      return "STARTED";
    case RunStatus::kRunning:
      return "RUNNING";
    case RunStatus::kSuccess:
      return "SUCCESS";
    case RunStatus::kFailure:
      return "FAILURE";
    case RunStatus::kSkipped:
      return "SKIPPED";
  }
  return "";
}

std::string format_time(const std::tm& time, const char* format) {
  char buffer[64];
  return {buffer, std::strftime(buffer, sizeof(buffer), format, &time)};
}

}  // namespace

std::string status_line(const StatusRecord& record, double unix_time) {
  const std::time_t seconds = static_cast<std::time_t>(std::floor(unix_time));
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  nlohmann::ordered_json line;
  line["date"] = str(utc.tm_mon + 1, "/", utc.tm_mday, "/", utc.tm_year + 1900);
  line["time"] = format_time(utc, "%H:%M:%S");
  line["timestamp"] = unix_time;
  line["kind"] = record.kind;
  line["status"] = status_name(record.status);
  line["verbosity"] = record.verbosity;
  line["message"] = record.message;
  if (record.epoch) line["epoch"] = *record.epoch;
  if (record.max_epoch) line["max_epoch"] = *record.max_epoch;
  if (record.step) line["step"] = *record.step;
  if (!record.kpi.empty()) line["kpi"] = record.kpi;
  if (!record.details.empty()) line["details"] = record.details;
  // Names of files may hold any bytes; a line that JSON readers refuse would be worse than a replaced character.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

StatusLog::StatusLog(const std::filesystem::path& path)
    : path_(path), file_(open_for_appending(path, "the status log")) {}

StatusLog::~StatusLog() {
  ::close(file_);
}

void StatusLog::write(const StatusRecord& record) {
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::string line =
      status_line(record, static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec / 1000) * 1e-6) + '\n';
  ssize_t written;
  do written = ::write(file_, line.data(), line.size());
  while (written < 0 && errno == EINTR);
  if (written < 0) fail(path_.string(), ": the status log cannot be written: ", std::strerror(errno));
  require(static_cast<size_t>(written) == line.size(), path_.string(),
          ": the status log cannot be written: no space left");
}

}  // namespace octet::report
