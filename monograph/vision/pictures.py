"""Pictures as arrays: what transforms and data sets work on.

A picture is an array of bytes [height, width] or [height, width, channels]. Pillow's images are
taken and given where Pillow is installed; nothing needs it. Tensors are [channels, height, width].
"""

from __future__ import annotations

import importlib.util
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..tensor import Tensor, adopt


def has_pillow() -> bool:
    """Whether Pillow can be imported."""
    return importlib.util.find_spec("PIL") is not None


def is_pillow(picture: Any) -> bool:
    """Whether something is an image of Pillow's."""
    return type(picture).__module__.split(".")[0] == "PIL"


def picture_of(array: np.ndarray) -> Any:
    """An array as the kind of picture that there is: Pillow's where it is installed."""
    if not has_pillow():
        return array
    from PIL import Image

    return Image.fromarray(array)


def array_of(picture: Any) -> np.ndarray:
    """A picture as an array of bytes (or floats) with channels last."""
    if isinstance(picture, Tensor):
        array = picture.detach()._array()
        return array.transpose(1, 2, 0) if array.ndim == 3 else array
    array = np.asarray(picture)
    return array.astype(np.uint8) * 255 if array.dtype == bool else array


def like(picture: Any, array: np.ndarray) -> Any:
    """An array as the kind of picture that another one is."""
    if isinstance(picture, Tensor):
        turned = array.transpose(2, 0, 1) if array.ndim == 3 else array
        return adopt(np.ascontiguousarray(turned))
    if is_pillow(picture):
        return picture_of(array)
    return np.ascontiguousarray(array)


def size_of(picture: Any) -> tuple[int, int]:
    """(height, width) of a picture."""
    if isinstance(picture, Tensor):
        return int(picture.shape[-2]), int(picture.shape[-1])
    if is_pillow(picture):
        return int(picture.size[1]), int(picture.size[0])
    return int(picture.shape[0]), int(picture.shape[1])


# --- files ----------------------------------------------------------------------------------------

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by the colour type


def write_png(file: Any, array: np.ndarray) -> None:
    """Write bytes [height, width] or [height, width, 3 or 4] as a PNG file.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_png(file, np.zeros((2, 3, 3), np.uint8))
    >>> read_png(file.getvalue()).shape
    (2, 3, 3)
    """
    kind = {2: 0, 3: {1: 0, 3: 2, 4: 6}.get(array.shape[-1], -1)}[array.ndim]
    if kind < 0 or array.dtype != np.uint8:
        raise ValueError(f"a PNG needs bytes of 1, 3 or 4 channels, got {array.shape}")
    height, width = array.shape[:2]
    rows = np.ascontiguousarray(array).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1)  # no filter
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    content = _SIGNATURE + _chunk(b"IHDR", head)
    content += _chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + _chunk(b"IEND", b"")
    if hasattr(file, "write"):
        file.write(content)
    else:
        Path(file).write_bytes(content)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def read_png(content: bytes) -> np.ndarray:
    """The bytes of a PNG file of 8 bits a channel that is not interlaced."""
    if content[:8] != _SIGNATURE:
        raise ValueError("this is no PNG file")
    at, parts, palette, head = 8, [], None, b""
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        name, body = content[at + 4 : at + 8], content[at + 8 : at + 8 + length]
        if name == b"IHDR":
            head = body
        elif name == b"PLTE":
            palette = np.frombuffer(body, np.uint8).reshape(-1, 3)
        elif name == b"IDAT":
            parts.append(body)
        at += 12 + length
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if depth != 8 or interlaced or kind not in _CHANNELS:
        raise ValueError("only PNG files of 8 bits a channel, not interlaced, are read")
    channels = _CHANNELS[kind]
    lines = np.frombuffer(zlib.decompress(b"".join(parts)), np.uint8).reshape(height, -1)
    rows = _unfiltered(lines, channels).reshape(height, width, channels)
    if kind == 3 and palette is not None:
        return palette[rows[:, :, 0]]
    return rows[:, :, 0] if channels == 1 else rows


def _unfiltered(lines: np.ndarray, step: int) -> np.ndarray:
    """Undo what a PNG's lines were predicted from: the left, the upper, and their corner."""
    made = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above = np.zeros(made.shape[1] + step, np.int64)
    for n, line in enumerate(lines):
        kind, row = line[0], line[1:].astype(np.int64)
        here = np.zeros_like(above)
        if kind in (0, 2):
            here[step:] = (row + (above[step:] if kind == 2 else 0)) & 255
        else:
            for k in range(len(row)):
                left, up, corner = here[k], above[k + step], above[k]
                if kind == 1:
                    guess = left
                elif kind == 3:
                    guess = (left + up) // 2
                else:
                    guess = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
                here[k + step] = (row[k] + guess) & 255
        made[n] = here[step:]
        above = here
    return made


def read_picture(path: Any) -> Any:
    """The picture in a file, in three channels: PNG and .npy by ourselves, others by Pillow."""
    path = Path(path)
    if has_pillow():
        from PIL import Image

        with Image.open(path) as image:
            return image.convert("RGB")
    if path.suffix.lower() == ".png":
        array = read_png(path.read_bytes())
    elif path.suffix.lower() == ".npy":
        array = np.load(path)
    else:
        raise ImportError(f"{path} needs Pillow to be read: pip install pillow")
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, 2)
    return np.ascontiguousarray(array[:, :, :3])
