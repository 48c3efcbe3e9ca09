"""Event files, read back by a reader written here for the purpose."""

import struct
import zlib

import numpy as np
import pytest

import monograph as mg
from monograph.torch import events
from monograph.torch.parts import absent
from monograph.torch.parts.tensorboard import SummaryWriter


def test_checksum():
    # "123456789" has the CRC-32C 0xE3069283 by its definition; the mask rotates and adds.
    rotated = (0xE3069283 >> 15 | 0xE3069283 << 17) & 0xFFFFFFFF
    assert events.checksum(b"123456789") == (rotated + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def fields(data):
    """{number: [values]} of a message."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def values(folder):
    """(step, tag, fields) of each value in a folder's file."""
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        content = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 8)[0] == events.checksum(data[at : at + 8])
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == events.checksum(content)
        event = fields(content)
        for summary in event.get(5, ()):
            for value in fields(summary)[1]:
                inner = fields(value)
                found.append((event.get(2, [None])[0], inner[1][0].decode(), inner))
        at += 16 + length
    return found


def test_scalars_and_text(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", mg.tensor(0.25), 3)
        writer.add_scalar("count", 7)
        writer.add_text("note", "words", 300)
        writer.add_scalars("both", {"a": 1.0, "b": 2.0}, 5)
    loss, count, note = values(tmp_path)
    assert loss[:2] == (3, "loss") and struct.unpack("<f", loss[2][2][0]) == (0.25,)
    assert count[:2] == (None, "count")
    assert note[:2] == (300, "note/text_summary") and fields(note[2][8][0])[8] == [b"words"]
    assert values(tmp_path / "both_b")[0][:2] == (5, "both")


def test_histogram(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", mg.tensor([1.0, 2.0, 2.0]), 1, bins=[0, 1.5, 3, 9])
        writer.add_histogram("w", np.array([-2.0, 1e-3]), 2)
    one, two = [fields(inner[5][0]) for _, _, inner in values(tmp_path)]
    assert [struct.unpack("<d", one[n][0])[0] for n in range(1, 6)] == [1, 2, 3, 5, 9]
    assert np.frombuffer(one[6][0]).tolist() == [0, 1.5, 3]
    assert np.frombuffer(one[7][0]).tolist() == [0, 1, 2]
    limits, counts = np.frombuffer(two[6][0]), np.frombuffer(two[7][0])
    assert limits[0] <= -2 and limits[-1] >= 1e-3 and counts.sum() == 2


def test_images(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("one", mg.ones(3, 2, 4))
        writer.add_images("four", np.zeros((4, 1, 5, 5), np.uint8))
    for (_, _, inner), shape in zip(values(tmp_path), [(2, 4, 3), (10, 10, 3)], strict=True):
        picture = fields(inner[4][0])
        assert tuple(picture[n][0] for n in (1, 2, 3)) == shape
        png = picture[4][0]
        assert png.startswith(b"\x89PNG") and zlib.decompress(png[png.index(b"IDAT") + 4 : -16])
    with pytest.raises(ValueError, match="input format are different"):
        SummaryWriter(tmp_path / "other").add_image("bad", mg.ones(2, 2))


def test_hyperparameters(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.add_hparams({"lr": 0.1, "net": "a", "deep": True}, {"loss": 2.0}, run_name="run")
    tags = [tag for _, tag, _ in values(tmp_path / "run")]
    names = ["experiment", "session_start_info", "session_end_info"]
    assert tags == [*[f"_hparams_/{name}" for name in names], "loss"]


def test_what_is_not_written_says_so(tmp_path):
    absent.used_stand_ins.clear()  # others in this process may have been told
    with pytest.warns(UserWarning, match="add_graph does nothing"):
        SummaryWriter(tmp_path).add_graph(None)
