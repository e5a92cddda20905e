#include "fabric/survey.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "fabric/input_error.h"

namespace mrc::fabric {

bool same_shape(const TopologySpec& a, const TopologySpec& b) {
  const auto shape = [](const TopologySpec& spec) {
    return std::tuple(spec.planes, spec.hosts, spec.t0, spec.t1, spec.pods, spec.t2, spec.cables);
  };
  return shape(a) == shape(b);
}

Survey survey(const std::vector<HostResults>& results) {
  if (results.empty()) throw InputError("no results");
  const auto key = [](const Loop& loop) {
    return std::tuple(loop.host, loop.path.plane, loop.turn, loop.path.up, loop.path.t2);
  };
  std::map<decltype(key({})), LoopResult> sums;
  Survey survey;
  for (const HostResults& part : results) {
    if (!same_shape(part.fabric, results.front().fabric))
      throw InputError("results of different fabrics");
    survey.hosts.push_back(part.host);
    for (const LoopResult& result : part.loops) {
      LoopResult& sum = sums[key(result.loop)];
      sum.loop = result.loop;
      sum.sent += result.sent;
      sum.answered += result.answered;
    }
  }
  std::sort(survey.hosts.begin(), survey.hosts.end());
  survey.hosts.erase(std::unique(survey.hosts.begin(), survey.hosts.end()), survey.hosts.end());
  std::vector<LoopResult> loops;
  for (const auto& [name, sum] : sums) {
    loops.push_back(sum);
    survey.sent += sum.sent;
    survey.answered += sum.answered;
  }
  survey.loops = loops.size();
  survey.diagnosis = diagnose(Topology(results.front().fabric), loops);
  return survey;
}

void SurveyWindow::add(std::vector<HostResults> look) {
  looks_.push_back(std::move(look));
  const double before_last_s = static_cast<double>(looks_.size() - 1) * settings_.every_s;
  if (before_last_s >= settings_.window_s) looks_.pop_front();
}

Survey SurveyWindow::survey() const {
  MRC_ASSERT(!looks_.empty());
  std::vector<HostResults> window;
  for (const std::vector<HostResults>& look : looks_)
    window.insert(window.end(), look.begin(), look.end());
  Survey all = fabric::survey(window);
  std::vector<Finding>& findings = all.diagnosis.findings;
  for (Finding& finding : fabric::survey(looks_.back()).diagnosis.findings) {
    if (!finding.down()) continue;
    std::erase_if(findings, [&](const auto& other) { return other.part == finding.part; });
    findings.insert(findings.begin(), std::move(finding));
  }
  return all;
}

// The look during which a cable is cut sees half of its probes come back ("loses 66 %"), the next
// one none: that it is down is news then.
ChangeTracker::Severity ChangeTracker::severity_of(const Finding& finding) {
  if (finding.silent()) return Severity::kSilent;
  return finding.down() ? Severity::kDown : Severity::kLossy;
}

News ChangeTracker::update(const Diagnosis& diagnosis) {
  News news;
  std::map<std::string, Severity> now;
  for (const Finding& finding : diagnosis.findings) {
    const std::string name = part_name(finding.part);
    const Severity severity = now[name] = severity_of(finding);
    const auto before = known_.find(name);
    // One that comes back is lossy for as long as the window reaches back: no news.
    if (before == known_.end() || severity > before->second) news.faults.push_back(finding);
  }
  for (const auto& [name, severity] : known_)
    if (!now.contains(name)) news.healed.push_back(name);
  known_ = std::move(now);
  return news;
}

}  // namespace mrc::fabric
