// Progress of long work on standard error: a bar that redraws itself on a terminal, plain lines now and then in a log.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

namespace octet::report {

struct ProgressOptions {
  std::string label;  // "epoch 3/30"
  int64_t total = 0;  // items; 0: unknown, then there is neither bar nor remaining time
  int64_t start = 0;  // items that were done before (a resumed run): they do not count for the speed
  std::string unit = "images";
  double log_interval = 15;      // seconds between two lines in a log
  double redraw_interval = 0.1;  // seconds between two drawings on a terminal
  // For tests and for other outputs than standard error, which has nothing of this where messages are not shown
  // (--quiet):
  std::ostream* out = nullptr;    // null: standard error
  std::optional<bool> terminal;   // unset: whether standard error is one
  int width = 0;                  // columns; 0: ask the terminal
  std::function<double()> clock;  // seconds, monotonic; unset: the system's
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // clears an unfinished bar, so that an error message starts on a clean line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` items of the total; `metrics` is shown at the end ("loss 0.31"). Cheap enough to call for every batch.
  void update(int64_t done, const std::string& metrics = {});
  // The last line, which stays: what was done, in which time, at which speed. `seconds`: that it took, where that is
  // not the whole time since the beginning.
  void finish(const std::string& metrics = {}, std::optional<double> seconds = {});
  // What follows this bar in the same run: so many items at the same speed, and so many seconds of other work. With it
  // the time to the end of the run is shown, too.
  void set_later(int64_t items, double seconds);
  // Takes the bar away before something else is printed; the next update draws it again.
  void clear();

 private:
  double now() const;
  std::string line(const std::string& metrics, double elapsed, bool final) const;
  void print_line(const std::string& text);

  ProgressOptions options_;
  std::ostream& out_;
  bool silent_, terminal_, drawn_ = false, finished_ = false;
  int64_t done_ = 0, later_ = 0;
  double begin_ = 0, last_ = 0, later_seconds_ = 0;
};

}  // namespace octet::report
