#!/usr/bin/env python3
"""promises.py finds what a page says and the tests do not."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import promises  # noqa: E402

PAGE = """| row | promise | tests | figure |
| --- | --- | --- | --- |
| C1 | one | `Suite.first` | 3 of 3 |
| C2 | two | `Suite.second`, `Suite.third` | – |
| C3 | three | not built yet | – |""".splitlines()


def report(suite, *tests):
    return {"testsuites": [{"name": suite, "testsuite": list(tests)}]}


def results(*reports):
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(reports):
            (pathlib.Path(folder) / f"{number}.json").write_text(json.dumps(one))
        return promises.Results(folder)


def passed(name, **figures):
    return {"name": name, "result": "COMPLETED", **figures}


GOOD = report("Suite", passed("first", promise_C1="3 of 3"), passed("second"), passed("third"))


class Promises(unittest.TestCase):
    def faults(self, *reports, page=PAGE, figures=True):
        return list(promises.check(page, results(*reports), figures))

    def test_a_page_that_says_what_was_done_has_no_fault(self):
        self.assertEqual(self.faults(GOOD), [])

    def test_a_test_that_failed_or_did_not_run_is_named(self):
        bad = report("Suite", passed("first", promise_C1="3 of 3"),
                     {"name": "second", "result": "COMPLETED", "failures": [{}]},
                     {"name": "third", "result": "SKIPPED"})
        self.assertEqual(self.faults(bad), ["C2: Suite.second failed", "C2: Suite.third did not run"])

    def test_another_figure_is_a_fault_at_full_scale_only(self):
        other = report("Suite", passed("first", promise_C1="2 of 3"), passed("second"), passed("third"))
        self.assertEqual(self.faults(other), ["C1: the page says '3 of 3', the tests '2 of 3'"])
        self.assertEqual(self.faults(other, figures=False), [])

    def test_figures_that_the_page_does_not_expect_are_faults(self):
        stray = report("Suite", passed("first", promise_C1="3 of 3"), passed("second"),
                       passed("third", promise_C1="more", promise_C9="x"))
        self.assertEqual(self.faults(stray), ["C1: Suite.third has a figure for it and is not named",
                                              "C9: a test has a figure for it, and the page has no such row"])

    def test_instances_and_parameters_do_not_matter(self):
        page = [PAGE[0], PAGE[1], "| C1 | one | `Suite.first` | 3 of 3 |"]
        self.assertEqual(self.faults(report("Path/Suite", passed("first/avx2", promise_C1="3 of 3")), page=page), [])

    def test_writes_the_figures_in_the_order_of_the_tests(self):
        both = report("Suite", passed("first", promise_C1="4"), passed("third", promise_C2="b"),
                      passed("second", promise_C2="a"))
        lines = promises.written(PAGE, results(both))
        self.assertEqual(lines[2], "| C1 | one | `Suite.first` | 4 |")
        self.assertEqual(lines[3], "| C2 | two | `Suite.second`, `Suite.third` | a; b |")
        self.assertEqual(lines[4], PAGE[4])


if __name__ == "__main__":
    unittest.main()
