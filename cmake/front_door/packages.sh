# The packages of the system: which are missing, and their installation with apt.
# Only missing ones are installed, nothing is upgraded or removed.

build_packages=(ca-certificates cmake g++ libcli11-dev libedit-dev libfmt-dev libgmock-dev libgtest-dev libpcre2-dev libspdlog-dev
  libssl-dev ninja-build nlohmann-json3-dev pkg-config python3 python3-pip)
fuzz_packages=(clang)
lint_packages=(clang-format clang-tidy)

# ensure_packages NAME...: on a system without apt only the tools are looked at; CMake then names missing libraries.
ensure_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    ensure_tools
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [[ ${#missing[@]} -eq 0 ]] || install_packages "${missing[@]}"
}

missing_packages() {
  local have
  have=$({ dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true; } |
    sed -n 's/ installed$//p' | sort -u)
  comm -13 <(printf '%s\n' "$have") <(printf '%s\n' "$@" | sort -u)
}

ensure_tools() {
  local tool missing=()
  for tool in cmake ninja pkg-config python3 "${CXX:-g++}"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [[ ${#missing[@]} -eq 0 ]] ||
    fail "there is no apt on this system, and these tools are missing: ${missing[*]}." \
      "Install them and the libraries that docs/building.md lists, then run this again."
}

install_packages() {
  local root=() line="apt-get update && apt-get install -y --no-install-recommends $*"
  if [[ $(id -u) -ne 0 ]]; then
    may_use_sudo ||
      fail "these packages are missing, and installing them needs root's rights: $*." \
        "Have root run: $line ; then run this again."
    say "Installing packages needs root's rights; sudo may ask for your password."
    sudo -v || fail "sudo refused. Have root run: $line ; then run this again."
    root=(sudo)
  fi
  step "Installing missing packages: $*"
  open_cache
  need_space / 700 "installing packages"
  local log=$cache/apt.log
  : >"$log"
  "${root[@]}" dpkg --configure -a >>"$log" 2>&1 || blame "$log" "dpkg could not finish what an earlier run began."
  watched "package lists" apt_progress "$log" apt_get update || true  # one dead source of several is no reason to stop
  watched "packages" apt_progress "$log" apt_get install -y --no-install-recommends "$@" ||
    blame "$log" "apt could not install the packages; check the network and mend what apt says above, then run this again."
}

may_use_sudo() { command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; }

# apt_get ARG...: uses install_packages' root. The status lines of file descriptor 1 carry the percentage.
apt_get() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o APT::Status-Fd=1 -o DPkg::Lock::Timeout=300 \
    -o Acquire::Retries=3 "$@" </dev/null
}

apt_progress() {
  sed -n -E 's/^(dl|pm)status:[^:]*:([0-9]+)[^:]*:(.*)/\2 % \3/p' "$log" | tail -n 1 | cut -c1-60
}

# require_versions: said once, before the first configure; an old system fails here and not in the middle of a build.
require_versions() {
  local cxx=${CXX:-g++} have
  have=$(cmake --version | sed -n '1s/[^0-9]*//p')
  at_least "$have" 3.25 ||
    fail "cmake $have is too old, 3.25 is needed (Debian 12 has it; docs/building.md names other ways to a newer one)."
  have=$("$cxx" -dumpfullversion -dumpversion) || fail "the compiler $cxx does not run; install g++ 12 or set CXX."
  if "$cxx" --version | grep -qi clang; then at_least "$have" 14 || fail "clang $have is too old, 14 is needed."
  else at_least "$have" 12 || fail "g++ $have is too old, 12 is needed: install it and set CXX=g++-12."; fi
}

at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }
