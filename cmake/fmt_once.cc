// What fmt's headers leave to a library. Debian has that library as a shared one only, and `mrc` is
// to be one file; fmt's own way out, all of it in every source that formats, takes 4.6 s of the 12
// s that such a source takes to compile.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
