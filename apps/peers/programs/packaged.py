"""Programs that come as Python packages and live in the comparison's virtual environment: xllamacpp and openvino-genai.

Each runs in a child process of that environment's Python (`children/`), which takes the load as JSON in its argument
and prints {"rate": tokens/s} as its last line.
"""
import json
import os
from dataclasses import asdict

from programs import Program, Reading, absent

CHILDREN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "children")
PACKAGES = (
    ("xllamacpp", "llama.cpp's server inside Python, prebuilt for AVX2 (no AVX-512, no VNNI); continuous batching"),
    ("openvino-genai", "its continuous batching pipeline on the same GGUF file; keys and values in f16"),
)


def found(venv):
    return [one(venv, name, note) for name, note in PACKAGES]


def one(venv, name, note):
    python = os.path.join(venv or "", "bin", "python")
    if not venv or not os.access(python, os.X_OK):
        return absent(name, note, "its package is not installed; './run bench --peers' does that")
    child = os.path.join(CHILDREN, name.replace("-", "_") + "_child.py")
    return Program(name, note, lambda load: [python, child, json.dumps(asdict(load) | {"context": load.context})], read)


def read(load, text):
    return Reading(json.loads(text.strip().splitlines()[-1])["rate"])
