#!/usr/bin/env python3
"""Holds docs/promises.md to what the tests did.

    promises.py PAGE RESULTS            compares
    promises.py PAGE RESULTS --write    writes the figures into the page

PAGE is a Markdown file with tables of four columns: row, promise, tests, figure. A test is named `Suite.name` in
backticks, without the instance's name and parameter. RESULTS is a folder with the JSON reports of the test programs
(GTEST_OUTPUT=json:FOLDER/). Every test that the page names must have run and passed there, every figure that the tests
recorded for a row (tests/support/promise.h) must stand in it, and no row may be named by a test and missing on the page.
At a small scale (TROUPE_TEST_SCALE=small) the figures are others, and are not compared.
"""
import json
import os
import pathlib
import re
import sys

TEST = re.compile(r"`([A-Za-z0-9]+\.[a-z0-9_]+)`")


class Results:
    """What the test programs reported: who passed, and the figures by row."""

    def __init__(self, folder):
        self.passed, self.failed, self.figures = set(), set(), {}
        for report in sorted(pathlib.Path(folder).glob("*.json")):
            self.read(json.loads(report.read_text()))

    def read(self, report):
        for suite in report["testsuites"]:
            for test in suite["testsuite"]:
                suite_name = [part for part in suite["name"].split("/") if not part.isdigit()][-1]
                name = f'{suite_name}.{test["name"].split("/")[0]}'
                if test.get("result") == "SKIPPED":
                    continue
                (self.failed if test.get("failures") else self.passed).add(name)
                for key, figure in test.items():
                    if key.startswith("promise_"):
                        self.figures.setdefault(key[len("promise_"):], {}).setdefault(name, figure)


def rows_of(page):
    """(line number, cells) of the tables' rows."""
    for number, line in enumerate(page):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and re.fullmatch(r"[CN]\d+", cells[0]):
            yield number, cells


def figure_of(row, tests, results):
    """The figures that the row's tests recorded, in the page's order of the tests."""
    recorded = results.figures.get(row, {})
    return "; ".join(recorded[test] for test in dict.fromkeys(tests) if test in recorded) or "–"


def faults_of(row, tests, results):
    for test in tests:
        if test in results.failed:
            yield f"{row}: {test} failed"
        elif test not in results.passed:
            yield f"{row}: {test} did not run"
    for test in sorted(set(results.figures.get(row, {})) - set(tests)):
        yield f"{row}: {test} has a figure for it and is not named"


def check(page, results, compare_figures):
    seen = set()
    for _, (row, _, tests, figure) in rows_of(page):
        seen.add(row)
        names = TEST.findall(tests)
        yield from faults_of(row, names, results)
        expected = figure_of(row, names, results)
        if compare_figures and figure != expected:
            yield f"{row}: the page says '{figure}', the tests '{expected}'"
    for row in sorted(set(results.figures) - seen):
        yield f"{row}: a test has a figure for it, and the page has no such row"


def written(page, results):
    lines = list(page)
    for number, (row, promise, tests, _) in rows_of(page):
        lines[number] = f"| {row} | {promise} | {tests} | {figure_of(row, TEST.findall(tests), results)} |"
    return lines


def main(arguments):
    path, folder = pathlib.Path(arguments[0]), arguments[1]
    page, results = path.read_text().splitlines(), Results(folder)
    if "--write" in arguments:
        path.write_text("\n".join(written(page, results)) + "\n")
        page = path.read_text().splitlines()
    faults = list(check(page, results, os.environ.get("TROUPE_TEST_SCALE") != "small"))
    rows = [cells for _, cells in rows_of(page)]
    open_rows = [cells[0] for cells in rows if not TEST.search(cells[2])]
    print(f"{len(rows)} promises, {len(rows) - len(open_rows)} with a test; without: {' '.join(open_rows) or 'none'}")
    for fault in faults:
        print(fault)
    if faults:
        print(f"{path}: to write the figures of a full run into it: tests/promises/promises.py PAGE RESULTS --write")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
