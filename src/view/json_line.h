// One line of JSON, put together in a string: numbers, texts, lists and objects without spaces.
//
// Members stand in the order of the calls. Nothing is checked: who opens closes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mrc::view {

class JsonLine {
 public:
  // `key` is empty inside lists and for the line itself.
  void open_object(std::string_view key = {}) { open(key, '{'); }
  void close_object() { close('}'); }
  void open_list(std::string_view key = {}) { open(key, '['); }
  void close_list() { close(']'); }
  void number(std::string_view key, std::int64_t value);
  void number(std::int64_t value) { number({}, value); }
  // Thousandths; for rates that are no whole numbers.
  void decimal(std::string_view key, std::int64_t thousandths);
  void text(std::string_view key, std::string_view value);
  void truth(std::string_view key, bool value);

  // The line without a newline; empty afterwards.
  std::string take();

 private:
  void start(std::string_view key);
  void open(std::string_view key, char bracket);
  void close(char bracket);
  void quote(std::string_view value);

  std::string out_;
  bool first_ = true;  // nothing stands yet in what was opened last
};

}  // namespace mrc::view
