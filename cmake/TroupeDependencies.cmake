# Everything the project takes from elsewhere is found here, once. docs/building.md lists it with versions.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.30)
find_package(nlohmann_json 3.11 REQUIRED)
if(TROUPE_APPS)
  find_package(spdlog REQUIRED)
  find_package(CLI11 2 REQUIRED)
  pkg_check_modules(EDITLINE REQUIRED IMPORTED_TARGET libedit)
  include(TroupeFindCAF)
  if(NOT CAF_FOUND)
    message(FATAL_ERROR "CAF 0.18.x with its modules core, io and openssl was not found. ${TROUPE_CAF_OTHERS}\n"
      "Either run './run build', which brings and builds CAF 0.18.7, "
      "or name your own with -DCMAKE_PREFIX_PATH=<prefix> (docs/building.md, 'CAF').")
  endif()
endif()
if(TROUPE_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
