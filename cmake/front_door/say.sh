# What ./run says, and how it ends. Results of a command go to stdout, every word of this file to stderr.
# Exit codes: 0 done, 1 failed, 2 wrong use, 130 stopped by the user.

# The user's eyes: stderr as it was at the start, also while a command's own output is sent into a log.
exec 3>&2

say() { printf '%s\n' "$*" >&3; }
step() { printf '==> %s\n' "$*" >&3; }

# fail SENTENCE...: one sentence that names what went wrong and what to do next.
fail() {
  printf 'run: %s\n' "$*" >&3
  exit 1
}

wrong_use() {
  printf "run: %s ('./run help' lists the commands)\n" "$*" >&3
  exit 2
}

# watched LABEL MEASURE LOG COMMAND...: runs the command in the foreground, so that Ctrl-C reaches it, with its output in
# the log, and shows what the function MEASURE prints (how far it is): a live line on a terminal, else a plain line every
# 30 seconds.
ticker_pid=
watched() {
  local label=$1 measure=$2 log=$3 rc=0
  shift 3
  ticker "$label" "$measure" &
  ticker_pid=$!
  "$@" >>"$log" 2>&1 || rc=$?
  stop_ticker
  return "$rc"
}

# Sleeps briefly even where it speaks rarely, so that nothing of it is left half a second after its end; and lets go of
# stdout, which a caller's $(...) waits for, and of the locks, which belong to the work.
ticker() {
  exec >/dev/null
  forget_locks
  local began=$SECONDS spoke=$SECONDS line
  while sleep 0.5 && kill -0 $$ 2>/dev/null; do
    line="    $1: $("$2") ($(minutes_of $((SECONDS - began))))"
    if [[ -t 3 ]]; then
      printf '\r\033[K%s' "$line" >&3
    elif [[ $((SECONDS - spoke)) -ge 30 ]]; then
      say "$line"
      spoke=$SECONDS
    fi
  done
}

stop_ticker() {
  [[ -n $ticker_pid ]] || return 0
  kill "$ticker_pid" 2>/dev/null || true
  wait "$ticker_pid" 2>/dev/null || true
  ticker_pid=
  if [[ -t 3 ]]; then printf '\r\033[K' >&3; fi
}

interrupted() {
  trap '' INT TERM
  stop_ticker
  say
  say "Stopped. What is done is kept: the same command goes on from here."
  exit 130
}

minutes_of() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }
