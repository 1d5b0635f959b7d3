"""llama.cpp and ik_llama.cpp, by their own llama-batched-bench.

It reads all prompts, then decodes one token of every sequence a step; its rate is that of the decoding alone. It takes
random tokens instead of sampling and makes no text, so its figures are an upper bound of what a server of the same code
gives. Each load is run twice in one process (`-npl N,N`) and the second row counts.
"""
import json
import os
import subprocess

from programs import Program, Reading, absent


def found(name, note, program, extra=()):
    if not os.access(program, os.X_OK):
        return absent(name, note, f"there is no program {program}")
    words = list(extra)
    if "--output-format" in options_of(program):
        words += ["--output-format", "jsonl"]
    return Program(name, note, lambda load: command(program, load, words), read)


def found_ik(program):
    """ik_llama.cpp as it is, and with its repacking at load where it has the option."""
    plain = found("ik_llama.cpp", "a build of yours", program)
    if plain.trouble or "-rtr" not in options_of(program):
        return [plain]
    return [plain, found("ik_llama.cpp rtr", "a build of yours, weights repacked at load", program, ["-rtr"])]


def options_of(program):
    answer = subprocess.run([program, "--help"], capture_output=True, text=True, errors="replace", check=False)
    return answer.stdout + answer.stderr


def command(program, load, extra):
    return [program, "-m", load.model, "-c", str(load.sessions * load.context), "-t", str(load.threads),
            "-tb", str(load.threads), "-npp", str(load.prompt), "-ntg", str(load.generate),
            "-npl", f"{load.sessions},{load.sessions}", *extra]


def read(load, text):
    rows = rows_of(text)
    if not rows:
        raise ValueError("llama-batched-bench printed no row of its table")
    return Reading(rows[-1]["speed_pp" if load.kind == "prefill" else "speed_tg"])


def rows_of(text):
    """The rows as it prints them, either one JSON object a line or a table between bars."""
    rows = []
    for line in text.splitlines():
        if line.startswith("{"):
            rows.append(json.loads(line))
        elif line.startswith("|"):
            rows += [dict(zip(COLUMNS, map(float, cells)))] if (cells := numbers_of(line)) else []
    return rows


COLUMNS = ("pp", "tg", "pl", "n_kv", "t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed")


def numbers_of(line):
    """The ten cells of a row of figures; nothing for the heading and the line below it."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return cells if len(cells) == len(COLUMNS) and cells[0].isdigit() else []
