"""Random quantized blocks, byte by byte in GGUF's layouts, with mean 0 and a deviation of 1/sqrt(inputs).

The quants are noise; `deviation` is that of the weights they stand for at a scale of 1, and `set_scales` writes the
scales over the noise, at the same place of every block. Where quants are not symmetric about 0 and the format has no
minimum, every second block has a negative scale.
"""
import struct
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Block:
    weights: int
    size: int  # bytes
    deviation: float
    set_scales: Callable[[bytearray, float], None]


def half(value):
    return struct.pack("<e", value)


def put(blocks, size, offset, value, every=1, start=0):
    """Writes the bytes of `value` at `offset` of each block, or of every second one."""
    for i, byte in enumerate(value):
        places = slice(start * size + offset + i, None, every * size)
        blocks[places] = bytes([byte]) * len(range(*places.indices(len(blocks))))


def signed_scale(size, offset):
    def set_scales(blocks, scale):
        put(blocks, size, offset, half(scale), 2, 0)
        put(blocks, size, offset, half(-scale), 2, 1)
    return set_scales


def q4_1_scales(blocks, scale):
    put(blocks, 20, 0, half(scale) + half(-7.5 * scale))


def q4_k_scales(blocks, scale):
    """Eight scales and eight minima of 32, six bits each: the low four of the last four are 0, their high two are 2."""
    put(blocks, 144, 0, half(scale / 32) + half(7.5 * scale / 32) + bytes([32 | 2 << 6] * 8 + [0] * 4))


def q6_k_scales(blocks, scale):
    put(blocks, 210, 192, struct.pack("<16b", *[16, -16] * 8) + half(scale / 16))


# Deviations of uniform quants: of 16, 32, 64 and 256 values.
BLOCKS = {
    "Q4_0": Block(32, 18, 4.61, signed_scale(18, 0)),
    "Q4_1": Block(32, 20, 4.61, q4_1_scales),
    "Q5_0": Block(32, 22, 9.23, signed_scale(22, 0)),
    "Q8_0": Block(32, 34, 73.9, signed_scale(34, 0)),
    "Q4_K": Block(256, 144, 4.61, q4_k_scales),
    "Q6_K": Block(256, 210, 18.5, q6_k_scales),
}


def rows_of_noise(noise, kind, inputs, rows):
    block = BLOCKS[kind]
    blocks = bytearray(noise.randbytes(rows * (inputs // block.weights) * block.size))
    block.set_scales(blocks, inputs ** -0.5 / block.deviation)
    return blocks
