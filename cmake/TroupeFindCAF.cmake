# Finds CAF 0.18.x and nothing else: sets CAF_FOUND and TROUPE_CAF_OTHERS (a sentence that names other versions, or "").
# CAF's version file accepts an exact version only, so "0.18" never matches: each release of the line is asked for, first
# where the user points (CAF_DIR, CAF_ROOT, CMAKE_PREFIX_PATH), then where the system keeps packages.
# CAF's config needs the OpenSSL targets and does not find them itself, so that comes first.
find_package(OpenSSL REQUIRED)
set(TROUPE_CAF_OTHERS "")
set(pointed_at NO_SYSTEM_ENVIRONMENT_PATH NO_CMAKE_SYSTEM_PATH NO_CMAKE_PACKAGE_REGISTRY NO_CMAKE_SYSTEM_PACKAGE_REGISTRY)
foreach(where IN ITEMS "${pointed_at}" "")
  foreach(patch RANGE 7 0 -1)
    if(CAF_FOUND)
      break()
    endif()
    find_package(CAF 0.18.${patch} EXACT CONFIG QUIET COMPONENTS core io openssl ${where})
    if(NOT CAF_FOUND AND CAF_CONSIDERED_VERSIONS)
      list(REMOVE_DUPLICATES CAF_CONSIDERED_VERSIONS)
      list(JOIN CAF_CONSIDERED_VERSIONS ", " others)
      set(TROUPE_CAF_OTHERS "An installed CAF ${others} is not used: the project is written for CAF 0.18.")
    endif()
  endforeach()
endforeach()
