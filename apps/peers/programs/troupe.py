"""troupe itself, by its own `troupe bench --json`.

Its rate counts the tokens that came while all sessions decoded. The bench runs each load first without actors, which
warms up. Peak memory is the bench's own figure: it is taken before the bandwidth is measured, which needs a gigabyte.
"""
import json
import os

from programs import Program, Reading, absent

NAME = "troupe"
NOTE = "sessions as actors, batched by messages; sampling and text included"


def found(program):
    if not os.access(program, os.X_OK):
        return absent(NAME, NOTE, f"there is no program {program}; './run build' makes it")
    return Program(NAME, NOTE, lambda load: command(program, load), read)


def command(program, load):
    tokens = load.sessions * load.context
    words = [program, "bench", load.model, "--json", "--no-table", "--threads", str(load.threads),
             "--context", str(load.context), "--kv-memory", str(tokens * load.kv_bytes // 1_000_000 + 1),
             "--sessions", str(load.sessions), "--prompt", str(load.prompt), "--generate", str(load.generate)]
    return words if measures_bandwidth(load) else words + ["--no-bandwidth"]


def measures_bandwidth(load):
    return load.kind == "decode" and load.sessions == 1


def read(load, text):
    report = json.loads(text)
    run = report["runs"][0]
    peak = report["peak_megabytes"]
    if load.kind == "prefill":
        return Reading(1e3 * load.prompt / run["first_token_ms_p50"], peak)
    rate = run["tokens_per_second"]
    if not measures_bandwidth(load):
        return Reading(rate, peak)
    bandwidth = report["read_bandwidth_gb_per_second"]
    used = report["one_session_share_of_bandwidth"] * bandwidth
    return Reading(rate, peak, bandwidth, 1e9 * used / rate)
