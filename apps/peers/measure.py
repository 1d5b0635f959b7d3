"""Runs one process to its end: raised priority, a time limit, what it printed, the peak of its resident memory, and how
much of the machine others used meanwhile.

Peak memory is the kernel's own count for that process (ru_maxrss of wait4), mapped pages of files included. Where the
user is root the process gets a raised weight, and its session's group too, since with the kernel's automatic groups the
weight of a process counts inside its group alone; the same for every program. Nothing is pinned.
"""
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

NICENESS = -20  # beside ordinary processes this leaves them some 1 % of a busy machine


@dataclass(frozen=True)
class Outcome:
    text: str                # its standard output
    peak_megabytes: float
    others: float            # share of the machine's processor time that others took meanwhile, loading included
    trouble: str | None      # why it counts as failed, as a sentence


def run_process(command, limit_seconds):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began, busy = time.monotonic(), busy_seconds()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True, preexec_fn=raise_priority)
        except OSError as error:
            return Outcome("", 0.0, 0.0, f"it could not be started: {error.strerror}")
        status, usage, late = wait(process, limit_seconds)
        trouble = f"it took longer than {limit_seconds} s" if late else what_went_wrong(status, text_of(err))
        others = busy_seconds() - busy - usage.ru_utime - usage.ru_stime
        share = max(0.0, others / (os.cpu_count() * (time.monotonic() - began)))
        return Outcome(text_of(out), usage.ru_maxrss * 1024 / 1e6, share, trouble)


def busy_seconds():
    """Processor time that the whole machine has used since its start."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, *interrupts = map(int, file.readline().split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def raise_priority():
    if os.geteuid() != 0:
        return
    try:
        os.nice(NICENESS)
        with open("/proc/self/autogroup", "w", encoding="ascii") as group:
            group.write(str(NICENESS))
    except OSError:
        pass  # a container without the right, or a kernel without groups: all programs are without it then


def wait(process, limit_seconds):
    """(exit status, resource usage, whether the limit ended it). Ends the whole group, which is of its own."""
    late = threading.Event()

    def end():
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit_seconds, end)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage, late.is_set()


def text_of(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def what_went_wrong(status, errors):
    if status == 0:
        return None
    how = f"signal {-status}" if status < 0 else f"exit code {status}"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f"{how}: {lines[-1][:300]}" if lines else how
