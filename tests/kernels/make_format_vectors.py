#!/usr/bin/env python3
"""Writes format_vectors.inc: blocks of every format and their values as the `gguf` package decodes them.

    pip install gguf==0.19.0 numpy && python3 tests/kernels/make_format_vectors.py > tests/kernels/format_vectors.inc

The blocks are random bytes with random half scales in [2^-8, 4): two blocks of each 32-element format, one of each
256-element format. The values are written as the bits of float32.
"""
import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

# name, GGUF type, DType, blocks, byte offsets of the half-precision numbers in a block
FORMATS = [
    ("F16", T.F16, "f16", 8, [0]),
    ("BF16", T.BF16, "bf16", 8, []),
    ("Q4_0", T.Q4_0, "q4_0", 2, [0]),
    ("Q4_1", T.Q4_1, "q4_1", 2, [0, 2]),
    ("Q5_0", T.Q5_0, "q5_0", 2, [0]),
    ("Q5_1", T.Q5_1, "q5_1", 2, [0, 2]),
    ("Q8_0", T.Q8_0, "q8_0", 2, [0]),
    ("Q4_K", T.Q4_K, "q4_k", 1, [0, 2]),
    ("Q5_K", T.Q5_K, "q5_k", 1, [0, 2]),
    ("Q6_K", T.Q6_K, "q6_k", 1, [208]),
]


def lines(words, width, per_line):
    texts = [f"0x{int(w):0{width}x}" for w in words]
    return ",\n     ".join(", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line))


def main():
    rng = np.random.default_rng(20261130)
    print("// Made by make_format_vectors.py: {type, bytes of the blocks, bits of their values}.")
    for name, gguf_type, dtype, blocks, halves in FORMATS:
        size = gguf.GGML_QUANT_SIZES[gguf_type][1]
        data = rng.integers(0, 256, size=(blocks, size), dtype=np.uint8)
        for at in halves:
            scale = rng.uniform(0.25, 1.0, size=blocks) * np.exp2(rng.integers(-6, 3, size=blocks))
            sign = rng.choice([-1.0, 1.0], size=blocks)
            data[:, at : at + 2] = (scale * sign).astype("<f2").view(np.uint8).reshape(blocks, 2)
        if gguf_type == T.BF16:
            data[:, 1] = (data[:, 1] & 0x80) | 0x3D  # exponents near 1
        # The K-quant decoders scale by d * scale first and subtract dmin * min, as the files mean it.
        values = gguf.quants.dequantize(data.reshape(-1), gguf_type).astype(np.float32).reshape(-1)
        print("// clang-format off")
        print(f"{{DType::{dtype},\n    {{{lines(data.reshape(-1), 2, 20)}}},")
        print(f"    {{{lines(values.view(np.uint32), 8, 10)}}}}},")
        print("// clang-format on")


main()
