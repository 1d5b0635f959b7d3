"""Tests of apps/peers, the comparison with other programs: python3 peers_test.py ROOT TROUPE

No other program is needed: tables are read from text, and the one comparison that is run measures troupe alone.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT, TROUPE = sys.argv.pop(1), sys.argv.pop(1)
PEERS = os.path.join(ROOT, "apps", "peers")
sys.path.insert(0, PEERS)

import figures  # noqa: E402
import gguf_header  # noqa: E402
import page  # noqa: E402
import random_gguf  # noqa: E402
import report  # noqa: E402
from measure import Outcome, run_process  # noqa: E402
from programs import Load, Reading, batched_bench, troupe  # noqa: E402
from random_blocks import BLOCKS  # noqa: E402

SMALL = random_gguf.Shape(2, 256, 4, 2, 512, 1024, 1e4, "smollm")
TABLE = """main: n_kv_max = 4096, n_batch = 2048

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|    32 |     64 |    4 |    384 |    0.300 |   426.67 |    1.100 |   232.73 |    1.400 |   274.29 |
|    32 |     64 |    4 |    384 |    0.250 |   512.00 |    1.000 |   256.00 |    1.250 |   307.20 |

llama_perf_context_print: load time = 100.00 ms
"""
LINES = """{"n_kv_max": 4096, "pp": 512, "tg": 2, "pl": 1, "n_kv": 514, "t_pp": 2.0, "speed_pp": 256.0, "t_tg": 0.02, \
"speed_tg": 100.0, "t": 2.02, "speed": 254.5}
"""


def load(kind="decode", sessions=4):
    return Load(kind, "m.gguf", sessions, 32, 64, 2, 1000, 1024)


def outcome(peak=100.0, others=0.02):
    return Outcome("", peak, others, None)


def example():
    """Two rounds of three programs, one of which failed with four sessions."""
    samples = figures.Samples()
    for rate in (100.0, 120.0):
        samples.add("troupe", "1", Reading(rate, 50.0, 40.0, 1e8), outcome())
        samples.add("troupe", "4", Reading(3 * rate, 60.0), outcome())
        samples.add("slow & old", "1", Reading(rate / 2), outcome(200.0))
        samples.add("slow & old", "4", Reading(rate), outcome(300.0))
        samples.add("other", "1", Reading(rate * 2), outcome(80.0))
    samples.troubles["other"]["4"] = "exit code 1: no <memory>"
    model = {"file": "m.gguf", "bytes": 1_000_000, **figures.digest(samples, ["1", "4", "prefill"], "troupe")}
    return {"machine": {"cpu": "a CPU", "cpus": 2, "system": "Linux"}, "date": "today", "models": [model],
            "settings": {"sessions": "1,4", "prompt": 32, "generate": 64, "threads": 2, "rounds": 2},
            "programs": [{"name": name, "note": "a note"} for name in ("troupe", "slow & old", "other")]}


def compare(*words):
    return subprocess.run([sys.executable, "-B", os.path.join(PEERS, "compare.py"), *words], capture_output=True,
                          text=True, check=False)


class Figures(unittest.TestCase):
    def test_a_cell_is_the_median_of_its_rounds_with_the_furthest_ones(self):
        self.assertEqual(figures.summary_of([3.0, 1.0, 2.0]),
                         {"median": 2.0, "low": 1.0, "high": 3.0, "samples": [3.0, 1.0, 2.0]})
        self.assertAlmostEqual(report.spread_of(figures.summary_of([90.0, 100.0, 125.0])), 25.0)

    def test_a_ratio_is_to_the_best_peer_of_each_cell(self):
        ratios = example()["models"][0]["ratios"]
        self.assertEqual(ratios["1"], {"peer": "other", "ratio": 0.5})
        self.assertEqual(ratios["4"], {"peer": "slow & old", "ratio": 3.0})
        self.assertIsNone(ratios["prefill"])

    def test_the_best_rounds_have_ratios_of_their_own(self):
        samples = figures.Samples()
        for own, other in ((100.0, 50.0), (110.0, 20.0), (90.0, 20.0)):
            samples.add("troupe", "2", Reading(own), outcome())
            samples.add("other", "2", Reading(other), outcome())
        digest = figures.digest(samples, ["2"], "troupe")
        self.assertEqual(digest["ratios"]["2"], {"peer": "other", "ratio": 5.0})
        self.assertEqual(digest["ratios_of_best_rounds"]["2"], {"peer": "other", "ratio": 2.2})

    def test_memory_is_compared_with_the_peer_that_needs_least_at_the_most_sessions(self):
        self.assertEqual(example()["models"][0]["memory"], {"peer": "slow & old", "ratio": 0.2, "sessions": 4})

    def test_the_roofline_is_weight_bytes_times_tokens(self):
        roofline = example()["models"][0]["roofline"]
        self.assertEqual(roofline["bandwidth_gb_per_second"], 40.0)
        self.assertAlmostEqual(roofline["used_gb_per_second"]["other"], 22.0)



class Tables(unittest.TestCase):
    def test_the_second_row_of_a_batched_bench_counts(self):
        self.assertEqual(len(batched_bench.rows_of(TABLE)), 2)
        self.assertEqual(batched_bench.read(load(), TABLE).rate, 256.0)
        self.assertEqual(batched_bench.read(load("prefill", 1), LINES).rate, 256.0)
        self.assertEqual(batched_bench.read(load(), LINES).rate, 100.0)

    def test_an_output_without_a_row_is_an_error(self):
        with self.assertRaises(ValueError):
            batched_bench.read(load(), "main: failed to load the model\n")

    def test_a_session_of_troupe_gets_the_context_and_memory_of_the_others(self):
        words = troupe.command("troupe", load(sessions=32))
        self.assertEqual(words[words.index("--context") + 1], "256")
        self.assertGreaterEqual(int(words[words.index("--kv-memory") + 1]) * 1_000_000, 32 * 256 * 1024)
        self.assertIn("--no-bandwidth", words)
        self.assertNotIn("--no-bandwidth", troupe.command("troupe", load(sessions=1)))

    def test_a_program_that_is_not_there_says_so(self):
        self.assertIn("/no/such/program", troupe.found("/no/such/program").trouble)


class Processes(unittest.TestCase):
    def test_a_process_gives_its_output_and_its_own_peak_of_memory(self):
        done = run_process([sys.executable, "-c", "print(len(bytearray(200_000_000)))"], 60)
        self.assertEqual((done.text, done.trouble), ("200000000\n", None))
        self.assertTrue(200 < done.peak_megabytes < 260, done.peak_megabytes)

    def test_a_failure_is_its_last_words(self):
        done = run_process([sys.executable, "-c", "import sys; sys.exit('no luck')"], 60)
        self.assertEqual(done.trouble, "exit code 1: no luck")
        self.assertIn("could not be started", run_process(["/no/such/program"], 60).trouble)

    def test_a_limit_ends_what_takes_too_long(self):
        done = run_process([sys.executable, "-c", "import signal; signal.pause()"], 0.2)
        self.assertEqual(done.trouble, "it took longer than 0.2 s")


class Reports(unittest.TestCase):
    def test_the_page_has_one_line_a_program_and_needs_nothing_else(self):
        text = page.page_of(example())
        self.assertEqual(text.count("<polyline"), 3)
        self.assertNotRegex(text, r"<script|<link|src=|href=|https?:")
        self.assertIn("sessions at once", text)
        self.assertIn("tokens/s", text)
        self.assertIn("memory reads 40.0 GB/s", text)

    def test_words_of_others_are_escaped(self):
        text = page.page_of(example())
        self.assertIn("slow &amp; old", text)
        self.assertIn("no &lt;memory&gt;", text)

    def test_the_table_shows_ratios_and_errors(self):
        text = report.table_of(example())
        self.assertRegex(text, r"troupe / best peer +0\.50 +3\.00 +- +0\.20")
        self.assertIn("other failed with 4: exit code 1: no <memory>", text)

    def test_the_report_is_two_whole_files(self):
        with tempfile.TemporaryDirectory() as folder:
            report.write(example(), folder)
            self.assertEqual(sorted(os.listdir(folder)), ["peers.html", "peers.json"])
            with open(os.path.join(folder, "peers.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["models"][0]["file"], "m.gguf")


class RandomFiles(unittest.TestCase):
    def test_the_small_shape_opens_and_runs_in_every_type(self):
        for kind in random_gguf.FILE_TYPE:
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "small.gguf")
                random_gguf.write(path, "small", SMALL, kind)
                self.assertEqual(gguf_header.sizes_of(path), (1024, 2 * 2 * 2 * 64 * 2))
                inspected = subprocess.run([TROUPE, "inspect", path], capture_output=True, text=True, check=False)
                self.assertEqual(inspected.returncode, 0, inspected.stderr)
                self.assertIn("byte-level BPE, 1024 tokens", inspected.stdout)
                self.compare_alone(path, folder)

    def compare_alone(self, path, folder):
        done = compare("--program", TROUPE, "--only", "troupe", "--json", "--model", path, "--sessions", "1,2",
                       "--generate", "4", "--rounds", "1", "--out", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        rates = json.loads(done.stdout)["models"][0]["programs"]["troupe"]["rates"]
        self.assertEqual(list(rates), ["1", "2", "prefill"])

    def test_a_mix_is_that_of_llama_quantize(self):
        def counted(mix, name):
            types = [kind for _, kind, _, outputs in random_gguf.tensors_of(mix, random_gguf.SHAPES[name]) if outputs]
            return {each: types.count(each) for each in set(types)}
        self.assertEqual(counted("Q4_K_M", "llama-3.2-1b"), {"Q4_K": 96, "Q6_K": 17})
        self.assertEqual(counted("Q4_K_M", "smollm2-135m"), {"Q5_0": 166, "Q4_K": 16, "Q6_K": 14, "Q8_0": 15})
        self.assertEqual(counted("Q4_0", "llama-3.2-1b"), {"Q4_0": 112, "Q6_K": 1})
        self.assertEqual(counted("Q4_1", "smollm2-135m"), {"Q4_1": 210, "Q8_0": 1})

    def test_scales_stand_at_their_place_in_every_block(self):
        for kind, block in BLOCKS.items():
            blocks = bytearray(block.size * 5)
            block.set_scales(blocks, 0.5)
            sizes = [{abs(byte) for byte in blocks[i * block.size:(i + 1) * block.size]} for i in range(5)]
            self.assertTrue(all(sizes[i] == sizes[i % 2] and sizes[i] != {0} for i in range(5)), kind)

    def test_a_vocabulary_has_every_byte_and_makes_each_token_of_two_that_stand_before_it(self):
        tokens, types, merges = random_gguf.vocabulary_of(70_000)
        self.assertEqual((len(tokens), len(set(tokens)), len(types)), (70_000, 70_000, 70_000))
        place = {token: i for i, token in enumerate(tokens)}
        for merge in merges:
            left, right = re.fullmatch(r"(\S+) (\S+)", merge).groups()
            self.assertLess(max(place[left], place[right]), place[left + right])


class Options(unittest.TestCase):
    def test_help_needs_nothing(self):
        done = compare("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--sessions", done.stdout)

    def test_wrong_words_are_refused(self):
        for words in (["--sessions", "1,x"], ["--rounds", "0"], ["--only", "none"],
                      ["--shapes", "big:Q4_0"], ["--model", "/no/such/file"]):
            done = compare(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
