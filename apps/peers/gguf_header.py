"""Reads the metadata of a GGUF file: what a fair load has to know of a model. Version 2 or 3, little endian.

Arrays are kept as their length alone. This is no check of a file: `troupe inspect` is.
"""
import struct

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


def metadata_of(path):
    with open(path, "rb") as file:
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} is no GGUF file")
        take(file, "I")
        take(file, "Q")
        return {text(file): value(file, take(file, "I")) for _ in range(take(file, "Q"))}


def take(file, form):
    form = "<" + form
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def text(file):
    return file.read(take(file, "Q")).decode(errors="replace")


def value(file, kind):
    if kind == STRING:
        return text(file)
    if kind != ARRAY:
        return take(file, NUMBERS[kind])
    kind, count = take(file, "I"), take(file, "Q")
    for _ in range(count):
        value(file, kind)
    return count


def sizes_of(path):
    """(tokens in the vocabulary, bytes of keys and values of one token in 16 bits)."""
    meta = metadata_of(path)
    of = meta["general.architecture"] + "."
    heads = meta[of + "attention.head_count"]
    width = meta.get(of + "attention.key_length", meta[of + "embedding_length"] // heads)
    kv = 2 * meta[of + "block_count"] * meta.get(of + "attention.head_count_kv", heads) * width * 2
    return meta["tokenizer.ggml.tokens"], kv
