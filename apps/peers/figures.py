"""Figures out of samples: medians with their spread, and ratios to the best peer. No files, no processes.

`Samples` of one model hold the rates of the rounds for each program and cell (a number of sessions, or "prefill").
"""
import statistics
from collections import defaultdict


class Samples:
    def __init__(self):
        self.rates = defaultdict(lambda: defaultdict(list))   # program -> cell -> tokens/s, one a round
        self.peaks = defaultdict(dict)                        # program -> cell -> megabytes, the most of the rounds
        self.others = []                                      # share of the machine that others took, of every run
        self.troubles = defaultdict(dict)                     # program -> cell -> sentence
        self.bandwidths, self.weights = [], []                # GB/s a round; bytes read for a token of one session

    def add(self, program, cell, reading, outcome):
        self.rates[program][cell].append(reading.rate)
        self.others.append(outcome.others)
        peak = reading.peak_megabytes or outcome.peak_megabytes
        self.peaks[program][cell] = max(peak, self.peaks[program].get(cell, 0.0))
        if reading.bandwidth_gb_per_second:
            self.bandwidths.append(reading.bandwidth_gb_per_second)
            self.weights.append(reading.weight_bytes)


def summary_of(rates):
    """The median, and the lowest and the highest."""
    return {"median": statistics.median(rates), "low": min(rates), "high": max(rates), "samples": list(rates)}


def best_peer(values, own, best=max):
    """(name, value) of the best of the others, or None where there is none. `values` is {program: value}."""
    others = {name: value for name, value in values.items() if name != own}
    return best(others.items(), key=lambda item: item[1]) if others else None


def ratio_to_best(values, own, best=max):
    peer = best_peer(values, own, best)
    if peer is None or own not in values:
        return None
    return {"peer": peer[0], "ratio": values[own] / peer[1]}


def digest(samples, cells, own):
    """All of one model as plain data: figures of each program, ratios of `own` to the best peer, the roofline, and how
    much of the machine others took. Neighbours only ever slow a program down, and spinning threads most of all, so the
    ratios of the best rounds stand beside those of the medians."""
    programs = {name: {"rates": {cell: summary_of(rates) for cell, rates in by_cell.items()},
                       "peak_megabytes": samples.peaks[name], "troubles": samples.troubles[name]}
                for name, by_cell in samples.rates.items()}
    for name, troubles in samples.troubles.items():
        programs.setdefault(name, {"rates": {}, "peak_megabytes": {}, "troubles": troubles})
    ratios = {cell: ratio_to_best(values_of(programs, cell), own) for cell in cells}
    best_rounds = {cell: ratio_to_best(values_of(programs, cell, "high"), own) for cell in cells}
    return {"programs": programs, "ratios": ratios, "ratios_of_best_rounds": best_rounds,
            "memory": memory_ratio(programs, cells, own),
            "roofline": roofline(samples, programs),
            "others": summary_of(samples.others) if samples.others else None}


def values_of(programs, cell, which="median"):
    return {name: each["rates"][cell][which] for name, each in programs.items() if cell in each["rates"]}


def memory_ratio(programs, cells, own):
    """Peak memory with the most sessions, against the peer that needs least."""
    numbers = [cell for cell in cells if cell != "prefill"]
    if not numbers:
        return None
    most = max(numbers, key=int)
    peaks = {name: each["peak_megabytes"][most] for name, each in programs.items() if most in each["peak_megabytes"]}
    answer = ratio_to_best(peaks, own, min)
    return answer and answer | {"sessions": int(most)}


def roofline(samples, programs):
    """What one session's decoding reads of the weights a second, against what the memory gives."""
    if not samples.bandwidths:
        return None
    weight = statistics.median(samples.weights)
    used = {name: rate * weight / 1e9 for name, rate in values_of(programs, "1").items()}
    return {"bandwidth_gb_per_second": statistics.median(samples.bandwidths), "weight_megabytes": weight / 1e6,
            "used_gb_per_second": used}
