# ./run bench --peers: sets up what the comparison with other programs needs, then becomes apps/peers/compare.py.
# The peers' packages live in a virtual environment in the cache; a peer that cannot be had is a line of the report and
# stops nobody else.

peers_folder=$root_folder/apps/peers
llama_package=llama-cpp-python==0.3.36
llama_archive=llama_cpp_python-0.3.36.tar.gz
llama_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
llama_flags=(-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=ON -DLLAMA_OPENSSL=OFF
  -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF)
# g++ 12 takes _tile_loadconfig to read 8 bytes of the 64 and leaves the stores to the others out; on a CPU with AMX the
# first tile instruction then ends the program. llama.cpp as it was meant to be: the compiler is told that all are read.
llama_mended=ggml/src/ggml-cpu/amx/mmq.cpp
llama_mend='s/^ *_tile_loadconfig(&tc);$/    __asm__ volatile("" : : "r"(\&tc) : "memory");\n&/'

# compare_peers [OPTION...]: --native-llama without a path is built here, every other option goes on as it is.
compare_peers() {
  local arguments=() native=0 own_program=${TROUPE_PROGRAM:-} own_model=
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help) exec python3 "$peers_folder/compare.py" --help ;;
      --native-llama) if [[ $# -gt 1 && $2 != -* ]]; then arguments+=("$1"); else native=1; fi ;;
      --program | --program=*) own_program=1 arguments+=("$1") ;;
      --model | --model=* | --shapes | --shapes=*) own_model=1 arguments+=("$1") ;;
      *) arguments+=("$1") ;;
    esac
    shift
  done
  ensure_packages "${build_packages[@]}"
  [[ -n $own_program ]] || build_preset release troupe
  open_cache
  [[ -n $own_model ]] || { ensure_model; arguments+=(--model "$(default_model_path)"); }
  locked "$cache/lock" ensure_peers
  [[ $native -eq 0 ]] || { locked "$cache/lock" ensure_native_llama; arguments+=(--native-llama "$native_llama"); }
  exec python3 "$peers_folder/compare.py" --venv "$peers_venv" --shapes-folder "$cache/shapes" "${arguments[@]}" 3>&-
}

# Sets peers_venv. The name holds a digest of the pinned packages and of Python's version, so it is right or absent.
ensure_peers() {
  local python version log=$cache/work/peers.log
  python=$(python_with_pip)
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  peers_venv=$cache/peers-$({ cat "$peers_folder/requirements.txt"; echo "$version"; } | digest)
  [[ ! -x $peers_venv/bin/python ]] || return 0
  step "Installing the other programs' packages (120 MB to fetch, once) into $peers_venv"
  need_space "$cache" 1000 "the other programs"
  rm -rf "$peers_venv.part"
  mkdir -p "$cache/work" "$peers_venv.part"
  : >"$log"
  if watched "packages" peers_progress "$log" install_peers; then
    mv "$peers_venv.part" "$peers_venv"
  else
    say "The other programs' packages could not be installed (log: $log); the comparison goes on without them."
  fi
}

# Without a pip of its own an environment needs no more than Python's library; the outer pip installs into it.
install_peers() {
  "$python" -m venv --without-pip "$peers_venv.part" &&
    TMPDIR=$cache/work "$python" -m pip --python "$peers_venv.part/bin/python" install --require-hashes \
      --only-binary :all: --no-cache-dir --no-input --disable-pip-version-check --progress-bar off \
      -r "$peers_folder/requirements.txt"
}

peers_progress() { printf '%d MB in place' $(($(du -sb "$peers_venv.part" 2>/dev/null | cut -f1) / 1000000)); }

# Sets native_llama: llama.cpp's llama-batched-bench, built for this very CPU out of llama-cpp-python's source archive.
ensure_native_llama() {
  local folder
  folder=$cache/llama.cpp-$({ echo "$llama_sha256 ${llama_flags[*]} $llama_mend"; "${CXX:-g++}" -dumpfullversion -dumpmachine
    grep -m 1 '^flags' /proc/cpuinfo; } | digest)
  native_llama=$folder/llama-batched-bench
  [[ ! -x $native_llama ]] || return 0
  step "Building llama.cpp for this CPU (once, about 6 CPU minutes) into $folder"
  need_space "$cache" 1200 "building llama.cpp"
  local work=$cache/work/llama log=$cache/work/llama.log
  mkdir -p "$work" "$folder.part"
  : >"$log"
  fetch_llama
  cmake -S "$work/source/vendor/llama.cpp" -B "$work/build" -G Ninja "${llama_flags[@]}" "${launcher[@]}" >>"$log" 2>&1 ||
    blame "$log" "llama.cpp could not be configured; leave --native-llama away, or mend what cmake says above."
  watched "llama.cpp" ninja_progress "$log" ninja -C "$work/build" -j "$jobs" llama-batched-bench ||
    blame "$log" "llama.cpp could not be built; a rerun goes on from here, or leave --native-llama away."
  rm -rf "$folder"
  mv "$work/build/bin/llama-batched-bench" "$folder.part/"
  mv "$folder.part" "$folder"
  rm -rf "$work"
}

# fetch_llama: uses ensure_native_llama's work and log.
fetch_llama() {
  [[ ! -d $work/source ]] || return 0
  local python archive=$cache/download/$llama_archive
  python=$(python_with_pip)
  mkdir -p "$cache/download"
  if ! llama_archive_is_right; then
    step "Fetching llama.cpp's source (77 MB)"
    watched "source" llama_progress "$log" download_llama ||
      blame "$log" "llama.cpp's source could not be fetched with pip; check the network, or leave --native-llama away."
    llama_archive_is_right ||
      fail "the archive $archive is not the one expected (its checksum differs); remove it and run this again."
  fi
  rm -rf "$work/source.part"
  mkdir "$work/source.part"
  tar -xzf "$archive" -C "$work/source.part" --strip-components=1 ||
    fail "llama.cpp's archive could not be unpacked into $work; is there space? Then run this again."
  sed -i "$llama_mend" "$work/source.part/vendor/llama.cpp/$llama_mended" ||
    fail "llama.cpp's $llama_mended could not be mended in $work; is there space? Then run this again."
  mv "$work/source.part" "$work/source"
}

llama_archive_is_right() { [[ -f $archive ]] && echo "$llama_sha256  $archive" | sha256sum --check --status; }

download_llama() {
  TMPDIR=$work "$python" -m pip download --no-deps --no-binary llama-cpp-python --no-cache-dir --no-input \
    --disable-pip-version-check --progress-bar off -d "$cache/download" "$llama_package"
}

llama_progress() { printf '%d of 77 MB' $(($(du -sb "$work" 2>/dev/null | cut -f1) / 1000000)); }
