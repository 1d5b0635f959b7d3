# ./run lint: layout by clang-format, then clang-tidy over the release build's compile database.

lint_all() {
  ensure_packages "${build_packages[@]}" "${lint_packages[@]}"
  is_configured release || build_preset release
  step "Checking the layout"
  all_sources '*.h' '*.cpp' | xargs -0 clang-format --dry-run -Werror ||
    fail "the layout differs from .clang-format; run clang-format -i on the files named above."
  step "Running clang-tidy"
  all_sources '*.cpp' | xargs -0 -n 1 -P "$jobs" clang-tidy --quiet -p "$root_folder/build/release" ||
    fail "clang-tidy has complaints; mend what it says above."
}

# all_sources PATTERN...: the project's own files, divided by zero bytes.
all_sources() {
  local names=() pattern
  for pattern in "$@"; do names+=(-o -name "$pattern"); done
  (cd "$root_folder" && find "$PWD/kernels" "$PWD/runtime" "$PWD/actors" "$PWD/apps" "$PWD/tests" -type f \
    \( "${names[@]:1}" \) -print0)
}
