#include "network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "samples.h"

namespace training {

Network::Network(std::vector<unsigned> widths, std::uint64_t seed) {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    Layer layer{.inputs = widths[i], .outputs = widths[i + 1], .weights = count};
    layer.biases = count + std::size_t{layer.inputs} * layer.outputs;
    count = layer.biases + layer.outputs;
    layers_.push_back(layer);
  }
  parameters_.resize(count);
  for (const unsigned width : widths)
    values_.emplace_back(width);
  Random random(seed);
  for (const Layer& layer : layers_) {
    const float scale = std::sqrt(3.0F / static_cast<float>(layer.inputs));
    for (std::size_t i = layer.weights; i < layer.biases; ++i)
      parameters_[i] = random.next_signed() * scale;
  }
}

void Network::forward(std::span<const float> point) {
  std::copy(point.begin(), point.end(), values_[0].begin());
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const Layer& layer = layers_[l];
    for (unsigned out = 0; out < layer.outputs; ++out) {
      const float* const weights = &parameters_[layer.weights + std::size_t{out} * layer.inputs];
      float sum = parameters_[layer.biases + out];
      for (unsigned in = 0; in < layer.inputs; ++in)
        sum += weights[in] * values_[l][in];
      values_[l + 1][out] = l + 1 < layers_.size() ? std::tanh(sum) : sum;
    }
  }
}

float Network::compare(unsigned label) {
  slopes_ = values_.back();
  const float largest = *std::max_element(slopes_.begin(), slopes_.end());
  float sum = 0;
  for (float& value : slopes_) {
    value = std::exp(value - largest);
    sum += value;
  }
  for (float& value : slopes_)
    value /= sum;
  const float loss = -std::log(std::max(slopes_[label], 1e-30F));
  slopes_[label] -= 1;
  return loss;
}

void Network::backward(std::span<float> gradient) {
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    slopes_before_.assign(layer.inputs, 0);
    for (unsigned out = 0; out < layer.outputs; ++out) {
      const std::size_t row = layer.weights + std::size_t{out} * layer.inputs;
      const float slope = slopes_[out];
      gradient[layer.biases + out] += slope;
      for (unsigned in = 0; in < layer.inputs; ++in) {
        gradient[row + in] += slope * values_[l][in];
        slopes_before_[in] += slope * parameters_[row + in];
      }
    }
    for (unsigned in = 0; in < layer.inputs; ++in)
      slopes_before_[in] *= 1 - values_[l][in] * values_[l][in];
    std::swap(slopes_, slopes_before_);
  }
}

float Network::learn(std::span<const float> point, unsigned label, std::span<float> gradient) {
  forward(point);
  const float loss = compare(label);
  backward(gradient);
  return loss;
}

void Network::step(std::span<const float> gradient, float rate) {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i] -= rate * gradient[i];
}

}  // namespace training
