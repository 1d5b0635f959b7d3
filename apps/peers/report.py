"""The report of a comparison: peers.json, peers.html and the table for a terminal, all from the same plain data.

`whole` is what compare.py collects; its "models" hold what figures.digest returns.
"""
import json
import os

import page


def write(whole, folder):
    os.makedirs(folder, exist_ok=True)
    for name, body in (("peers.json", json.dumps(whole, indent=1) + "\n"), ("peers.html", page.page_of(whole))):
        path = os.path.join(folder, name)
        with open(path + ".part", "w", encoding="utf-8") as file:
            file.write(body)
        os.replace(path + ".part", path)


def table_of(whole):
    return "\n\n".join([*(model_table(model, whole["settings"]) for model in whole["models"]), notes_of(whole)])


def model_table(model, settings):
    cells = list(model["ratios"])
    width = max(map(len, [*model["programs"], "troupe / best peer"]))
    lines = [f"{model['file']} ({model['bytes'] / 1e6:.0f} MB): tokens/s of all sessions together, "
             f"prompt {settings['prompt']}, answer {settings['generate']}, {settings['threads']} threads; "
             f"medians of {settings['rounds']} rounds, ± the furthest round",
             row(width, "sessions", [*cells, "peak MB"])]
    lines += [row(width, name, [*(rate_text(each, cell) for cell in cells), peak_text(each)])
              for name, each in model["programs"].items()]
    lines.append(row(width, "troupe / best peer", [*(ratio_text(model["ratios"][cell]) for cell in cells),
                                                  ratio_text(model["memory"])]))
    lines.append(row(width, "of the best rounds", [ratio_text(each) for each in model["ratios_of_best_rounds"].values()]))
    lines += roofline_lines(model) + others_lines(model) + trouble_lines(model)
    return "\n".join(lines)


def row(width, name, cells):
    return f"{name:<{width}}" + "".join(f"{cell:>12}" for cell in cells)


def rate_text(program, cell):
    figures = program["rates"].get(cell)
    if not figures:
        return "-"
    return f"{figures['median']:.1f} ±{spread_of(figures):.0f}%"


def spread_of(figures):
    """How far the furthest round is from the median, in per cent."""
    return 100 * max(figures["high"] - figures["median"], figures["median"] - figures["low"]) / figures["median"]


def peak_text(program):
    """With the most sessions."""
    peaks = {int(cell): peak for cell, peak in program["peak_megabytes"].items() if cell != "prefill"}
    return f"{peaks[max(peaks)]:.0f}" if peaks else "-"


def ratio_text(ratio):
    return f"{ratio['ratio']:.2f}" if ratio else "-"


def roofline_lines(model):
    roofline = model["roofline"]
    if not roofline:
        return []
    ceiling = roofline["bandwidth_gb_per_second"]
    used = ", ".join(f"{name} {gigabytes:.1f} ({100 * gigabytes / ceiling:.0f} %)"
                     for name, gigabytes in roofline["used_gb_per_second"].items())
    return [f"memory reads {ceiling:.1f} GB/s; one session reads weights "
            f"({roofline['weight_megabytes']:.0f} MB a token) at GB/s: {used}"]


def others_lines(model):
    others = model["others"]
    return [f"others took {100 * others['median']:.0f} % of the machine in the median run, "
            f"{100 * others['high']:.0f} % in the worst"] if others else []


def trouble_lines(model):
    """One line for each program and error."""
    lines = []
    for name, each in model["programs"].items():
        for trouble in dict.fromkeys(each["troubles"].values()):
            cells = [cell for cell, other in each["troubles"].items() if other == trouble]
            lines.append(f"{name} failed with {', '.join(cells)}: {trouble}")
    return lines


def notes_of(whole):
    machine = whole["machine"]
    lines = [f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}, {whole['date']}",
             "'prefill' is the rate of one prompt of 512 tokens up to its first token; peak MB is the resident memory of",
             "the process with the most sessions, mapped files included, its ratio the one to the peer that needs least."]
    return "\n".join(lines + [f"{program['name']}: {program['note']}" for program in whole["programs"]])
