"""The rules of the house, each a function from a tree of sources to a list of complaints.

Used by house_check.py (the test `house`) and house_rules_test.py (which plants a breach of every rule). A complaint is
one line "file:line: what is wrong". The rules read text, they run no compiler; headers_alone.py does.
"""

import os
import re
from pathlib import Path

FLOORS = {"kernels": 0, "runtime": 1, "actors": 2, "apps": 3}
TESTS = "tests"
SOURCE_ENDS = {".h", ".cpp", ".cu", ".cuh"}
COUNTED_ENDS = SOURCE_ENDS | {".py", ".sh", ".cmake"}
MAX_LINES = 400
VAGUE_WORDS = {"util", "utils", "manager", "helper", "helpers", "impl", "context"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA = re.compile(r"^(cuda|cublas|cudnn|curand|cufft|nvrtc|nvml|nccl|nvtx|cub/|thrust/|cooperative_groups|mma\.h|"
                  r"vector_types\.h|device_launch_parameters|driver_types\.h)")
FOREIGN = re.compile(r"^(caf/|nlohmann/|spdlog/|fmt/|boost/|CLI/|openssl/|pcre2)")
PUBLIC_HEADERS = ("actors/troupe.h",)
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


class Tree:
    """The sources under a root: path from the root -> text."""

    def __init__(self, root):
        self.root = Path(root)
        self.texts = {}
        for top in [*FLOORS, TESTS, "cmake"]:
            for folder, folders, files in os.walk(self.root / top):
                folders[:] = sorted(f for f in folders if Path(folder) / f != self.root / TESTS / "data")
                for name in sorted(files):
                    self.add(Path(folder) / name)
        for name in ("run", "CMakeLists.txt"):
            self.add(self.root / name)

    def add(self, path):
        if path.is_file() and (path.suffix in COUNTED_ENDS or path.name in ("CMakeLists.txt", "run")):
            self.texts[path.relative_to(self.root).as_posix()] = path.read_text(encoding="utf-8")

    def sources(self):
        return {name: text for name, text in self.texts.items() if Path(name).suffix in SOURCE_ENDS}

    def includes(self, name):
        """(line number, is quoted, path) of every include of a file."""
        for number, line in enumerate(self.texts[name].splitlines(), 1):
            if match := INCLUDE.match(line):
                yield number, match[1] == '"', match[2]


def room(name):
    return name.split("/", 1)[0]


def includes_never_climb(tree):
    for name in tree.sources():
        if room(name) == TESTS:
            continue
        for line, quoted, path in tree.includes(name):
            if quoted and room(path) == TESTS:
                yield f"{name}:{line}: includes {path}, but only tests include tests"
            elif quoted and FLOORS.get(room(path), -1) > FLOORS[room(name)]:
                yield f"{name}:{line}: {room(name)}/ includes {path}, which stands on a higher floor"


def includes_are_whole(tree):
    for name in tree.sources():
        for line, quoted, path in tree.includes(name):
            own = room(path) in FLOORS or room(path) == TESTS
            if ".." in path.split("/") or path.startswith("./"):
                yield f"{name}:{line}: {path} is not written from the root"
            elif quoted and not own:
                yield f"{name}:{line}: \"{path}\" is not written from the root (other people's headers stand in <>)"
            elif quoted and not (tree.root / path).is_file():
                yield f"{name}:{line}: {path} does not exist"
            elif not quoted and path in tree.texts:
                yield f"{name}:{line}: {path} is our own and stands in quotes"


def code_only(text):
    """The text with comments and strings blanked, lines kept."""
    return COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def caf_stays_above(tree):
    for name, text in tree.texts.items():
        if room(name) not in ("kernels", "runtime"):
            continue
        code = code_only(text) if Path(name).suffix in SOURCE_ENDS else re.sub(r"#[^\n]*", "", text)
        for number, line in enumerate(code.splitlines(), 1):
            if re.search(r"\bcaf\b|\bCAF(_|::)", line):
                yield f"{name}:{number}: CAF is named below actors/"


def cuda_stays_in_its_folder(tree):
    for name in tree.sources():
        if name.startswith(("kernels/cuda/", "tests/kernels/cuda/")):
            continue
        for line, _, path in tree.includes(name):
            if CUDA.match(path):
                yield f"{name}:{line}: the CUDA header {path} is named outside kernels/cuda/"


def headers_stay_narrow(tree):
    """No header of the lower floors names another library's types; what an application includes reaches none at all."""
    wide = set()
    for name in tree.sources():
        if name.endswith(".h") and room(name) in ("kernels", "runtime"):
            wide.add(name)
    for name in PUBLIC_HEADERS:
        wide |= reached(tree, name)
    for name in sorted(wide):
        for line, _, path in tree.includes(name):
            if FOREIGN.match(path):
                yield f"{name}:{line}: a header that applications reach includes <{path}>"


def reached(tree, name):
    """The file and all of the project's files that it includes, directly or not."""
    seen, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current in seen or current not in tree.texts:
            continue
        seen.add(current)
        waiting += [path for _, quoted, path in tree.includes(current) if quoted]
    return seen


def files_are_short(tree):
    for name, text in tree.texts.items():
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{name}:{lines}: {lines} lines, at most {MAX_LINES}"


def includes_form_no_circle(tree):
    state = {}  # absent: not seen, "open": on the way down, "done": left

    def walk(name, way):
        state[name] = "open"
        for line, quoted, path in tree.includes(name):
            if not quoted or path not in tree.texts:
                continue
            if state.get(path) == "open":
                circle = way[way.index(path):] + [path]
                yield f"{name}:{line}: circle of includes: {' -> '.join(circle)}"
            elif path not in state:
                yield from walk(path, way + [path])
        state[name] = "done"

    for name in tree.sources():
        if name not in state:
            yield from walk(name, [name])


def names_say_something(tree):
    for name in tree.texts:
        for part in name.split("/"):
            words = set(re.split(r"[_.\-]", part.lower()))
            if words & VAGUE_WORDS:
                yield f"{name}:1: '{part}' is a name that says nothing"


RULES = [includes_never_climb, includes_are_whole, caf_stays_above, cuda_stays_in_its_folder, headers_stay_narrow,
         files_are_short, includes_form_no_circle, names_say_something]
