"""Every header compiles alone: g++ reads a file that includes the header twice and nothing else.

What compiled once is remembered by a digest of the compiler, its flags, the header and all of the project's headers it
reaches, so a second run costs milliseconds.
"""

import hashlib
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from house_rules import reached

# These hold intrinsics of instruction sets that the default target of the compiler lacks.
VECTOR_FLAGS = ["-mavx2", "-mfma", "-mf16c", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"]


def headers_compile_alone(tree, compiler, flags, cache_file=None, only=None):
    """Yields a complaint for each header that does not compile. `flags` say where other libraries' headers are."""
    known = remembered(cache_file)
    headers = [name for name in tree.sources() if name.endswith(".h") and (only is None or name in only)]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    digests = {name: digest_of(tree, name, version, flags) for name in headers}
    fresh = [name for name in headers if digests[name] not in known]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(fresh, pool.map(lambda name: compile_alone(tree, name, compiler, flags), fresh)))
    remember(cache_file, {digests[name] for name in headers if results.get(name, "") == ""})
    for name, complaint in results.items():
        if complaint:
            yield f"{name}:1: does not compile alone:\n{complaint}"


def compile_alone(tree, name, compiler, flags):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-I", str(tree.root), *flags, "-x", "c++", "-"]
    if name.startswith("kernels/cpu/") and os.uname().machine == "x86_64":
        command[1:1] = VECTOR_FLAGS
    twice = f'#include "{name}"\n' * 2
    done = subprocess.run(command, input=twice, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else "\n".join(done.stderr.splitlines()[:12]) or "the compiler failed"


def digest_of(tree, name, version, flags):
    parts = hashlib.sha256((version + "\n".join(flags) + str(VECTOR_FLAGS)).encode())
    for part in sorted(reached(tree, name)):
        parts.update(f"{part}\0{tree.texts[part]}\0".encode())
    return parts.hexdigest()


def remembered(cache_file):
    if cache_file is None or not os.path.exists(cache_file):
        return set()
    with open(cache_file, encoding="ascii") as lines:
        return set(lines.read().split())


def remember(cache_file, digests):
    if cache_file is None:
        return
    with open(cache_file + ".part", "w", encoding="ascii") as lines:
        lines.write("\n".join(sorted(digests)) + "\n")
    os.replace(cache_file + ".part", cache_file)
