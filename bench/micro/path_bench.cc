// Choosing a path for a data packet.
#include <benchmark/benchmark.h>

#include "paths.h"

namespace mrc::bench {
namespace {

void ev_choice(benchmark::State& state) {
  Paths paths(static_cast<unsigned>(state.range(0)));
  for (auto _ : state) {
    EvIndex ev = paths.set().choose(paths.ports(), kNoEv);
    benchmark::DoNotOptimize(ev);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ev_choice)->Arg(128)->Arg(1024);

// One packet in sixteen comes back marked, so that paths are passed over and revived.
void ev_choice_marked(benchmark::State& state) {
  Paths paths(static_cast<unsigned>(state.range(0)));
  unsigned turn = 0;
  for (auto _ : state) {
    EvIndex ev = paths.set().choose(paths.ports(), kNoEv);
    benchmark::DoNotOptimize(ev);
    if (++turn % 16 == 0) paths.set().on_marked(ev);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ev_choice_marked)->Arg(128)->Arg(1024);

}  // namespace
}  // namespace mrc::bench
