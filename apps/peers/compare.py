"""Compares troupe with other programs on this machine: same file, threads, prompts' and answers' lengths.

`./run bench --peers` builds and installs what this needs and then calls it; it needs no more than Python's own library.
For each model: rounds of (1, 2, 4, ... sessions, then a prompt of 512 tokens), and for each of those every program in
turn, each in a process of its own, the first of them another one each round. So a noisy minute hits all programs. A run
that others disturbed is repeated. The report is made of medians. A program that fails is reported with its error and
stops nobody else.
"""
import argparse
import json
import os
import platform
import signal
import sys
import time

import report
from figures import Samples, digest
from gguf_header import sizes_of
from measure import run_process
from programs import Load, batched_bench, packaged, troupe
from random_gguf import FILE_TYPE, SHAPES, write

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETTINGS = ("sessions", "prompt", "generate", "threads", "rounds")
PREFILL = 512
LIMIT_SECONDS = 900  # of one process
QUIET, ATTEMPTS = 0.1, 3  # a run counts when others took no more of the machine, else the quietest of three


def options_of(words):
    parser = argparse.ArgumentParser(prog="./run bench --peers", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__.partition("\n")[0], epilog=EPILOG)
    add = parser.add_argument
    add("--model", action="append", default=[], metavar="FILE",
        help="a GGUF file, may be given again (else the default model)")
    add("--shapes", nargs="?", const=",".join(f"{s}:{t}" for s in SHAPES for t in FILE_TYPE), default="",
        metavar="LIST", help="make random-weight files and measure them: llama-3.2-1b:Q4_0,smollm2-135m:Q8_0 (all)")
    add("--sessions", default="1,2,4,8,16,32", metavar="LIST", help="numbers of sessions (1,2,4,8,16,32)")
    add("--prompt", type=positive, default=32, metavar="N", help="prompt tokens of a session (32)")
    add("--generate", type=positive, default=64, metavar="N", help="tokens each session generates (64)")
    add("--threads", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
        help="compute threads (one a usable CPU)")
    add("--rounds", type=positive, default=3, metavar="N", help="how often each is measured (3)")
    add("--out", default=os.path.join(ROOT, "build", "peers"), metavar="FOLDER",
        help="where the report goes (build/peers)")
    add("--json", action="store_true", help="the report as JSON on stdout, the table on stderr")
    add("--program", default=os.environ.get("TROUPE_PROGRAM") or os.path.join(ROOT, "build/release/bin/troupe"),
        metavar="PATH", help="which troupe (TROUPE_PROGRAM, else build/release/bin/troupe, which is then built)")
    add("--native-llama", nargs="?", const="", metavar="PATH",
        help="also llama.cpp built for this CPU (once, about 6 CPU minutes)")
    add("--llama-batched-bench", metavar="PATH", help="also a llama-batched-bench of yours")
    add("--ik", metavar="PATH", help="also ik_llama.cpp's llama-batched-bench")
    add("--only", default="", metavar="LIST", help="measure only these programs, by the names in the table")
    add("--venv", default="", help=argparse.SUPPRESS)    # the front door says where things are
    add("--shapes-folder", default=os.path.join(ROOT, "build", "peers"), help=argparse.SUPPRESS)
    return parser.parse_args(words)


EPILOG = """Programs: troupe; xllamacpp and openvino-genai from their packages; those named by options.
The report goes to FOLDER/peers.json and FOLDER/peers.html. Exit code 1: troupe itself could not be measured."""


def positive(word):
    if not word.isdigit() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"'{word}' is no whole number above 0")
    return int(word)


def say(sentence):
    print(sentence, file=sys.stderr, flush=True)


def found_programs(options):
    programs = [troupe.found(options.program), *packaged.found(options.venv)]
    if options.native_llama:
        note = "llama-batched-bench out of llama-cpp-python's source, built here for this CPU"
        programs.append(batched_bench.found("llama.cpp native", note, options.native_llama))
    if options.llama_batched_bench:
        programs.append(batched_bench.found("llama.cpp", "a build of yours", options.llama_batched_bench))
    if options.ik:
        programs += batched_bench.found_ik(options.ik)
    known = [program.name for program in programs]
    names = options.only.split(",") if options.only else known
    if not set(names) <= set(known):
        raise SystemExit(f"--only takes some of {', '.join(known)}, not '{options.only}'")
    return [program for program in programs if program.name in names]


