# What outlives one ./run: the cache folder, locks and stamps.
# Rule for everything kept: written under a temporary name, checked, then renamed; so what has its final name is whole.

cache=${TROUPE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/troupe}
[[ $cache == /* ]] || cache=$PWD/$cache

open_cache() {
  can_write "$cache" ||
    fail "the cache folder $cache cannot be written; set TROUPE_CACHE to a folder of yours and run this again."
}

can_write() { mkdir -p "$1" 2>/dev/null && [[ -w $1 ]]; }

# locked FILE COMMAND...: runs it while no other ./run holds the file. The children of the command inherit the lock, so
# it is held as long as one of them still writes.
locks=()
locked() {
  local file=$1 lock
  shift
  exec {lock}>"$file" || fail "the lock file $file cannot be written; check the rights of its folder."
  flock -n "$lock" || {
    say "Another ./run is at work here; waiting for it to end (Ctrl-C gives up)."
    flock "$lock"
  }
  locks+=("$lock")
  "$@"
  unset 'locks[-1]'
  exec {lock}>&-
}

forget_locks() {
  local lock
  for lock in "${locks[@]}"; do exec {lock}>&-; done
}

# digest: 16 hex digits of what stands on stdin.
digest() { sha256sum | cut -c1-16; }

# need_space FOLDER MIB WHAT: refuses early what would end in a half-written file.
need_space() {
  local free
  free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
  [[ $free -ge $2 ]] && return
  local advice="free some and run this again."
  [[ $1 != "$cache" ]] || advice="free some, or set TROUPE_CACHE to a folder with more room, and run this again."
  fail "$3 needs $2 MiB in $1, where $free MiB are free; $advice"
}

# blame LOG SENTENCE: shows the part of a log that tells the cause, and ends.
blame() {
  if grep -q '^FAILED: ' "$1"; then
    grep -A 30 -m 1 '^FAILED: ' "$1" | cut -c1-400 >&3
  else
    grep -vE '^(dl|pm)status:' "$1" | tail -n 20 | cut -c1-400 >&3
  fi
  if grep -qi 'No space left on device' "$1"; then
    fail "the disk is full; free some space (or set TROUPE_CACHE to another disk) and run this again. Log: $1"
  fi
  fail "$2 Log: $1"
}
