// octet compare: how far apart what two networks give is on the same images.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/comparison.h"
#include "app/image_files.h"
#include "app/peer_model.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_guard.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/json_output.h"
#include "cli/model_flags.h"
#include "engine/foreign_metadata.h"
#include "engine/model_info.h"
#include "metrics/share_interval.h"
#include "report/csv.h"
#include "report/format.h"
#include "report/progress.h"
#include "report/text_table.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CompareOptions {
  SpecFlags spec;
  ModelFlags input;
  std::string first, second, json, csv, isa;
  std::vector<std::string> images;
  int64_t threads = 0, batch_size = 0;
  double margin = 0.1, least_sqnr = -1000, least_agreement = -1;  // the last two: not asked for
};

// A network as the command line names it, and its images as it takes them.
struct Side {
  std::string name, runtime;  // runtime: empty for the engine
  app::ModelFile file;
  std::unique_ptr<app::Model> model;
  app::DataStream images;
};

Side read_side(const std::string& name, const SpecFlags& spec, const char* what) {
  Side side{.name = name, .runtime = {}, .file = {}, .model = {}, .images = {}};
  std::string path = name;
  for (const char* runtime : {"onnxruntime", "openvino"})
    if (const std::string prefix = std::string(runtime) + ":"; name.starts_with(prefix))
      side.runtime = runtime, path = name.substr(prefix.size());
  require_file(path, what);
  if (!side.runtime.empty() && !path.ends_with(".onnx"))
    fail_usage(name, ": ", side.runtime, " runs ONNX files (.onnx) alone");
  side.file =
      app::read_model_file(path, path.ends_with(".onnx") ? spec.input_shapes(path) : std::vector<ir::InputShape>());
  return side;
}

// What `other` says of how images become the input, where `model` says nothing: a network and its copies take the same.
void learn_input(app::Metadata& model, const app::Metadata& other) {
  namespace key = engine::key;
  const app::Metadata own = engine::standard_metadata(model), theirs = engine::standard_metadata(other);
  for (const char* entry : {key::kMean, key::kStd, key::kColorOrder, key::kResize, key::kExifOrientation})
    if (const auto found = theirs.find(entry); found != theirs.end() && own.count(entry) == 0)
      model[entry] = found->second;
}

void open_side(Side& side, const spec::ExperimentSpec& spec, const CompareOptions& options) {
  const app::RunOptions run{.threads = options.threads, .isa = options.isa, .input = spec.model.input};
  side.model = side.runtime.empty() ? app::open_engine_model(side.file, run)
                                    : app::open_peer_model(side.file, side.runtime, "octet compare", run);
}

// Images at a time that both take; 0: any number.
int64_t common_batch(const Side& a, const Side& b, int64_t wanted) {
  int64_t least = wanted;
  for (const Side* side : {&a, &b})
    if (const int64_t own = side->model->batch_size(); own > 0 && (least == 0 || own < least)) least = own;
  return least;
}

