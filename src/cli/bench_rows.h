// What octet bench has measured, as people and programs get it.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/bench/contender.h"
#include "app/bench/windows.h"

namespace octet::cli {

struct BenchRow {
  std::string name, kind, file, detail;  // kind: octet_int8, octet_fp32, either with _images, onnxruntime, openvino
  std::unique_ptr<app::Contender> contender;
  app::WindowTimes times;
  app::TimesAsLong ratio;  // to the first row
  // Milliseconds that its turns took, and that its threads waited for a CPU in them where the contender knows.
  double turned = 0, waited = 0;
};

// All contenders with one number of threads.
struct Measurement {
  int threads = 0;
  std::vector<BenchRow> rows;
  const BenchRow* fastest_rival = nullptr;  // the smallest median of its ratios
};

std::string threads_text(int threads);  // "2 threads"

// To standard output.
void print(const Measurement& m, app::BenchMode mode);
// The keys of one number of threads. The last measurement's stand at the top of the report as well.
nlohmann::ordered_json measurement_json(const Measurement& m, app::BenchMode mode);
// A line for each row of all of them.
std::string measurements_csv(const std::vector<Measurement>& measurements, app::BenchMode mode);

}  // namespace octet::cli
