# Compiler settings that every room shares: the interface target troupe_options.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# The sanitizers' presets compile eight files as one, in a third of the time, so names in a room's anonymous namespaces
# differ; files that cannot join others set SKIP_UNITY_BUILD_INCLUSION. The release build compiles each file alone.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

set(TROUPE_SANITIZE "" CACHE STRING "Comma-separated sanitizers for every target, e.g. address,undefined or thread")

add_library(troupe_options INTERFACE)
target_include_directories(troupe_options INTERFACE ${PROJECT_SOURCE_DIR})
# The bit-for-bit contract (docs/numerics.md): no contraction of a*b+c, never fast-math.
target_compile_options(troupe_options INTERFACE
  -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
# g++ 12 sees an overlapping copy in `"literal" + std::string` that is not there (GCC bug 105651).
target_compile_options(troupe_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# For files of intrinsics, in every build: not inlined they cost 50 times the time. Under the address sanitizer -O3
# would compile for a minute a file, three times as long as -O1.
set(TROUPE_ALWAYS_OPTIMISED -O3)
if(TROUPE_SANITIZE)
  set(TROUPE_ALWAYS_OPTIMISED -O1)
  target_compile_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(troupe_options INTERFACE -fsanitize=${TROUPE_SANITIZE})
endif()
