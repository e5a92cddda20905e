/* Versions of the application half of the MRC API, and the choice among them.
 *
 * A program that wants the interface of a certain release defines MRC_API_VER_USED (and, for vendor
 * parts, MRC_VENDOR_API_VER_USED) before it includes mrc.h. Without that it gets the newest one.
 */
#ifndef MRC_API_VER_H
#define MRC_API_VER_H

/* Versions compare as plain numbers, also in the preprocessor. */
#define MRC_API_VER(major, minor, subminor) \
  ((((major) + 0u) << 24) | (((minor) + 0u) << 16) | ((subminor) + 0u))

/* Stands for "whatever is newest" in the two selection macros. */
#define MRC_API_VER_LATEST MRC_API_VER(0xFF, 0xFF, 0xFFFF)

#define MRC_API_CURRENT_VERSION MRC_API_VER(1, 0, 1)
#define MRC_API_LAST_SUPPORTED_VERSION MRC_API_VER(0, 0, 0)
#define MRC_VENDOR_API_CURRENT_VERSION MRC_API_VER(1, 0, 0)
#define MRC_VENDOR_API_LAST_SUPPORTED_VERSION MRC_API_VER(0, 0, 0)

#ifndef MRC_API_VER_USED
#define MRC_API_VER_USED MRC_API_CURRENT_VERSION
#elif MRC_API_VER_USED == MRC_API_VER_LATEST
#undef MRC_API_VER_USED
#define MRC_API_VER_USED MRC_API_CURRENT_VERSION
#endif

#if MRC_API_VER_USED > MRC_API_CURRENT_VERSION
#error "MRC_API_VER_USED asks for a newer MRC API than these headers have"
#elif MRC_API_VER_USED < MRC_API_LAST_SUPPORTED_VERSION
#error "MRC_API_VER_USED asks for an MRC API that is no longer supported"
#elif MRC_API_VER_USED == MRC_API_LAST_SUPPORTED_VERSION
#pragma GCC warning "MRC_API_VER_USED is the oldest MRC API still supported; move to a newer one"
#endif

#ifndef MRC_VENDOR_API_VER_USED
#define MRC_VENDOR_API_VER_USED MRC_VENDOR_API_CURRENT_VERSION
#elif MRC_VENDOR_API_VER_USED == MRC_API_VER_LATEST
#undef MRC_VENDOR_API_VER_USED
#define MRC_VENDOR_API_VER_USED MRC_VENDOR_API_CURRENT_VERSION
#endif

#if MRC_VENDOR_API_VER_USED > MRC_VENDOR_API_CURRENT_VERSION
#error "MRC_VENDOR_API_VER_USED asks for a newer vendor API than these headers have"
#elif MRC_VENDOR_API_VER_USED < MRC_VENDOR_API_LAST_SUPPORTED_VERSION
#error "MRC_VENDOR_API_VER_USED asks for a vendor API that is no longer supported"
#elif MRC_VENDOR_API_VER_USED == MRC_VENDOR_API_LAST_SUPPORTED_VERSION
#pragma GCC warning "MRC_VENDOR_API_VER_USED is the oldest vendor API still supported"
#endif

#endif
