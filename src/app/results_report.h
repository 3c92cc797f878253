// A results folder as people read it: a table of its stages, and the page with everything behind it.
#pragma once
#include "app/results_folder.h"
#include "report/html_report.h"
#include "spec/experiment.h"

namespace octet::app {

// One row for each stage that was evaluated: accuracy by the task's metric, size of its file, time of its engine.
report::Table stage_table(const ResultsFolder& results);

// What `octet report` draws. Parts whose results are missing are left out; so are pictures where `images`, those that
// were evaluated, are null.
report::Report results_report(const ResultsFolder& results, const spec::ExperimentSpec& spec,
                              const data::Dataset* images = nullptr);

}  // namespace octet::app
