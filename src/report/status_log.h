// status.jsonl: what a run does, one JSON object a line, for programs that watch it. The fields date, time, status,
// verbosity, message, epoch and kpi are those of TAO's status.json; timestamp, kind and step are Octet's.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace octet::report {

enum class RunStatus { kStarted, kRunning, kSuccess, kFailure, kSkipped };

struct StatusRecord {
  std::string kind;  // "train", "epoch", "evaluate", "calibrate", ...
  RunStatus status = RunStatus::kRunning;
  std::string verbosity = "INFO";  // INFO | WARNING | ERROR
  std::string message;
  std::optional<int64_t> epoch, max_epoch, step;
  std::map<std::string, double> kpi;           // accuracies and losses; NaN and infinity become null
  std::map<std::string, std::string> details;  // file names, settings
};

// Appends; each record is one write to the file, so that a reader never sees half a line and a killed run loses none.
class StatusLog {
 public:
  explicit StatusLog(const std::filesystem::path& path);  // UserError when the file cannot be opened
  ~StatusLog();
  StatusLog(const StatusLog&) = delete;
  StatusLog& operator=(const StatusLog&) = delete;

  void write(const StatusRecord& record);  // UserError when it cannot be written (disk full)

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

// The line without its newline; `unix_time` in seconds, shown in UTC.
std::string status_line(const StatusRecord& record, double unix_time);

}  // namespace octet::report
