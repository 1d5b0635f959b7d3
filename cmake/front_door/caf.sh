# CAF, the C++ Actor Framework: an installed 0.18.x if there is one, else 0.18.7 from Debian's source archive, built once
# into the cache (static, position independent, modules core, io and openssl).
# Debian has this version as a source package only, in its suite experimental. Here apt fetches it with lists of its own
# (the machine's lists stay as they are, no root's rights needed) and verifies the archive's signature; the checksum
# below pins the content.

caf_version=0.18.7
caf_package=actor-framework=0.18.7-1~exp1
caf_archive=actor-framework_0.18.7.orig.tar.gz
caf_sha256=d5c3abe8fd67a729aab1baeece10367637d903ba335f4c79378bcadfbcd34552
# CAF's own sources give warnings under C++20, so they are built without our warning flags; a unity build fails.
caf_flags=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 -DCMAKE_CXX_STANDARD_REQUIRED=ON
  -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_LIBDIR=lib
  -DCAF_ENABLE_TESTING=OFF -DCAF_ENABLE_EXAMPLES=OFF -DCAF_ENABLE_TOOLS=OFF -DCAF_ENABLE_EXCEPTIONS=ON
  -DCAF_ENABLE_IO_MODULE=ON -DCAF_ENABLE_OPENSSL_MODULE=ON)

# choose_caf KIND: sets caf_dir, the folder of the package config. KIND "plain" takes an installed CAF where there is
# one; "thread" is always our own build with the thread sanitizer, without which the sanitizer reports false races.
choose_caf() {
  caf_dir=
  [[ $1 == thread ]] || find_installed_caf
  [[ -n $caf_dir ]] || build_caf "$1"
}

find_installed_caf() {
  local probe others=
  probe=$(mktemp -d "$cache/probe.XXXXXX")
  if cmake -S "$root_folder/cmake/find_caf" -B "$probe" -G Ninja >"$probe.log" 2>&1; then
    { read -r caf_dir; read -r others; } <"$probe/answer.txt" || true
  else
    rm -rf "$probe"
    blame "$probe.log" "cmake cannot set up a small project; see above (a compiler that does not run, or a missing library)."
  fi
  rm -rf "$probe" "$probe.log"
  [[ -z $caf_dir ]] || step "Using the installed CAF in $caf_dir"
  [[ -z $others ]] || say "$others"
}

# build_caf KIND: the name of the install folder holds a digest of all that shapes the build, so it is right or absent.
build_caf() {
  local flags=("${caf_flags[@]}")
  [[ $1 != thread ]] || flags+=(-DCAF_SANITIZERS=thread)
  local name prefix
  name=caf-$caf_version-$({ echo "$caf_sha256 ${flags[*]}"; "${CXX:-g++}" -dumpfullversion -dumpmachine; } | digest)
  prefix=$cache/$name
  caf_dir=$prefix/lib/cmake/CAF
  [[ -f $caf_dir/CAFConfig.cmake ]] && return
  local kind="once, about 6 CPU minutes"
  [[ $1 != thread ]] || kind="with the thread sanitizer, once, about 8 CPU minutes"
  step "Building CAF $caf_version ($kind) into $prefix"
  need_space "$cache" 200 "building CAF"
  fetch_caf
  compile_caf "$cache/work/$name" "$prefix"
}

# compile_caf WORK PREFIX: uses build_caf's flags. A stopped build goes on where it was.
compile_caf() {
  local work=$1 prefix=$2
  mkdir -p "$work"
  if [[ ! -d $work/source ]]; then
    rm -rf "$work/source.part"
    mkdir "$work/source.part"
    tar -xzf "$cache/download/$caf_archive" -C "$work/source.part" --strip-components=1 ||
      fail "CAF's archive could not be unpacked into $work; is there space? Then run this again."
    mv "$work/source.part" "$work/source"
  fi
  local log=$work/build.log
  cmake -S "$work/source" -B "$work/build" -G Ninja "${flags[@]}" "${launcher[@]}" >"$log" 2>&1 ||
    blame "$log" "CAF could not be configured; mend what cmake says above and run this again."
  watched "CAF" ninja_progress "$log" cmake --build "$work/build" -j "$jobs" ||
    blame "$log" "CAF could not be built; see above. A rerun goes on from here."
  rm -rf "$prefix.part"
  cmake --install "$work/build" --prefix "$prefix.part" >>"$log" 2>&1 ||
    blame "$log" "CAF could not be installed into the cache."
  rm -rf "$prefix"
  mv "$prefix.part" "$prefix"
  rm -rf "$work"
}

fetch_caf() {
  local archive=$cache/download/$caf_archive
  mkdir -p "$cache/download"
  caf_archive_is_right "$archive" && return
  command -v apt-get >/dev/null ||
    fail "CAF $caf_version is taken from Debian's source archive, and this system has no apt. Build CAF 0.18 yourself" \
      "(docs/building.md, 'CAF') or put $caf_archive into $cache/download, then run this again."
  step "Fetching CAF's source archive"
  local work=$cache/work/fetch mirror log=$cache/work/fetch/apt.log
  rm -rf "$work"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  while read -r mirror; do
    fetch_caf_from "$mirror" && mv "$work/$caf_archive" "$archive" && { rm -rf "$work"; return; }
  done < <(debian_mirrors)
  [[ -f $log ]] || fail "apt here is set up with no Debian archive, from which CAF's source comes. Build CAF 0.18 yourself" \
    "(docs/building.md, 'CAF') or put $caf_archive into $cache/download, then run this again."
  blame "$log" "CAF's source could not be fetched; check the network and run this again, or put $caf_archive into $cache/download."
}

# The archives that apt here uses, likely ones first; apt itself reads both formats of its source lists.
# shellcheck disable=SC2016
debian_mirrors() {
  local all
  all=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep -v -- '-security' | awk '!seen[$0]++')
  { grep -E '/debian/?$|/debian\.list/?$' <<<"$all"; grep -vE '/debian/?$|/debian\.list/?$' <<<"$all"; } | head -n 4
}

# fetch_caf_from MIRROR: uses fetch_caf's work and log. --error-on=any makes a bad signature an error and not a warning.
fetch_caf_from() {
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg
  [[ -r $keys ]] || fail "Debian's signing keys ($keys) are missing; install debian-archive-keyring and run this again."
  echo "deb-src [signed-by=$keys] $1 experimental main" >"$work/sources.list"
  local options=(-q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root
    -o Acquire::AllowInsecureRepositories=false -o APT::Get::AllowUnauthenticated=false -o Acquire::Retries=3)
  apt-get "${options[@]}" update --error-on=any >"$log" 2>&1 || return 1
  (cd "$work" && apt-get "${options[@]}" source --download-only --tar-only "$caf_package" >>"$log" 2>&1) || return 1
  caf_archive_is_right "$work/$caf_archive" || { echo "$caf_archive has a wrong checksum" >>"$log"; return 1; }
}

caf_archive_is_right() { [[ -f $1 ]] && echo "$caf_sha256  $1" | sha256sum --check --status; }
