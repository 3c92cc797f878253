// Which rows of every tensor each thread of a group makes, and in which order (engine/row_bands.h).
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/row_bands.h"

namespace octet::engine {

// The rows of input `index` that rows of the output need, halo included.
inline kernels::Range needed(const RowWork& work, size_t index, kernels::Range rows) {
  if (index > 0) return rows;
  return {rows.begin * work.stride - work.pad, (rows.end - 1) * work.stride - work.pad + work.extent};
}

inline bool is_empty(kernels::Range r) {
  return r.begin >= r.end;
}

// What one thread does in a group; steps count from the group's first.
class Schedule {
 public:
  Schedule(const Plan& plan, std::span<const PreparedStep> steps, const BandedSteps& group, int part, int parts)
      : plan_(plan),
        steps_(steps),
        group_(group),
        kept_of_(plan.buffers.size(), -1),
        all_(group.last - group.first + 1, kernels::Range{0, 0}) {
    for (size_t k = 0; k < group.kept.size(); ++k) kept_of_[group.kept[k].buffer] = static_cast<int>(k);
    for (size_t i = group.first; i <= group.last; ++i) at_once_ = std::max(at_once_, steps[i].rows->at_once);
    for (size_t i = all_.size(); i-- > 0;) {
      const int64_t h = plan.buffers[output(i)].h();
      if (kept(i) < 0) {
        all_[i] = share_of(h, part, parts);
      } else if (const auto rows = rows_for_readers(i, [&](size_t reader) { return all_[reader]; })) {
        all_[i] = {std::max<int64_t>(rows->begin, 0), std::min(rows->end, h)};
      }
    }
  }

  int64_t rows_of(size_t i) const { return all_[i].end - all_[i].begin; }

  struct Cut {
    std::vector<BandPiece> pieces;
    std::vector<int64_t> kept_rows;  // at most, by kept tensor
  };
  // The rows of the shares in at most `bands` parts, equal but for what steps make at once.
  Cut cut(int64_t bands) const {
    Cut cut{{}, std::vector<int64_t>(group_.kept.size(), 0)};
    std::vector<std::optional<kernels::Range>> have(group_.kept.size());
    std::vector<int64_t> done;
    for (const kernels::Range& rows : all_) done.push_back(rows.begin);
    for (int64_t band = 0; band < bands; ++band) {
      // From the tensors that leave the group back to its inputs.
      std::vector<kernels::Range> run(all_.size(), kernels::Range{0, 0}), made = run, moved = run;
      for (size_t i = all_.size(); i-- > 0;) {
        const int k = kept(i);
        if (k < 0) {
          const int64_t rows = rows_of(i) * (band + 1) / bands;
          run[i] = {done[i], all_[i].begin + std::min((rows + at_once_ - 1) / at_once_ * at_once_, rows_of(i))};
          continue;
        }
        const auto now = rows_for_readers(i, [&](size_t reader) { return run[reader]; });
        if (!now) continue;
        // Rows that later bands read stay.
        const int64_t from = rows_for_readers(i, [&](size_t reader) {
                               return kernels::Range{done[reader], all_[reader].end};
                             })->begin;
        const int64_t there = have[k] ? std::max(have[k]->end, from) : from;
        made[i] = {there, now->end};
        if (is_empty(made[i])) continue;
        moved[i] = {from, there};
        run[i] = {std::max<int64_t>(there, 0), std::min(now->end, plan_.buffers[output(i)].h())};
        have[k] = kernels::Range{from, now->end};
        cut.kept_rows[k] = std::max(cut.kept_rows[k], now->end - from);
      }
      for (size_t i = 0; i < all_.size(); ++i) {
        const int64_t h = plan_.buffers[output(i)].h();
        const auto add = [&](BandPiece::What what, kernels::Range rows) {
          if (what == BandPiece::What::kMove || !is_empty(rows))
            cut.pieces.push_back({what, group_.first + i, kept(i), rows});
        };
        if (!is_empty(made[i])) {
          add(BandPiece::What::kMove, moved[i]);
          add(BandPiece::What::kBorder, {made[i].begin, std::min<int64_t>(made[i].end, 0)});
          add(BandPiece::What::kBorder, {std::max(made[i].begin, h), made[i].end});
        }
        add(BandPiece::What::kRun, run[i]);
        if (!is_empty(run[i])) done[i] = run[i].end;
      }
    }
    return cut;
  }

 private:
  int output(size_t i) const { return plan_.steps[group_.first + i].outputs[0]; }
  int kept(size_t i) const { return kept_of_[output(i)]; }

  // The rows of the output of step `i`, halo included, that its readers need for their rows `rows_of(reader)`; nothing
  // where these are empty.
  template <typename RowsOf>
  std::optional<kernels::Range> rows_for_readers(size_t i, const RowsOf& rows_of) const {
    const int id = output(i);
    std::optional<kernels::Range> all;
    for (size_t reader = i + 1; reader < all_.size(); ++reader) {
      const kernels::Range rows = rows_of(reader);
      if (is_empty(rows)) continue;
      const Step& step = plan_.steps[group_.first + reader];
      for (size_t input = 0; input < step.inputs.size(); ++input) {
        if (step.inputs[input] != id) continue;
        const kernels::Range need = needed(*steps_[group_.first + reader].rows, input, rows);
        all = all ? kernels::Range{std::min(all->begin, need.begin), std::max(all->end, need.end)} : need;
      }
    }
    const Buffer& b = plan_.buffers[id];
    if (all) *all = {std::max(all->begin, -b.halo.top), std::min(all->end, b.h() + b.halo.bottom)};
    return all;
  }

  const Plan& plan_;
  const std::span<const PreparedStep> steps_;
  const BandedSteps& group_;
  int64_t at_once_ = 1;              // rows of a band are a multiple, but in the last one
  std::vector<int> kept_of_;         // by buffer; -1: not kept
  std::vector<kernels::Range> all_;  // rows that this thread makes of the output of each step
};

}  // namespace octet::engine
