#include "report/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/records.h"

namespace octet::report {
namespace {

// Field numbers of tensorflow.Event, Summary, Summary.Value, Summary.Image and HistogramProto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5 };
enum ImageField { kImageHeight = 1, kImageWidth = 2, kColorspace = 3, kEncodedImage = 4 };
enum HistogramField { kMin = 1, kMax = 2, kCount = 3, kSum = 4, kSumOfSquares = 5, kBucketLimit = 6, kBucket = 7 };

double wall_time() {
  std::timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string host_name() {
  char name[256] = "localhost";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

// TensorFlow's own limits: 0, +-1e-12 * 1.1^k, so that small weights and large activations are told apart alike.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    std::vector<double> all;
    for (auto it = positive.rbegin(); it != positive.rend(); ++it) all.push_back(-*it);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    all.push_back(1e308);
    return all;
  }();
  return limits;
}

std::string encode_histogram(std::span<const float> values) {
  const std::vector<double>& limits = bucket_limits();
  std::vector<double> counts(limits.size(), 0);
  double low = HUGE_VAL, high = -HUGE_VAL, count = 0, sum = 0, squares = 0;
  for (float f : values) {
    if (!std::isfinite(f)) continue;
    const double v = f;
    low = std::min(low, v);
    high = std::max(high, v);
    ++count;
    sum += v;
    squares += v * v;
    counts[static_cast<size_t>(std::upper_bound(limits.begin(), limits.end(), v) - limits.begin())]++;
  }
  if (count == 0) low = high = 0;
  // Only the buckets in use, with one empty one before them: readers take its limit as the first bucket's lower edge.
  const auto used = [](double c) { return c > 0; };
  const auto first_used = std::find_if(counts.begin(), counts.end(), used);
  size_t first = static_cast<size_t>(first_used - counts.begin());
  size_t end = static_cast<size_t>(std::find_if(counts.rbegin(), counts.rend(), used).base() - counts.begin());
  if (first > 0 && first < end) --first;
  if (first >= end) first = end = 0;

  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_double(kMin, low);
  writer.add_double(kMax, high);
  writer.add_double(kCount, count);
  writer.add_double(kSum, sum);
  writer.add_double(kSumOfSquares, squares);
  writer.add_packed_double(kBucketLimit, limits.begin() + static_cast<ptrdiff_t>(first),
                           limits.begin() + static_cast<ptrdiff_t>(end));
  writer.add_packed_double(kBucket, counts.begin() + static_cast<ptrdiff_t>(first),
                           counts.begin() + static_cast<ptrdiff_t>(end));
  return bytes;
}

template <typename WriteValue>
std::string encode_summary_event(const std::string& tag, int64_t step, WriteValue&& write_value) {
  std::string event;
  protozero::pbf_writer writer(event);
  writer.add_double(kWallTime, wall_time());
  writer.add_int64(kStep, step);
  protozero::pbf_writer summary(writer, kSummary);
  protozero::pbf_writer value(summary, kValue);
  value.add_string(kTag, tag);
  write_value(value);
  value.commit();
  summary.commit();
  return event;
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& directory) {
  static std::atomic<int> counter{0};
  make_results_directory(directory);
  path_ = directory / str("events.out.tfevents.", static_cast<int64_t>(wall_time()), ".", host_name(), ".", ::getpid(),
                          ".", counter++);
  file_ = open_for_appending(path_, "the event file");
  std::string event;
  protozero::pbf_writer writer(event);
  writer.add_double(kWallTime, wall_time());
  writer.add_string(kFileVersion, "brain.Event:2");
  write_event(event);
}

EventWriter::~EventWriter() {
  if (file_ >= 0) ::close(file_);
}

void EventWriter::write_event(std::string_view event) {
  const std::string record = framed_record(event);
  for (size_t done = 0; done < record.size();) {
    const ssize_t n = ::write(file_, record.data() + done, record.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path_.string(), ": the event file cannot be written: ", std::strerror(n < 0 ? errno : ENOSPC));
    done += static_cast<size_t>(n);
  }
}

void EventWriter::scalar(const std::string& tag, int64_t step, double value) {
  write_event(encode_summary_event(
      tag, step, [&](protozero::pbf_writer& out) { out.add_float(kSimpleValue, static_cast<float>(value)); }));
}

void EventWriter::image(const std::string& tag, int64_t step, std::string_view encoded, int width, int height) {
  constexpr int kRgb = 3;
  write_event(encode_summary_event(tag, step, [&](protozero::pbf_writer& out) {
    protozero::pbf_writer image(out, kImage);
    image.add_int32(kImageHeight, height);
    image.add_int32(kImageWidth, width);
    image.add_int32(kColorspace, kRgb);
    image.add_bytes(kEncodedImage, encoded.data(), encoded.size());
  }));
}

void EventWriter::histogram(const std::string& tag, int64_t step, std::span<const float> values) {
  write_event(encode_summary_event(
      tag, step, [&](protozero::pbf_writer& out) { out.add_message(kHistogram, encode_histogram(values)); }));
}

}  // namespace octet::report
