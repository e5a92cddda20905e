// Data to learn from, made up: points in space, each with the class that a fixed random network
// gives it. Every number follows from the seed and the sample's number, so that any process can
// make any sample, and always the same one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace training {

// A stream of pseudo-random numbers (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();
  // From -1 to 1, evenly.
  float next_signed();

 private:
  std::uint64_t state_;
};

class Samples {
 public:
  Samples(unsigned inputs, unsigned classes, std::uint64_t seed);

  unsigned inputs() const { return inputs_; }
  unsigned classes() const { return classes_; }
  // Fills `point` and returns its class.
  unsigned make(std::uint64_t number, std::span<float> point) const;

 private:
  unsigned inputs_;
  unsigned classes_;
  std::uint64_t seed_;
  std::vector<float> directions_;  // one per class; the closest gives the class
};

}  // namespace training