def models_of(options):
    """The files to measure; random ones are made here, once."""
    files = list(options.model)
    for item in filter(None, options.shapes.split(",")):
        shape, _, kind = item.partition(":")
        if shape not in SHAPES or kind not in FILE_TYPE:
            raise SystemExit(f"there is no shape '{item}'; it is one of {', '.join(SHAPES)}, a colon, "
                             f"and one of {', '.join(FILE_TYPE)}")
        files.append(os.path.join(options.shapes_folder, f"random-{shape}-{kind}.gguf"))
        if not os.path.isfile(files[-1]):
            say(f"==> Writing {files[-1]}")
            os.makedirs(options.shapes_folder, exist_ok=True)
            write(files[-1], shape, SHAPES[shape], kind)
    return files


def loads_of(options, model, vocabulary, kv_bytes):
    def load(kind, sessions, prompt, generate):
        return Load(kind, model, sessions, prompt, generate, options.threads, vocabulary, kv_bytes)
    numbers = map(int, options.sessions.split(","))
    return [*(load("decode", n, options.prompt, options.generate) for n in numbers), load("prefill", 1, PREFILL, 2)]


def measure_model(options, programs, loads):
    samples = Samples()
    for turn in range(options.rounds):
        for load in loads:
            for i in range(len(programs)):
                program = programs[(i + turn) % len(programs)]
                if load.label not in samples.troubles[program.name]:
                    said = measure_cell(program, load, samples)
                    say(f"    round {turn + 1} of {options.rounds}, {load.label:>7}: {program.name}: {said}")
    return samples


def measure_cell(program, load, samples):
    """One process; what it gave goes into the samples, and a sentence about it comes back."""
    trouble = program.trouble
    if not trouble:
        outcome = quiet_run(program.command(load))
        trouble = outcome.trouble
    if not trouble:
        try:
            reading = program.read(load, outcome.text)
            samples.add(program.name, load.label, reading, outcome)
            return f"{reading.rate:.1f} tokens/s, others took {100 * outcome.others:.0f} % of the machine"
        except (ValueError, KeyError, IndexError) as error:
            trouble = f"what it printed cannot be read ({error})"
    samples.troubles[program.name][load.label] = trouble
    return trouble


def quiet_run(command):
    outcomes = []
    while len(outcomes) < ATTEMPTS:
        outcomes.append(run_process(command, LIMIT_SECONDS))
        if outcomes[-1].trouble or outcomes[-1].others <= QUIET:
            return outcomes[-1]
    return min(outcomes, key=lambda outcome: outcome.others)


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.machine(), "cpus": len(os.sched_getaffinity(0)),
            "system": f"{platform.system()} {platform.release()}"}


def compare(options):
    programs = found_programs(options)
    whole = {"machine": machine(), "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
             "settings": {key: getattr(options, key) for key in SETTINGS},
             "programs": [{"name": program.name, "note": program.note} for program in programs], "models": []}
    for path in models_of(options):
        say(f"==> {os.path.basename(path)}")
        loads = loads_of(options, path, *sizes_of(path))
        figures = digest(measure_model(options, programs, loads), [load.label for load in loads], troupe.NAME)
        whole["models"].append({"file": os.path.basename(path), "bytes": os.path.getsize(path), **figures})
        report.write(whole, options.out)  # after each model: a long comparison that is stopped keeps what it has
    return whole


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that a program in work ends with this one
    options = options_of(sys.argv[1:])
    if not all(word.isdigit() and int(word) for word in options.sessions.split(",")):
        raise SystemExit(f"--sessions takes whole numbers above 0 between commas, not '{options.sessions}'")
    try:
        whole = compare(options)
    except (OSError, ValueError, KeyError) as error:
        raise SystemExit(f"the comparison stopped: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    print(report.table_of(whole), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(whole, indent=1))
    say(f"The report is in {options.out}/peers.html and {options.out}/peers.json")
    return 0 if all(was_measured(model, troupe.NAME) for model in whole["models"]) else 1


def was_measured(model, name):
    return bool(model["programs"].get(name, {}).get("rates"))


if __name__ == "__main__":
    sys.exit(main())
