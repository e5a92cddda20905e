// A network of fully connected layers with tanh between them and softmax with cross entropy at the
// end. Parameters and gradients are plain arrays, so that ranks can add gradients up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace training {

class Network {
 public:
  // `widths`: inputs, hidden layers, classes. Parameters follow from the seed.
  Network(std::vector<unsigned> widths, std::uint64_t seed);

  std::size_t parameter_count() const { return parameters_.size(); }
  std::span<const float> parameters() const { return parameters_; }

  // Adds the gradient of one sample's loss to `gradient` and returns the loss.
  float learn(std::span<const float> point, unsigned label, std::span<float> gradient);
  // Goes against the gradient.
  void step(std::span<const float> gradient, float rate);

 private:
  struct Layer {
    unsigned inputs = 0;
    unsigned outputs = 0;
    std::size_t weights = 0;  // where they begin among the parameters
    std::size_t biases = 0;
  };

  void forward(std::span<const float> point);
  // The last layer's values become the gradient of the loss by them; returns the loss.
  float compare(unsigned label);
  void backward(std::span<float> gradient);

  std::vector<Layer> layers_;
  std::vector<float> parameters_;
  std::vector<std::vector<float>> values_;  // of the input and behind each layer
  std::vector<float> slopes_;               // of the loss by the values behind a layer
  std::vector<float> slopes_before_;
};

}  // namespace training
