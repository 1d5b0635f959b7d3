# ./run test: the suites (release, asan, tsan, and in the long tier fuzz), their wall times and one closing count.
# A suite that fails does not stop the others; a build that fails does.

suites=() ctest_filter=() scale=small seeds=() timings=() summaries=() failed=0

run_tests() {
  local long=0 fast=0
  while [[ $# -gt 0 ]]; do
    case $1 in
      --release | --asan | --tsan | --fuzz) suites+=("${1#--}") ;;
      --fast) fast=1 ;;
      --long) long=1 ;;
      -R) [[ $# -gt 1 ]] || wrong_use "-R needs a pattern"; ctest_filter=(-R "$2"); shift ;;
      *) wrong_use "'test' knows --release, --asan, --tsan, --fuzz, --fast, --long and -R PATTERN, not '$1'" ;;
    esac
    shift
  done
  choose_suites "$long" "$fast"
  prepare_suites
  local suite
  for suite in "${suites[@]}"; do time_suite "$suite" "$fast"; done
  close_tests
}

choose_suites() {
  [[ $1 -eq 0 ]] || scale=full seeds=(TROUPE_SIMULATION_SEEDS=200000)
  [[ ${#suites[@]} -eq 0 ]] || return 0
  suites=(release)
  [[ $2 -eq 1 ]] || suites+=(asan tsan)
  [[ $1 -eq 0 ]] || suites+=(fuzz)
}

prepare_suites() {
  local packages=("${build_packages[@]}")
  [[ " ${suites[*]} " != *" fuzz "* ]] || packages+=("${fuzz_packages[@]}")
  ensure_packages "${packages[@]}"
  ensure_model
  TROUPE_MODEL=$(default_model_path)
  export TROUPE_MODEL
}

time_suite() {
  local began=$SECONDS built
  build_preset "$1"
  built=$SECONDS
  step "Testing: $1"
  if [[ $1 == fuzz ]]; then run_fuzzers; else run_ctest "$1" "$2"; fi
  timings+=("$(printf '%-8s build %6s   tests %6s' "$1" "$(minutes_of $((built - began)))" \
    "$(minutes_of $((SECONDS - built)))")")
}

# run_ctest PRESET FAST: the release suite runs at full scale unless asked to be fast, the sanitizers' at a small one.
run_ctest() {
  local size=$scale log=$root_folder/build/$1/ctest.log
  [[ $1 != release ]] || size=full
  [[ $2 -eq 0 ]] || size=small
  local lives=()
  [[ $1 != release ]] || lives=("${seeds[@]}")  # so many seeds are minutes there, and an hour under a sanitizer
  env "${lives[@]}" TROUPE_TEST_SCALE=$size \
    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS=second_deadlock_stack=1 \
    $(unrandomized "$1") ctest --test-dir "$root_folder/build/$1" -j "$jobs" --output-on-failure --no-tests=error \
    "${ctest_filter[@]}" | tee "$log" || failed=1
  summaries+=("$1|$(grep -E 'tests passed, .* tests failed out of' "$log" | tail -n 1 || true)")
}

# g++ 12's thread sanitizer stops on kernels that place memory with more random bits than it knows.
unrandomized() {
  if [[ $1 == tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then echo "setarch $(uname -m) -R"; fi
}

fuzz_seconds=60
run_fuzzers() {
  local target name corpus passed=0 broken=0
  for target in "$root_folder"/build/fuzz/bin/fuzz_*; do
    name=${target##*/} corpus=$root_folder/build/fuzz/corpus/${target##*/}
    mkdir -p "$corpus"
    local seeds=()
    [[ ! -d $root_folder/tests/fuzz/seeds/$name ]] || seeds=("$root_folder/tests/fuzz/seeds/$name")
    step "$name, $fuzz_seconds s"
    if "$target" -max_total_time="$fuzz_seconds" -print_final_stats=1 -artifact_prefix="$corpus.crash-" "$corpus" \
      "${seeds[@]}" >"$corpus.log" 2>&1; then
      passed=$((passed + 1))
      grep -E 'number_of_executed_units|peak_rss_mb' "$corpus.log"
    else
      broken=$((broken + 1)) failed=1
      tail -n 40 "$corpus.log"
    fi
  done
  [[ $((passed + broken)) -gt 0 ]] || fail "the preset fuzz built no program named fuzz_*."
  summaries+=("fuzz|$((passed * 100 / (passed + broken)))% tests passed, $broken tests failed out of $((passed + broken))")
}

# The last lines: where the time went, each suite's own summary, and one count of all.
close_tests() {
  local line all=0 bad=0
  say
  printf '%s\n' "${timings[@]}" >&3
  say "all parts $(minutes_of $SECONDS)"
  for line in "${summaries[@]}"; do
    printf '%-8s %s\n' "${line%%|*}" "${line#*|}"
    [[ $line =~ ,\ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]] || { failed=1; continue; }
    bad=$((bad + BASH_REMATCH[1])) all=$((all + BASH_REMATCH[2]))
  done
  printf 'tests: %d passed, %d failed\n' $((all - bad)) "$bad"
  [[ $failed -eq 0 && $all -gt 0 ]]
}
