"""Runs one load on xllamacpp, llama.cpp's server inside Python, and prints {"rate": tokens/s}.

Fair to it: a stream of its own a slot (no unified cache), no reuse of prompts, top-1 as the only sampler, and its own
clock, which no Python takes part in. One thread a session waits for the whole answer: a callback a token would take
processor time from the two or more threads that compute.
"""
import json
import random
import statistics
import sys
import threading

import xllamacpp

ANSWER = {"ignore_eos": True, "temperature": 0, "samplers": ["top_k"], "top_k": 1, "cache_prompt": False}


def server_for(load):
    params = xllamacpp.CommonParams()
    params.model.path = load["model"]
    params.n_parallel = load["sessions"]
    params.n_ctx = load["sessions"] * load["context"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = load["threads"]
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.fit_params = False  # it would change the context
    params.verbosity = 0
    return xllamacpp.Server(params)


def prompt_of(load, session):
    choice = random.Random(session)
    return [choice.randrange(load["vocabulary"]) for _ in range(load["prompt"])]


def run(server, load, first):
    """All sessions at once; their timings, in no order."""
    timings = []

    def one(session):
        request = ANSWER | {"prompt": prompt_of(load, session), "n_predict": load["generate"],
                            "max_tokens": load["generate"]}
        timings.append(server.handle_completions(request)["timings"])

    threads = [threading.Thread(target=one, args=(first + i,)) for i in range(load["sessions"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return timings


def rate_of(load, timings):
    """The session that began first also waited for the others' prompts; the median session is the one that did not."""
    if len(timings) != load["sessions"]:
        raise SystemExit("a session of xllamacpp gave no answer")
    if load["kind"] == "prefill":
        return 1e3 * load["prompt"] / timings[0]["prompt_ms"]
    if any(t["predicted_n"] != load["generate"] for t in timings):
        raise SystemExit("a session of xllamacpp ended early")
    milliseconds = statistics.median(t["predicted_ms"] for t in timings)
    return 1e3 * load["sessions"] * (load["generate"] - 1) / milliseconds


def main():
    load = json.loads(sys.argv[1])
    server = server_for(load)
    run(server, load, 0)
    print(json.dumps({"rate": rate_of(load, run(server, load, load["sessions"]))}), flush=True)


main()
