#include "report/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "report/format.h"

namespace octet::report {
namespace {

constexpr int kBarCells = 24;

double system_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// One that cannot move its cursor: a log in an editor.
bool is_dumb_terminal() {
  const char* const kind = std::getenv("TERM");
  return kind && std::string_view(kind) == "dumb";
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// The first `width` code points.
std::string truncate(const std::string& text, int width) {
  int columns = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && columns++ == width) return text.substr(0, i);
  return text;
}

}  // namespace

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      out_(options_.out ? *options_.out : std::cerr),
      silent_(options_.out == nullptr && !is_logged(LogLevel::kInfo)),
      terminal_(options_.terminal.value_or(::isatty(STDERR_FILENO) == 1 && !is_dumb_terminal())),
      done_(options_.start) {
  begin_ = now();
  last_ = terminal_ ? begin_ - 2 * options_.redraw_interval : begin_;  // a bar at once, a log line after an interval
}

Progress::~Progress() {
  clear();
}

double Progress::now() const {
  return options_.clock ? options_.clock() : system_clock();
}

std::string Progress::line(const std::string& metrics, double elapsed, bool final) const {
  std::string out = options_.label;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : "  ") + part; };
  const double fraction =
      options_.total > 0 ? std::clamp(static_cast<double>(done_) / static_cast<double>(options_.total), 0.0, 1.0) : 0;
  if (options_.total > 0 && !final) {
    if (terminal_) {
      const int full = static_cast<int>(fraction * kBarCells);
      add("[" + std::string(full, '#') + std::string(kBarCells - full, '.') + "]");
    }
    add(fixed(std::floor(fraction * 100), 0) + " %");
  }
  std::string count = std::to_string(done_);
  if (options_.total > 0 && !final) count += "/" + std::to_string(options_.total);
  add(count + " " + options_.unit);
  const double speed = elapsed > 0 ? static_cast<double>(done_ - options_.start) / elapsed : 0;
  if (final) add("in " + human_duration(elapsed));
  if (speed > 0) add(human_count(speed) + " " + options_.unit + "/s");
  if (options_.total > 0 && speed > 0) {
    const int64_t left = std::max<int64_t>(0, options_.total - done_);
    const std::string run = human_duration(static_cast<double>(left + later_) / speed + later_seconds_);
    if (!final)
      add("ETA " + human_duration(static_cast<double>(left) / speed) + (later_ > 0 ? " (run " + run + ")" : ""));
    if (final && later_ > 0) add("run ETA " + run);
  }
  if (!metrics.empty()) add(metrics);
  return printable_line(out);
}

void Progress::print_line(const std::string& text) {
  if (terminal_) {
    const int width = options_.width > 0 ? options_.width : terminal_width();
    out_ << "\r\x1b[K" << truncate(text, width - 1) << std::flush;
    drawn_ = true;
  } else {
    out_ << text << '\n' << std::flush;
  }
}

void Progress::update(int64_t done, const std::string& metrics) {
  done_ = done;
  const double time = now();
  if (silent_ || finished_ || time - last_ < (terminal_ ? options_.redraw_interval : options_.log_interval)) return;
  last_ = time;
  print_line(line(metrics, time - begin_, false));
}

void Progress::finish(const std::string& metrics, std::optional<double> seconds) {
  if (silent_ || finished_) return;
  clear();
  finished_ = true;
  out_ << line(metrics, seconds.value_or(now() - begin_), true) << '\n' << std::flush;
}

void Progress::set_later(int64_t items, double seconds) {
  later_ = items;
  later_seconds_ = seconds;
}

void Progress::clear() {
  if (drawn_) out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace octet::report
