#include "samples.h"

namespace training {

std::uint64_t Random::next() {
  state_ += 0x9e37'79b9'7f4a'7c15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
  return z ^ (z >> 31);
}

float Random::next_signed() {
  constexpr float kUnit = 1.0F / (1 << 23);
  return static_cast<float>(next() >> 40) * kUnit - 1.0F;
}

Samples::Samples(unsigned inputs, unsigned classes, std::uint64_t seed)
    : inputs_(inputs), classes_(classes), seed_(seed), directions_(inputs * classes) {
  Random random(seed);
  for (float& value : directions_)
    value = random.next_signed();
}

unsigned Samples::make(std::uint64_t number, std::span<float> point) const {
  Random random(seed_ ^ (number + 1) * 0xd134'2543'de82'ef95);
  for (float& value : point)
    value = random.next_signed();
  unsigned best = 0;
  float best_score = 0;
  for (unsigned c = 0; c < classes_; ++c) {
    float score = 0;
    // Squares make the border curved, so that a straight cut would not do.
    for (unsigned i = 0; i < inputs_; ++i)
      score += directions_[c * inputs_ + i] * (point[i] + point[i] * point[(i + 1) % inputs_]);
    if (c > 0 && score <= best_score) continue;
    best = c;
    best_score = score;
  }
  return best;
}

}  // namespace training
