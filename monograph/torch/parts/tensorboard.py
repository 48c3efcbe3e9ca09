"""`torch.utils.tensorboard`: logs numbers, texts, histograms and images for TensorBoard.

The files are those that TensorBoard reads; neither it nor its packages are needed to write them.
"""

from __future__ import annotations

import io
import os
import socket
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ... import Tensor
from ...vision.pictures import write_png
from ...vision.utils import make_grid
from .. import events
from .absent import STAND_INS


def _array(values: Any) -> np.ndarray:
    return values.detach()._array() if isinstance(values, Tensor) else np.asarray(values)


def _spaced() -> np.ndarray:
    """Edges of buckets, each a tenth farther from zero than the one before."""
    positive = 1e-12 * 1.1 ** np.arange(775)
    return np.concatenate([-positive[::-1], [0.0], positive])


def _pictures(images: Any, dataformats: str) -> np.ndarray:
    """Bytes as [height, width, channels], of one image or of several side by side."""
    array = _array(images)
    if array.ndim != len(dataformats):
        raise ValueError(
            f"size of input tensor and input format are different. tensor shape: {array.shape}, "
            f"input_format: {dataformats}"
        )
    axes = [axis for axis in "NCHW" if axis in dataformats]
    array = np.transpose(array, [dataformats.index(axis) for axis in axes])
    scale = 1 if array.dtype == np.uint8 else 255
    if "N" in dataformats:
        from ...tensor import adopt

        columns = int(np.ceil(len(array) ** 0.5))
        array = make_grid(adopt(np.ascontiguousarray(array)), columns, padding=0)._array()
    if array.ndim == 2:
        array = array[None]
    return np.clip(array * scale, 0, 255).astype(np.uint8).transpose(1, 2, 0)


class SummaryWriter:
    """Writes what a program logs into an event file of a folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", 0.5, 1)
    ...     len(os.listdir(folder))
    1
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            name = f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
            log_dir = os.path.join("runs", name)
        self.log_dir = os.fspath(log_dir)
        self.flush_secs, self.filename_suffix = flush_secs, filename_suffix
        self._file: Any = None
        self._flushed = time.time()
        self._inner: dict[str, SummaryWriter] = {}  # for the lines of `add_scalars`
        self._open()

    def _open(self) -> None:
        Path(self.log_dir).mkdir(parents=True, exist_ok=True)
        now, host = time.time(), socket.gethostname()
        name = f"events.out.tfevents.{int(now)}.{host}.{os.getpid()}.{time.monotonic_ns()}"
        place = os.path.join(self.log_dir, name + self.filename_suffix)
        self._file = open(place, "wb")  # noqa: SIM115 - it stays open
        self._file.write(events.record(events.event(now, version="brain.Event:2")))

    def _write(self, values: list[bytes], step: Any, walltime: float | None) -> None:
        if self._file is None:  # it was closed: PyTorch's writer opens another file too
            self._open()
        now = time.time()
        place = None if step is None else int(step)
        content = events.event(walltime or now, place, values=values)
        self._file.write(events.record(content))
        if now - self._flushed > self.flush_secs:
            self.flush()

    def get_logdir(self) -> str:
        """The folder of the files."""
        return self.log_dir

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Log a number."""
        self._write([events.scalar(tag, float(scalar_value))], global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log several numbers, to be shown as lines of one figure: each has a folder of its own."""
        for tag, number in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._inner:
                self._inner[folder] = SummaryWriter(folder, flush_secs=self.flush_secs)
            self._inner[folder].add_scalar(main_tag, number, global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Log how numbers are distributed."""
        edges = _spaced() if isinstance(bins, str) and bins == "tensorflow" else bins
        self._write([events.histogram(tag, _array(values), edges)], global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Log a text, which may be Markdown."""
        self._write([events.text(tag, text_string)], global_step, walltime)

    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """Log an image: bytes, or numbers from 0 to 1."""
        picture = _pictures(img_tensor, dataformats)
        file = io.BytesIO()
        write_png(file, np.ascontiguousarray(picture))
        height, width, channels = picture.shape
        made = events.image(tag, height, width, channels, file.getvalue())
        self._write([made], global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Log several images side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Log a figure of matplotlib, or a list of them."""
        pyplot: Any = import_module("matplotlib.pyplot")
        agg: Any = import_module("matplotlib.backends.backend_agg")
        figures = figure if isinstance(figure, list) else [figure]
        drawn = []
        for one in figures:
            canvas = agg.FigureCanvasAgg(one)
            canvas.draw()
            drawn.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                pyplot.close(one)
        images, form = (np.stack(drawn), "NHWC") if isinstance(figure, list) else (drawn[0], "HWC")
        self.add_image(tag, images, global_step, walltime, form)

    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: Any = None, run_name: str | None = None, global_step: Any = None,
    ) -> None:  # fmt: skip
        """Log the hyperparameters of a run and what came of it, in a folder of its own."""
        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        now = time.time()
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(now))) as writer:
            for value in events.settings(hparam_dict, list(metric_dict), now):
                writer._write([value], None, now)
            for name, number in metric_dict.items():
                writer.add_scalar(name, number, global_step)

    def flush(self) -> None:
        """Let readers of the file see all that was logged."""
        self._flushed = time.time()
        for writer in (self, *self._inner.values()):
            if writer._file is not None:
                writer._file.flush()

    def close(self) -> None:
        """End the file."""
        for writer in (*self._inner.values(), self):
            if writer._file is not None:
                writer._file.close()
                writer._file = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


_OWNER = "utils.tensorboard.SummaryWriter."
for _path, _stand_in in STAND_INS.items():
    if _path.startswith(_OWNER):
        setattr(SummaryWriter, _path.removeprefix(_OWNER), _stand_in.named(_path))

__all__ = ["SummaryWriter"]