std::string decibels(double value) {
  return std::isinf(value) && value > 0 ? "same bits" : report::fixed(value, 2) + " dB";
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

const std::string& class_name(const std::vector<std::string>& names, int c, std::string& number) {
  number = std::to_string(c);
  return static_cast<size_t>(c) < names.size() ? names[static_cast<size_t>(c)] : number;
}

Json to_json(const app::OutputComparison& o, const Side& side, const data::Dataset& images) {
  Json j = {{"output", o.first},
            {"second_output", o.second},
            {"elements", o.elements},
            {"different", o.different},
            {"sqnr_db", finite_or_null(o.sqnr_db())},
            {"cosine", finite_or_null(o.cosine())},
            {"largest_difference", finite_or_null(o.largest_difference)},
            {"magnitude", o.magnitude},
            {"classes", nullptr}};
  if (!o.classes) return j;
  const metrics::Interval interval = metrics::share_interval(o.agree, o.images);
  Json differences = Json::array();
  std::string number;
  for (const app::ClassDifference& d : o.differences)
    differences.push_back({{"image", images.name(d.image)},
                           {"first", d.first},
                           {"first_name", class_name(side.model->class_names(), d.first, number)},
                           {"second", d.second},
                           {"second_name", class_name(side.model->class_names(), d.second, number)},
                           {"lead", d.lead}});
  j["classes"] = {{"images", o.images},
                  {"agree", o.agree},
                  {"agreement", o.agreement()},
                  {"agreement_interval", {interval.low, interval.high}},
                  {"sure", o.sure},
                  {"sure_agree", o.sure_agree},
                  {"largest_lead", o.largest_lead()},
                  {"differences", differences}};
  return j;
}

Json to_json(const app::Comparison& c, const Side& a, const Side& b, const CompareOptions& options,
             const std::string& objection) {
  Json outputs = Json::array();
  for (const app::OutputComparison& o : c.outputs) outputs.push_back(to_json(o, a, *a.images.dataset));
  return {{"first", a.name},
          {"second", b.name},
          {"first_ran_as", a.model->description()},
          {"second_ran_as", b.model->description()},
          {"images", c.images},
          {"margin", options.margin},
          {"holds", objection.empty()},
          {"objection", objection},
          {"outputs", outputs}};
}

std::string to_csv(const app::Comparison& c, const Side& a, const Side& b) {
  using report::csv_number;
  std::vector<std::vector<std::string>> rows;
  for (const app::OutputComparison& o : c.outputs) {
    const auto of_classes = [&](int64_t n) { return o.classes ? std::to_string(n) : std::string(); };
    rows.push_back({a.name, b.name, o.first, std::to_string(c.images), std::to_string(o.elements),
                    std::to_string(o.different), csv_number(o.sqnr_db()), csv_number(o.cosine()),
                    csv_number(o.largest_difference), csv_number(o.magnitude), of_classes(o.agree), of_classes(o.sure),
                    of_classes(o.sure_agree), o.classes ? csv_number(o.largest_lead()) : std::string()});
  }
  return report::csv({"first", "second", "output", "images", "elements", "different", "sqnr_db", "cosine",
                      "largest_difference", "magnitude", "agree", "sure", "sure_agree", "largest_lead"},
                     rows);
}

void print(const app::Comparison& c, const Side& a, const Side& b, const CompareOptions& options) {
  std::cout << printable_line(str(a.name, " (", a.model->description(), ") and ", b.name, " (", b.model->description(),
                                  ") on ", c.images, " images"))
            << '\n';
  report::TextTable table(
      {"output", "elements", "different", "SQNR", "cosine", "largest difference", "of values up to", "same class"});
  for (const app::OutputComparison& o : c.outputs)
    table.add_row({printable_line(o.first), std::to_string(o.elements), std::to_string(o.different),
                   decibels(o.sqnr_db()), report::fixed(o.cosine(), 6), report::significant(o.largest_difference, 3),
                   report::significant(o.magnitude, 4), o.classes ? str(o.agree, " of ", o.images) : "-"});
  std::cout << table.text();
  for (const app::OutputComparison& o : c.outputs) {
    if (!o.classes) continue;
    const metrics::Interval share = metrics::share_interval(o.agree, o.images);
    std::cout << printable_line(o.first) << ": same class on " << o.agree << " of " << o.images
              << " images (with 95 % certainty on " << report::fixed(std::floor(10000 * share.low) / 100, 2) << " to "
              << report::fixed(std::ceil(10000 * share.high) / 100, 2) << " %), on " << o.sure_agree << " of the "
              << o.sure << " where the first leads by " << report::significant(options.margin, 3) << " or more";
    if (!o.differences.empty())
      std::cout << "; where they differ, it leads by " << report::fixed(o.largest_lead(), 4) << " at most";
    std::cout << '\n';
    constexpr size_t kMostShown = 10;
    std::string one, other;
    for (size_t i = 0; i < std::min(kMostShown, o.differences.size()); ++i) {
      const app::ClassDifference& d = o.differences[i];
      std::cout << printable_line(str("  ", a.images.dataset->name(d.image), ": ",
                                      class_name(a.model->class_names(), d.first, one), " and ",
                                      class_name(a.model->class_names(), d.second, other), ", a lead of ",
                                      report::fixed(d.lead, 4)))
                << '\n';
    }
    if (o.differences.size() > kMostShown)
      std::cout << "  and " << o.differences.size() - kMostShown << " more (--json has all)\n";
  }
}

// What was asked for and does not hold; empty: all of it does.
std::string objection_to(const app::Comparison& c, const CompareOptions& options) {
  for (const app::OutputComparison& o : c.outputs) {
    if (!(o.sqnr_db() >= options.least_sqnr))
      return str("output '", o.first, "' is ", decibels(o.sqnr_db()), " from the first, and --min_sqnr asks for ",
                 report::fixed(options.least_sqnr, 2), " dB");
    if (o.classes && o.agreement() < options.least_agreement)
      return str("both find the same class on ", o.agree, " of ", o.images, " images, and --agreement asks for ",
                 report::fixed(100 * options.least_agreement, 2), " %");
  }
  return {};
}

ExitCode run_compare(const CompareOptions& options) {
  if (options.images.empty()) fail_usage("name the images: octet compare A B --images FOLDER");
  Side a = read_side(options.first, options.spec, "A"), b = read_side(options.second, options.spec, "B");
  const app::Metadata of_first = a.file.metadata;
  learn_input(a.file.metadata, b.file.metadata);
  learn_input(b.file.metadata, of_first);
  const spec::ExperimentSpec of_a = experiment_to_feed(options.spec, options.input, a.file),
                             of_b = experiment_to_feed(options.spec, options.input, b.file);
  open_side(a, of_a, options);
  open_side(b, of_b, options);
  const int64_t batch = common_batch(a, b, options.batch_size);
  a.images = app::open_image_files(of_a, options.images, a.model->input_shape(), batch);
  b.images = app::open_image_files(of_b, options.images, b.model->input_shape(), batch);
  report::Progress progress({.label = "compare", .total = a.images.loader->images_per_epoch()});
  const app::Comparison result =
      app::compare_models(*a.model, *a.images.loader, *b.model, *b.images.loader,
                          {.margin = options.margin, .progress = [&](int64_t done) { progress.update(done); }});
  progress.finish();
  for (const auto& [index, entry] : a.images.loader->corrupt().entries)
    log_warning("skipped the damaged image ", entry.name, ": ", entry.reason);
  const std::string objection = objection_to(result, options);
  if (options.json != "-" && options.csv != "-") {
    print(result, a, b, options);
    if (!objection.empty()) std::cout << printable_line("NOT HELD: " + objection) << '\n';
  }
  if (!options.json.empty()) write_json_output(options.json, to_json(result, a, b, options, objection));
  if (!options.csv.empty()) write_text_output(options.csv, to_csv(result, a, b));
  return objection.empty() ? ExitCode::kDone : ExitCode::kCheckFailed;
}

}  // namespace

