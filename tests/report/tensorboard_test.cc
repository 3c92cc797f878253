#include "report/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <protozero/pbf_reader.hpp>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/records.h"
#include "temp_directory.h"

namespace octet::report {
namespace {

class EventWriterTest : public DirectoryTest {};

// The payloads of a TFRecord file, with both checksums checked.
std::vector<std::string> read_records(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  RecordReader records(bytes, path.string());
  std::vector<std::string> out;
  while (const auto payload = records.next()) out.emplace_back(*payload);
  return out;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version, tag;
  float value = NAN;
  double min = NAN, max = NAN, count = NAN, sum = NAN, squares = NAN;
  std::vector<double> limits, buckets;
  int height = 0, width = 0, colorspace = 0;
  std::string picture;
};

Event decode(const std::string& bytes) {
  Event event;
  for (protozero::pbf_reader reader(bytes); reader.next();) {
    switch (reader.tag()) {
      case 1:
        event.wall_time = reader.get_double();
        break;
      case 2:
        event.step = reader.get_int64();
        break;
      case 3:
        event.version = reader.get_string();
        break;
      case 5: {
        protozero::pbf_reader summary = reader.get_message();
        EXPECT_TRUE(summary.next(1));
        for (protozero::pbf_reader value = summary.get_message(); value.next();) {
          if (value.tag() == 1)
            event.tag = value.get_string();
          else if (value.tag() == 2)
            event.value = value.get_float();
          else if (value.tag() == 4) {
            for (protozero::pbf_reader image = value.get_message(); image.next();) {
              int* numbers[] = {nullptr, &event.height, &event.width, &event.colorspace};
              const auto field = image.tag();
              if (field <= 3)
                *numbers[field] = image.get_int32();
              else
                event.picture = image.get_bytes();
            }
          } else if (value.tag() == 5) {
            for (protozero::pbf_reader h = value.get_message(); h.next();) {
              double* scalars[] = {nullptr, &event.min, &event.max, &event.count, &event.sum, &event.squares};
              const auto field = h.tag();  // reading the value forgets it
              if (field <= 5)
                *scalars[field] = h.get_double();
              else
                for (double d : h.get_packed_double()) (field == 6 ? event.limits : event.buckets).push_back(d);
            }
          }
        }
        break;
      }
      default:
        reader.skip();
    }
  }
  return event;
}

TEST_F(EventWriterTest, WritesScalars) {
  EventWriter writer(directory_ / "events");
  writer.scalar("train/loss", 7, 0.25);
  writer.scalar("train/loss", 1LL << 40, -3);
  EXPECT_THAT(writer.path().filename().string(), testing::MatchesRegex("events\\.out\\.tfevents\\.[0-9]{10}\\..+"));
  const std::vector<std::string> records = read_records(writer.path());  // everything is in the file at once
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(decode(records[0]).version, "brain.Event:2");
  EXPECT_GT(decode(records[0]).wall_time, 1.7e9);
  EXPECT_EQ(decode(records[1]).tag, "train/loss");
  EXPECT_EQ(decode(records[1]).step, 7);
  EXPECT_EQ(decode(records[1]).value, 0.25f);
  EXPECT_EQ(decode(records[2]).step, 1LL << 40);
}

TEST_F(EventWriterTest, WritesHistograms) {
  EventWriter writer(directory_);
  const float inf = std::numeric_limits<float>::infinity();
  writer.histogram("weights", 1, std::vector<float>{-1, -0.5f, 0, 0, 2, NAN, inf});
  writer.histogram("none", 2, {});
  const std::vector<std::string> records = read_records(writer.path());
  const Event event = decode(records.at(1));
  EXPECT_EQ(event.min, -1);
  EXPECT_EQ(event.max, 2);
  EXPECT_EQ(event.count, 5);
  EXPECT_EQ(event.sum, 0.5);
  EXPECT_EQ(event.squares, 5.25);
  ASSERT_EQ(event.limits.size(), event.buckets.size());
  EXPECT_TRUE(std::ranges::is_sorted(event.limits));
  EXPECT_EQ(std::accumulate(event.buckets.begin(), event.buckets.end(), 0.0), 5);
  EXPECT_EQ(event.buckets.front(), 0);  // its limit is the lower edge of the next
  EXPECT_EQ(event.buckets.back(), 1);   // the 2
  EXPECT_GT(event.limits.back(), 2);
  EXPECT_LE(event.limits[event.limits.size() - 2], 2);
  EXPECT_EQ(decode(records.at(2)).count, 0);
  EXPECT_TRUE(decode(records.at(2)).limits.empty());
}

// As TensorBoard reads it (tensorflow.Summary.Image): RGB, the file's bytes as they are.
TEST_F(EventWriterTest, WritesPictures) {
  EventWriter writer(directory_);
  const std::string bytes("\x89PNG\0x", 6);
  writer.image("val/predictions/a", 3, bytes, 40, 30);
  const Event event = decode(read_records(writer.path()).at(1));
  EXPECT_EQ(event.tag, "val/predictions/a");
  EXPECT_EQ(event.step, 3);
  EXPECT_EQ(event.height, 30);
  EXPECT_EQ(event.width, 40);
  EXPECT_EQ(event.colorspace, 3);
  EXPECT_EQ(event.picture, bytes);
}

TEST_F(EventWriterTest, TwoWritersHaveTwoFiles) {
  EventWriter a(directory_), b(directory_);
  EXPECT_NE(a.path(), b.path());
}

TEST(EventWriter, AnImpossibleDirectoryIsAClearError) {
  EXPECT_THROW(EventWriter("/dev/null/x"), UserError);
}

}  // namespace
}  // namespace octet::report
