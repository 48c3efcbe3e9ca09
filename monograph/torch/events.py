"""TensorBoard's event files: records with checksums, each a message of protocol buffers.

A file is a sequence of records: length, checksum of the length, content, checksum of the content.
The checksum is CRC-32C, rotated and shifted by a constant. The content is an `Event`, encoded here
by hand: a message is its fields one after the other, each behind its number and kind.

>>> message((1, "loss"), (2, 3)).hex()
'0a046c6f73731003'
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

STRINGS = 7  # the number of the element type in TensorBoard's tensors
SCALARS, TENSORS = 1, 2  # classes of data


class Fixed32(float):
    """A number that is written as a float of 32 bits."""


def _varint(number: int) -> bytes:
    number &= 2**64 - 1
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def message(*fields: tuple[int, Any]) -> bytes:
    """The fields (number, value) of a message; None and empty lists are left out."""
    made = b""
    for number, value in fields:
        if isinstance(value, Fixed32):
            made += _varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, float):
            made += _varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(value, int):
            made += _varint(number << 3) + _varint(value)
        elif isinstance(value, (str, bytes)):
            content = value.encode() if isinstance(value, str) else value
            made += _varint(number << 3 | 2) + _varint(len(content)) + content
        elif isinstance(value, np.ndarray):
            made += message((number, value.astype("<f8").tobytes()))
        elif value is not None:
            made += b"".join([message((number, item)) for item in value])
    return made


@cache
def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C's polynomial, reversed
        found.append(byte)
    return tuple(found)


def checksum(content: bytes) -> int:
    """CRC-32C, masked as these files have it."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(content: bytes) -> bytes:
    """A record with its length and checksums."""
    length = struct.pack("<Q", len(content))
    return (
        length + struct.pack("<I", checksum(length)) + content
        + struct.pack("<I", checksum(content))
    )  # fmt: skip


# --- messages -------------------------------------------------------------------------------------


def event(when: float, step: int | None = None, *, version: str | None = None,
          values: Sequence[bytes] = ()) -> bytes:  # fmt: skip
    """What happened at a time and step: the file begins, or values were logged."""
    summary = message((1, values)) if values else None
    return message((1, float(when)), (2, step), (3, version), (5, summary))


def plugin(name: str, content: bytes = b"", kind: int | None = None) -> bytes:
    """Which part of TensorBoard shows a value."""
    return message((1, message((1, name), (2, content))), (4, kind))


def scalar(tag: str, number: float) -> bytes:
    """A number."""
    return message((1, tag), (2, Fixed32(number)))


def image(tag: str, height: int, width: int, channels: int, png: bytes) -> bytes:
    """A picture, as the content of a PNG file."""
    picture = message((1, height), (2, width), (3, channels), (4, png))
    return message((1, tag), (4, picture))


def text(tag: str, content: str) -> bytes:
    """A text in Markdown."""
    shape = message((2, message((1, 1))))
    tensor = message((1, STRINGS), (2, shape), (8, content))
    shown = plugin("text", kind=TENSORS)
    return message((1, f"{tag}/text_summary"), (8, tensor), (9, shown))


def histogram(tag: str, numbers: np.ndarray, edges: Any) -> bytes:
    """How often numbers lie between edges; buckets beyond the first and last are left out."""
    line = np.asarray(numbers, np.float64).reshape(-1)
    if not line.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(line, bins=edges)
    used = np.flatnonzero(counts)
    if not used.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(used[0]), int(used[-1]) + 1
    buckets = np.concatenate([[0], counts[first:last]])
    ends = limits[first : last + 1]
    content = message(
        (1, float(line.min())), (2, float(line.max())), (3, float(line.size)),
        (4, float(line.sum())), (5, float((line * line).sum())), (6, ends), (7, buckets),
    )  # fmt: skip
    return message((1, tag), (5, content))


def _setting(value: Any) -> tuple[bytes, int]:
    """A hyperparameter and the number of its type."""
    if isinstance(value, (bool, np.bool_)):
        return message((4, int(value))), 2
    if isinstance(value, (int, float, np.integer, np.floating)):
        return message((2, float(value))), 3
    return message((3, str(value))), 1


def settings(chosen: dict[str, Any], metrics: Sequence[str], when: float) -> list[bytes]:
    """Hyperparameters of a run, and the names of its metrics: three values."""
    kinds = [message((1, name), (4, _setting(value)[1])) for name, value in chosen.items()]
    names = [message((1, message((2, name)))) for name in metrics]
    pairs = [message((1, name), (2, _setting(value)[0])) for name, value in chosen.items()]
    parts = {
        "experiment": message((2, message((4, kinds), (5, names)))),
        "session_start_info": message((3, message((1, pairs), (5, float(when))))),
        "session_end_info": message((4, message((1, 1), (2, float(when))))),
    }
    return [
        message((1, f"_hparams_/{name}"), (9, plugin("hparams", content)))
        for name, content in parts.items()
    ]
