// The C++ library for WebAssembly cannot unwind. A throw becomes an exception of JavaScript with
// its text, which leaves everything at once: no destructor runs, no catch is reached. So what was
// set up half is lost, with its memory, and whoever changes something must have thrown before.
#include "exception.h"

#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>

namespace mrc::playground {
namespace {

extern "C" [[noreturn]] __attribute__((import_module("page"), import_name("fail"))) void page_fail(
    const char* text, std::size_t size);

std::string& context() {
  static std::string text;
  return text;
}

}  // namespace

void set_context(std::string_view text) { context() = text; }

}  // namespace mrc::playground

extern "C" {

void* __cxa_allocate_exception(std::size_t size) { return std::malloc(size); }
void __cxa_free_exception(void* exception) { std::free(exception); }

// Everything that we throw is a std::exception, and begins with it.
[[noreturn]] void __cxa_throw(void* thrown, std::type_info*, void (*)(void*)) {
  std::string text = static_cast<std::exception*>(thrown)->what();
  if (!mrc::playground::context().empty()) text = mrc::playground::context() + ": " + text;
  mrc::playground::set_context({});
  mrc::playground::page_fail(text.data(), text.size());
}
}
