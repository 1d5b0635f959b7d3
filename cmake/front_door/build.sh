# Configuring and building a preset. A preset that is configured for the same CAF and tools goes straight to ninja, which
# itself sees changed sources and changed CMake files.

jobs=${TROUPE_JOBS:-$(nproc)}
launcher=()
# ccache is used where it is installed, and not asked for.
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

# require_jobs: before anything is set up, and not by the words of ninja in the middle of it.
require_jobs() {
  [[ $jobs =~ ^[1-9][0-9]{0,3}$ ]] || wrong_use "TROUPE_JOBS is '$jobs'; it must be a whole number from 1 to 9999"
}

# build_preset PRESET [TARGET]: "all" without a target.
build_preset() {
  local preset=$1 target=${2:-all} folder=$root_folder/build/$1
  can_write "$folder" ||
    fail "the build folder $folder cannot be written; copy the project to a place of yours and run it there."
  locked "$root_folder/build/.lock" configure_and_compile "$preset" "$target"
}

configure_and_compile() {
  is_configured "$1" || configure "$1"
  compile "$1" "$2"
}

# The stamp holds the key of what configuring depended on, and the CAF it chose.
is_configured() {
  local stamp=$root_folder/build/$1/.front_door key="" dir=""
  [[ -f $stamp && -f $root_folder/build/$1/build.ninja ]] || return 1
  { read -r key; read -r dir; } <"$stamp" || return 1
  [[ $key == "$(configure_key)" && ( $dir == none || -f $dir/CAFConfig.cmake ) ]]
}

configure_key() {
  { cat "$root_folder/CMakePresets.json"; echo "$root_folder ${CC:-} ${CXX:-} ${CXXFLAGS:-} ${CMAKE_PREFIX_PATH:-} ${CAF_ROOT:-}" \
    "${caf_flags[*]} ${launcher[*]}"; } | digest
}

configure() {
  local preset=$1 folder=$root_folder/build/$1 caf_dir=none flags=("${launcher[@]}")
  require_versions
  if [[ $preset != fuzz ]]; then
    open_cache
    locked "$cache/lock" choose_caf "$(caf_kind "$preset")"
    flags+=(-DCAF_DIR="$caf_dir")
  fi
  step "Configuring the preset $preset"
  local log=$folder/configure.log
  (cd "$root_folder" && cmake --fresh --preset "$preset" "${flags[@]}") >"$log" 2>&1 ||
    blame "$log" "cmake could not configure the preset $preset; mend what it says above and run this again."
  { configure_key; printf '%s\n' "$caf_dir"; } >"$folder/.front_door.part"
  mv "$folder/.front_door.part" "$folder/.front_door"
}

caf_kind() { if [[ $1 == tsan ]]; then echo thread; else echo plain; fi; }

compile() {
  local preset=$1 folder=$root_folder/build/$1 log=$root_folder/build/$1/build.log
  [[ $(ninja -C "$folder" -n "$2" 2>&1 | tail -n 1) != *"no work to do"* ]] || return 0
  step "Building troupe (preset $preset)"
  : >"$log"
  watched "build $preset" ninja_progress "$log" ninja -C "$folder" -j "$jobs" "$2" ||
    blame "$log" "the preset $preset does not compile; see above."
}

# Reads the log of the watched command; ninja's lines begin with [done/all].
ninja_progress() {
  local line
  line=$(tail -c 200000 "$log" | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -n 1)
  line=${line:-[0/?]}
  line=${line#[}
  printf '%s' "${line%]}"
}
