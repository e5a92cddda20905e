# Toolchain: clang 16 for wasm32, with the C and C++ libraries of Debian's packages wasi-libc,
# libc++-16-dev-wasm32, libc++abi-16-dev-wasm32 and libclang-rt-16-dev-wasm32, and lld-16.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(CMAKE_C_COMPILER clang-16)
set(CMAKE_CXX_COMPILER clang++-16)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_AR llvm-ar-16)
set(CMAKE_RANLIB llvm-ranlib-16)
# Without main() there is nothing that a test of the compiler could link.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(MRC_WASM_LIBCXX /usr/lib/llvm-16)
