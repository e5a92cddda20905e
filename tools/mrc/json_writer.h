// Writes one JSON document to a stream, indented, members in the order of the calls.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace mrc::tool {

class JsonWriter {
 public:
  explicit JsonWriter(std::FILE* out) : out_(out) {}

  // `key` is empty inside arrays and for the document itself.
  void begin_object(std::string_view key = {}) { open(key, '{'); }
  void end_object() { close('}'); }
  void begin_array(std::string_view key = {}) { open(key, '['); }
  void end_array() { close(']'); }

  void value(std::string_view key, std::uint64_t number);
  void value(std::string_view key, std::int64_t number);
  void value(std::string_view key, std::uint32_t number) { value(key, std::uint64_t{number}); }
  void value(std::string_view key, double number);
  void value(std::string_view key, bool truth);
  void value(std::string_view key, std::string_view text);
  void value(std::string_view key, const char* text) { value(key, std::string_view(text)); }
  void null(std::string_view key);
  template <typename Values>
  void array(std::string_view key, const Values& values) {
    begin_array(key);
    for (const auto& each : values)
      value({}, each);
    end_array();
  }

 private:
  void start(std::string_view key);
  void open(std::string_view key, char bracket);
  void close(char bracket);
  void quote(std::string_view text);
  void new_line();

  std::FILE* out_;
  unsigned depth_ = 0;
  bool first_ = true;  // nothing has been written at this depth yet
};

}  // namespace mrc::tool
