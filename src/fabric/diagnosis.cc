#include "fabric/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "base/assert.h"

namespace mrc::fabric {
namespace {

constexpr unsigned kMaxFindings = 256;
constexpr unsigned kRefits = 8;
// Loss is handled as y = -log(1 - loss) of one crossing, in which everything is concave. This is
// "everything is lost".
constexpr double kMostY = 12;
constexpr unsigned kSearchSteps = 60;
// Parts whose evidence differs by less than this explain the results equally well.
constexpr double kTie = 2;
constexpr double kHalfWidth95 = 1.92;  // drop of the logarithm at the ends of a 95 % interval

// Cables first and those at hosts before others: with one witness a fault is taken for the smaller
// one.
auto order_of(const Part& part) {
  return std::tuple(!part.cable, part.upper.plane, part.upper.kind, part.upper.index,
                    part.lower.index, part.number);
}
struct ByOrder {
  bool operator()(const Part& a, const Part& b) const { return order_of(a) < order_of(b); }
};

class Model {
 public:
  Model(const Topology& topology, std::span<const LoopResult> results,
        const DiagnosisSettings& settings)
      : base_(-std::log1p(-settings.sound_loss)) {
    for (const LoopResult& result : results) {
      MRC_ASSERT(exists(topology, result.loop));
      if (result.sent == 0) continue;
      const auto row = static_cast<unsigned>(rows_.size());
      const auto lost = result.sent - std::min(result.answered, result.sent);
      rows_.push_back({static_cast<double>(result.sent - lost), static_cast<double>(lost), base_});
      for (const Crossing& crossing : crossings(topology, result.loop)) {
        Column& column = columns_[crossing.part];
        column.uses.push_back({row, static_cast<double>(crossing.times)});
        column.answered = column.answered || lost < result.sent;
      }
    }
  }

  struct Use {
    unsigned row;
    double times;
  };
  struct Column {
    std::vector<Use> uses;
    bool answered = false;
    double y = 0;
  };
  using Columns = std::map<Part, Column, ByOrder>;
  Columns& columns() { return columns_; }

  // Logarithm of the likelihood of what a part has to do with, if it had `y`.
  double score(const Column& column, double y) const {
    double sum = 0;
    for (const Use& use : column.uses) {
      const Row& row = rows_[use.row];
      const double total = row.y + use.times * (y - column.y);
      sum -= row.answered * total;
      if (row.lost > 0) sum += row.lost * std::log(-std::expm1(-total));
    }
    return sum;
  }

  double best_y(const Column& column) const {
    double low = 0;
    double high = kMostY;
    for (unsigned step = 0; step < kSearchSteps; ++step) {
      const double left = low + (high - low) / 3;
      const double right = high - (high - low) / 3;
      if (score(column, left) < score(column, right)) {
        low = left;
      } else {
        high = right;
      }
    }
    return (low + high) / 2;
  }

  void set(Column& column, double y) {
    for (const Use& use : column.uses)
      rows_[use.row].y += use.times * (y - column.y);
    column.y = y;
  }

  // Where the score falls by half the width of an interval, on one side of the best value.
  double interval_end(const Column& column, bool upper) const {
    const double wanted = score(column, column.y) - kHalfWidth95;
    double inside = column.y;
    double outside = upper ? kMostY : 0;
    if (score(column, outside) > wanted) return outside;
    for (unsigned step = 0; step < kSearchSteps; ++step) {
      const double middle = (inside + outside) / 2;
      (score(column, middle) > wanted ? inside : outside) = middle;
    }
    return inside;
  }

 private:
  struct Row {
    double answered;
    double lost;
    double y;  // of the whole loop
  };

  double base_;
  std::vector<Row> rows_;
  Columns columns_;
};

double evidence_of(const Model& model, const Model::Column& column) {
  return model.score(column, column.y) - model.score(column, 0);
}

// How much a part that is taken for sound would explain if it were not.
double promise_of(const Model& model, const Model::Column& column) {
  return model.score(column, model.best_y(column)) - model.score(column, column.y);
}

struct Suspect {
  const Part* part = nullptr;
  Model::Column* column = nullptr;
  std::vector<Part> or_else;
};

Suspect strongest(Model& model, double least) {
  std::vector<std::pair<Model::Columns::value_type*, double>> promises;
  double best = least;
  for (auto& entry : model.columns()) {
    if (entry.second.y > 0) continue;
    const double promise = promise_of(model, entry.second);
    if (promise < least) continue;
    best = std::max(best, promise);
    promises.emplace_back(&entry, promise);
  }
  Suspect suspect;
  for (const auto& [entry, promise] : promises) {
    if (promise < best - kTie) continue;
    if (suspect.part == nullptr) {
      suspect.part = &entry->first;
      suspect.column = &entry->second;
    } else {
      suspect.or_else.push_back(entry->first);
    }
  }
  return suspect;
}

double loss_of(double y) { return y >= kMostY * 0.99 ? 1.0 : -std::expm1(-y); }

Finding finding_of(const Model& model, const Suspect& suspect) {
  const Model::Column& column = *suspect.column;
  return {.part = *suspect.part,
          .loss = loss_of(column.y),
          .loss_low = loss_of(model.interval_end(column, false)),
          .loss_high = loss_of(model.interval_end(column, true)),
          .evidence = evidence_of(model, column),
          .or_else = suspect.or_else};
}

void refit(Model& model, std::vector<Suspect>& suspects, double least) {
  for (unsigned pass = 0; pass < kRefits; ++pass) {
    for (const Suspect& suspect : suspects)
      model.set(*suspect.column, model.best_y(*suspect.column));
  }
  std::erase_if(suspects, [&](const Suspect& suspect) {
    if (evidence_of(model, *suspect.column) >= least) return false;
    model.set(*suspect.column, 0);
    return true;
  });
}

// What is at fault by itself is no other explanation of something else.
void forget_convicted(std::vector<Suspect>& suspects) {
  for (Suspect& suspect : suspects) {
    std::erase_if(suspect.or_else, [&](const Part& part) {
      return std::ranges::any_of(suspects, [&](const Suspect& s) { return *s.part == part; });
    });
  }
}

}  // namespace

Diagnosis diagnose(const Topology& topology, std::span<const LoopResult> results,
                   const DiagnosisSettings& settings) {
  Model model(topology, results, settings);
  std::vector<Suspect> suspects;
  for (unsigned step = 0; step < kMaxFindings; ++step) {
    Suspect next = strongest(model, settings.evidence);
    if (next.part == nullptr) break;
    suspects.push_back(std::move(next));
    refit(model, suspects, settings.evidence);
  }
  forget_convicted(suspects);
  Diagnosis diagnosis;
  for (const Suspect& suspect : suspects)
    diagnosis.findings.push_back(finding_of(model, suspect));
  std::stable_sort(diagnosis.findings.begin(), diagnosis.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.evidence > b.evidence; });
  for (const auto& [part, column] : model.columns()) {
    if (column.answered) {
      diagnosis.seen.push_back(part);
    } else if (column.y == 0) {
      diagnosis.unseen.push_back(part);
    }
  }
  return diagnosis;
}

}  // namespace mrc::fabric