Command compare_command() {
  return {
      .name = "compare",
      .summary = "Show how far apart two networks are on images",
      .details =
          "Runs images through two networks and holds their outputs against each other: signal to noise of the second "
          "as a copy of the first, cosine, the largest difference, and for scores of classes on how many images both "
          "find the same class, also counted among those where the first is sure. Each of the two is an engine file, "
          "an ONNX file that the engine runs as it would be deployed, or, with onnxruntime: or openvino: before its "
          "name, an ONNX file that these run (needs scripts/peers_venv.sh). It takes no experiment: how images become "
          "the input is what the files carry, one of them for both where the other is silent, and what flags say. "
          "With --min_sqnr or --agreement the exit code is 3 where that does not hold.",
      .examples = {"octet compare float.onnx model.octet --images photos/",
                   "octet compare onnxruntime:model.qdq.onnx model.octet --images photos/ --json -",
                   "octet compare resnet50.onnx resnet50.octet --images photos/ --preset torchvision --min_sqnr 20"},
      .define = [](CLI::App& app) -> Run {
        auto options = std::make_shared<CompareOptions>();
        app.add_option("A", options->first, "The first: [onnxruntime:|openvino:]FILE")->required();
        app.add_option("B", options->second, "The second, which is judged as a copy of the first")->required();
        app.add_option("--images", options->images, "Image files or folders of images (needed)")->type_name("FOLDER");
        add_model_flags(app, options->input);
        add_input_shape_flag(app, options->spec);
        add_exif_flag(app, options->spec);
        add_number_flag(app, "--margin", options->margin, 0, 1,
                        "Lead in probability of the best class from which on the first is called sure")
            ->capture_default_str();
        add_number_flag(app, "--min_sqnr", options->least_sqnr, -1000, 1000,
                        "Least signal to noise of every output, in decibels (default: any)");
        add_number_flag(app, "--agreement", options->least_agreement, 0, 1,
                        "Smallest share of images with the same class (default: any)");
        add_json_flag(app, options->json);
        add_csv_flag(app, options->csv, "a line for each output");
        add_batch_size_flag(app, options->batch_size);
        add_threads_flag(app, options->threads);
        add_isa_flag(app, options->isa);
        return [options] { return run_compare(*options); };
      }};
}

}  // namespace octet::cli
