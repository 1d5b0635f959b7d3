"""Runs one load on openvino-genai's continuous batching pipeline and prints {"rate": tokens/s}.

Fair to it: it takes token ids and steps as fast as it can; a step may hold all prompts; keys and values are f16 as in
the other programs (its own default is 8 bits, which was no faster where this was written). The precision of its
arithmetic is its own choice.
"""
import json
import random
import sys
import time

import numpy
import openvino
import openvino_genai

BLOCK = 32  # tokens of a page of its cache on a CPU


def pipeline_for(load):
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.max_num_batched_tokens = max(2048, load["sessions"] * load["prompt"])
    scheduler.max_num_seqs = load["sessions"]
    scheduler.num_kv_blocks = load["sessions"] * (load["context"] // BLOCK)
    scheduler.enable_prefix_caching = False
    return openvino_genai.ContinuousBatchingPipeline(
        load["model"], scheduler, "CPU",
        {"INFERENCE_NUM_THREADS": load["threads"], "PERFORMANCE_HINT": "LATENCY", "KV_CACHE_PRECISION": "f16"})


def prompt_of(load, session):
    choice = random.Random(session)
    ids = [choice.randrange(load["vocabulary"]) for _ in range(load["prompt"])]
    return openvino.Tensor(numpy.array([ids], dtype=numpy.int64))


def new_tokens(handle):
    return sum(len(answer.generated_ids) for answer in handle.read().values()) if handle.can_read() else 0


def run(pipeline, load, first):
    """Seconds until every session had a token, seconds from there to the end, and the tokens of the latter."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = load["generate"]
    config.ignore_eos = True
    config.do_sample = False
    handles = [pipeline.add_request(first + i, prompt_of(load, first + i), config) for i in range(load["sessions"])]
    tokens = [0] * len(handles)
    began, all_decode, before = time.perf_counter(), None, 0
    while pipeline.has_non_finished_requests():
        pipeline.step()
        tokens = [n + new_tokens(handle) for n, handle in zip(tokens, handles)]
        if all_decode is None and all(tokens):
            all_decode, before = time.perf_counter(), sum(tokens)
    if any(n != load["generate"] for n in tokens):
        raise SystemExit("a session of openvino-genai ended early")
    return all_decode - began, time.perf_counter() - all_decode, sum(tokens) - before


def main():
    load = json.loads(sys.argv[1])
    pipeline = pipeline_for(load)
    run(pipeline, load, 0)
    prefill, decode, tokens = run(pipeline, load, load["sessions"])
    rate = load["prompt"] / prefill if load["kind"] == "prefill" else tokens / decode
    print(json.dumps({"rate": rate}), flush=True)


main()
