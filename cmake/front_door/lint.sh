# ./run lint: layout by clang-format, then clang-tidy over the release build's compile database.

lint_all() {
  ensure_packages "${build_packages[@]}" "${lint_packages[@]}"
  build_preset release
  step "Checking the layout"
  "$root_folder/tests/house/layout_check.sh" "$root_folder" clang-format ||
    fail "the layout differs from .clang-format; run clang-format -i on the files named above."
  step "Running clang-tidy"
  own_sources | xargs -0 -n 1 -P "$jobs" clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option \
    -p "$root_folder/build/release" ||
    fail "clang-tidy has complaints; mend what it says above."
}

# The project's own sources as the compile database names them, divided by zero bytes.
own_sources() {
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1\x00/p' "$root_folder/build/release/compile_commands.json" | tr -d '\n' | sort -zu
}
