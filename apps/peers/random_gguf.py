"""Writes GGUF files with random weights: shape, types and so speed and memory of a real model; its text is noise.

    python3 random_gguf.py SHAPE TYPE FILE      SHAPE: smollm2-135m, llama-3.2-1b; TYPE: Q4_0, Q4_1, Q8_0, Q4_K_M

Which tensor gets which type follows llama-quantize (`type_of`). No floating point matrix is made first: a block's bits
are drawn at random and its scales set such that the weights have mean 0 and a deviation of 1/sqrt(inputs), which keeps
every activation sane. The tokenizer is a byte-level BPE with all 256 bytes and as many merges as the vocabulary has
room for, so any text can be tokenized. A file is written beside its name and renamed when whole.
"""
import os
import random
import struct
import sys
from dataclasses import dataclass
from itertools import islice, product

from random_blocks import BLOCKS, rows_of_noise

ALIGNMENT = 32
GGML_TYPE = {"F32": 0, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14}
FILE_TYPE = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q4_K_M": 15}
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int
    vocabulary: int
    rope_base: float
    pretokenizer: str


SHAPES = {
    "smollm2-135m": Shape(30, 576, 9, 3, 1536, 49152, 1e5, "smollm"),
    "llama-3.2-1b": Shape(16, 2048, 32, 8, 8192, 128256, 5e5, "llama-bpe"),
}


def type_of(kind, name, layer, shape, inputs):
    """The type that llama-quantize gives the tensor: a tied embedding, which is the head too, gets more bits, and in
    Q4_K_M so do V and the down projection of some layers; types in blocks of 256 fall back where a row has no such."""
    wide = "Q4_K" if kind == "Q4_K_M" else kind
    head = name == "token_embd"
    favoured = kind == "Q4_K_M" and name in ("attn_v", "ffn_down") and gets_more_bits(layer, shape.layers)
    if kind != "Q8_0" and (head or favoured):
        wide = "Q6_K"
    return {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}.get(wide, wide) if inputs % 256 else wide


def gets_more_bits(layer, layers):
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def tensors_of(kind, shape):
    """(name, type, inputs, outputs); outputs 0 for the scales of a norm."""
    kv = shape.width // shape.heads * shape.kv_heads

    def matrix(name, layer, inputs, outputs):
        full = f"blk.{layer}.{name}.weight" if layer >= 0 else f"{name}.weight"
        return full, type_of(kind, name, layer, shape, inputs), inputs, outputs

    yield matrix("token_embd", -1, shape.width, shape.vocabulary)
    for i in range(shape.layers):
        yield f"blk.{i}.attn_norm.weight", "F32", shape.width, 0
        yield matrix("attn_q", i, shape.width, shape.width)
        yield matrix("attn_k", i, shape.width, kv)
        yield matrix("attn_v", i, shape.width, kv)
        yield matrix("attn_output", i, shape.width, shape.width)
        yield f"blk.{i}.ffn_norm.weight", "F32", shape.width, 0
        yield matrix("ffn_gate", i, shape.width, shape.hidden)
        yield matrix("ffn_up", i, shape.width, shape.hidden)
        yield matrix("ffn_down", i, shape.hidden, shape.width)
    yield "output_norm.weight", "F32", shape.width, 0


def vocabulary_of(size):
    """(tokens, their types, merges): the 256 bytes, pairs and triples of them by their merges, and two controls."""
    symbols = byte_symbols()
    pairs = product(symbols, symbols)
    triples = ((first + second, third) for first, second, third in product(symbols, symbols, symbols))
    room = size - 256 - 2
    merges = list(islice(pairs, room))
    merges += list(islice(triples, room - len(merges)))
    tokens = symbols + [left + right for left, right in merges] + ["<|begin_of_text|>", "<|end_of_text|>"]
    return tokens, [1] * (size - 2) + [3, 3], [f"{left} {right}" for left, right in merges]


def byte_symbols():
    """How byte-level BPE writes the 256 bytes: printable ones as themselves, the others from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


def entry(key, kind, value):
    form = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}.get(kind)
    return text(key) + struct.pack("<I", kind) + (text(value) if kind == STRING else struct.pack(form, value))


def array(key, kind, values):
    body = b"".join(map(text, values)) if kind == STRING else struct.pack(f"<{len(values)}i", *values)
    return text(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + body


def metadata_of(kind, name, shape):
    tokens, types, merges = vocabulary_of(shape.vocabulary)
    numbers = {"block_count": shape.layers, "context_length": 8192, "embedding_length": shape.width,
               "feed_forward_length": shape.hidden, "attention.head_count": shape.heads,
               "attention.head_count_kv": shape.kv_heads, "rope.dimension_count": shape.width // shape.heads,
               "vocab_size": shape.vocabulary}
    return [entry("general.architecture", STRING, "llama"), entry("general.name", STRING, f"random {name} {kind}"),
            entry("general.file_type", U32, FILE_TYPE[kind]), entry("general.quantization_version", U32, 2),
            *(entry("llama." + key, U32, number) for key, number in numbers.items()),
            entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
            entry("llama.rope.freq_base", F32, shape.rope_base),
            entry("tokenizer.ggml.model", STRING, "gpt2"), entry("tokenizer.ggml.pre", STRING, shape.pretokenizer),
            array("tokenizer.ggml.tokens", STRING, tokens), array("tokenizer.ggml.token_type", I32, types),
            array("tokenizer.ggml.merges", STRING, merges),
            entry("tokenizer.ggml.bos_token_id", U32, shape.vocabulary - 2),
            entry("tokenizer.ggml.eos_token_id", U32, shape.vocabulary - 1),
            entry("tokenizer.ggml.add_bos_token", BOOL, False)]


def padded(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def bytes_of(kind, inputs, outputs):
    if kind == "F32":
        return 4 * inputs
    block = BLOCKS[kind]
    return inputs // block.weights * block.size * outputs


def infos_of(tensors):
    offset, infos = 0, []
    for name, kind, inputs, outputs in tensors:
        sizes = (inputs, outputs) if outputs else (inputs,)
        infos.append(text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, GGML_TYPE[kind], offset))
        offset += padded(bytes_of(kind, inputs, outputs))
    return infos


def write(path, name, shape, kind, seed=1):
    tensors, metadata = list(tensors_of(kind, shape)), metadata_of(kind, name, shape)
    noise = random.Random(seed)
    with open(path + ".part", "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        file.write(b"".join(metadata) + b"".join(infos_of(tensors)))
        for _, type_name, inputs, outputs in tensors:
            file.write(bytes(padded(file.tell()) - file.tell()))
            write_tensor(file, noise, type_name, inputs, outputs)
        file.write(bytes(padded(file.tell()) - file.tell()))
    os.replace(path + ".part", path)


def write_tensor(file, noise, kind, inputs, outputs):
    if kind == "F32":
        file.write(struct.pack("<f", 1.0) * inputs)
        return
    rows = max(1, (1 << 24) // bytes_of(kind, inputs, 1))  # some 16 MB at a time
    for done in range(0, outputs, rows):
        file.write(rows_of_noise(noise, kind, inputs, min(rows, outputs - done)))


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in SHAPES or sys.argv[2] not in FILE_TYPE:
        raise SystemExit(__doc__)
    write(sys.argv[3], sys.argv[1], SHAPES[sys.argv[1]], sys.argv[2])
