"""What is compared: a load, a program that can run it, and what one run of it says.

A program is two functions: `command` turns a load into the words of a process, `read` turns what that process printed
into a reading. Neither knows of rounds, priorities or reports. One module a program; `found` in each of them gives the
programs that this machine can run, and those that it cannot, with the reason as a sentence in `trouble`.

Every program runs a load once to warm up and is measured on the second time: lazily compiled kernels and first touches
of memory are no part of a rate. The mistake to avoid is a load of a program's own: all that differs between programs
has to stand in its `note`, which the report prints.
"""
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Load:
    """One cell of the comparison. `kind` "decode": the rate is tokens/s of all sessions together while all of them
    decode; "prefill": the rate is prompt tokens/s of one session up to its first token."""
    kind: str
    model: str
    sessions: int
    prompt: int
    generate: int
    threads: int
    vocabulary: int
    kv_bytes: int  # of one token, keys and values in 16 bits

    @property
    def context(self):
        """Tokens a session may hold; 256 is llama.cpp's own grain."""
        return (self.prompt + self.generate + 255) // 256 * 256

    @property
    def label(self):
        return "prefill" if self.kind == "prefill" else str(self.sessions)


@dataclass(frozen=True)
class Reading:
    rate: float
    peak_megabytes: float | None = None       # where the program knows better than the system (see troupe.py)
    bandwidth_gb_per_second: float | None = None
    weight_bytes: float | None = None         # read for each token of one session


@dataclass(frozen=True)
class Program:
    name: str
    note: str
    command: Callable[[Load], list[str]]
    read: Callable[[Load, str], Reading]
    trouble: str | None = None


def absent(name, note, trouble):
    """A program that stands in the report with the reason why it was not run."""
    return Program(name, note, lambda load: [], lambda load, text: Reading(0.0), trouble)
