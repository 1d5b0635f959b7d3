#!/usr/bin/env bash
# The test `layout`: every source is laid out as .clang-format says (version 14, since versions differ in taste).
#   layout_check.sh ROOT CLANG_FORMAT
# Mend with: clang-format -i FILE
set -euo pipefail
cd "$1"
find kernels runtime actors apps tests \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 "$2" --dry-run -Werror
