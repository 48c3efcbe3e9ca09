"""Sequences of different lengths: padded to one length, or packed without padding.

A packed sequence holds the first elements of all sequences, then all second elements, and so on,
longest sequence first; `batch_sizes` says how many sequences reach each position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.dtypes import Kind
from ...ops.define import no_tensor
from ...ops.index import index_select
from ...ops.joining import stack
from ...ops.math import where
from ...tensor import Tensor, adopt

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences without padding; `pack_sequence` and `pack_padded_sequence` make them."""

    def __new__(
        cls, data: Any, batch_sizes: Tensor | None = None, sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:  # fmt: skip
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> PackedSequence:
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The data in another dtype."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def float(self) -> PackedSequence:
        """The data in float32."""
        return self._with(self.data.float())

    def double(self) -> PackedSequence:
        """The data in float64."""
        return self._with(self.data.double())

    def half(self) -> PackedSequence:
        """The data in float16."""
        return self._with(self.data.half())

    def long(self) -> PackedSequence:
        """The data in int64."""
        return self._with(self.data.long())

    def int(self) -> PackedSequence:
        """The data in int32."""
        return self._with(self.data.int())

    def short(self) -> PackedSequence:
        """The data in int16."""
        return self._with(self.data.short())

    def char(self) -> PackedSequence:
        """The data in int8."""
        return self._with(self.data.char())

    def byte(self) -> PackedSequence:
        """The data in uint8."""
        return self._with(self.data.byte())

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Refused, as for tensors."""
        return self._with(self.data.cuda(*args, **kwargs))

    def is_pinned(self) -> bool:
        """Whether the data lies in pinned memory: it does not."""
        return False

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """This: it is on the CPU."""
        return self

    def pin_memory(self) -> PackedSequence:
        """This: memory is not pinned."""
        return self

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return str(self.data.device).startswith("cuda")


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that takes another one back.

    >>> import monograph as mg
    >>> invert_permutation(mg.tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    if permutation is None:
        return None
    return adopt(np.argsort(permutation._array(), kind="stable"))


class Layout:
    """Where the elements of a packed sequence lie in the padded one, for one list of lengths."""

    def __init__(self, batch_sizes: np.ndarray) -> None:
        self.sizes = batch_sizes
        self.steps, self.batch = len(batch_sizes), int(batch_sizes[0])

    @property
    def present(self) -> np.ndarray:
        """[step, sequence]: whether the sequence reaches the step."""
        return np.arange(self.batch)[None, :] < self.sizes[:, None]

    def pad(self, data: Any, padding: float = 0.0, steps: int | None = None) -> Any:
        """Packed [elements, …] as padded [step, sequence, …]."""
        total = steps or self.steps
        place = np.zeros((total, self.batch), np.int64)
        there = np.zeros((total, self.batch), bool)
        there[: self.steps] = self.present
        place[there] = np.arange(int(self.sizes.sum()))
        rows = index_select(data, 0, adopt(place.reshape(-1)))
        rows = rows.reshape(total, self.batch, *data.shape[1:])
        shape = (total, self.batch, *[1] * (data.ndim - 1))
        if not data.is_floating_point() and not data.is_complex():  # a float would make floats
            padding = bool(padding) if data.dtype.kind is Kind.BOOL else int(padding)
        return where(adopt(there.reshape(shape)), rows, padding)

    def pack(self, padded: Any) -> Any:
        """Padded [step, sequence, …] as packed [elements, …]."""
        batch = padded.shape[1]
        steps, sequences = np.nonzero(self.present)
        flat = padded.reshape(padded.shape[0] * batch, *padded.shape[2:])
        return index_select(flat, 0, adopt(steps * batch + sequences))


def _lengths(lengths: Any) -> np.ndarray:
    given = lengths._array() if isinstance(lengths, Tensor) else np.asarray(lengths)
    if given.ndim != 1:
        raise RuntimeError(f"'lengths' argument should be 1-D, got {given.ndim} dimensions")
    return given.astype(np.int64)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences [step, sequence, …] of the given lengths.

    >>> import monograph as mg
    >>> packed = pack_padded_sequence(mg.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """
    counts = _lengths(lengths)
    padded: Any = input.transpose(0, 1) if batch_first else input
    if len(counts) != padded.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
            f"(batch_size={padded.shape[1]})"
        )
    if len(counts) == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if counts.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
        padded = index_select(padded, 1, adopt(order.copy()))
    elif (np.diff(counts) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if counts[0] > padded.shape[0]:
        raise RuntimeError(
            f"Expected lengths of at most {padded.shape[0]}, the padded length, got {counts[0]}"
        )
    sizes = (counts[None, :] > np.arange(counts[0])[:, None]).sum(1)
    data = Layout(sizes).pack(padded)
    return PackedSequence(data, adopt(sizes), None if order is None else adopt(order))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(padded sequences, lengths) of a packed sequence.

    >>> import monograph as mg
    >>> rnn = mg.nn.utils.rnn
    >>> packed = rnn.pack_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])])
    >>> padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2, 3], [4, 0, 0]], [3, 1])
    """
    sizes = sequence.batch_sizes._array()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {len(sizes)}"
        )
    layout = Layout(sizes)
    padded = layout.pad(sequence.data, padding_value, total_length)
    lengths = layout.present.sum(0)
    if sequence.unsorted_indices is not None:
        padded = index_select(padded, 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices._array()]
    return (padded.transpose(0, 1) if batch_first else padded), adopt(lengths)


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:  # fmt: skip
    """Sequences [length, …] padded to the longest, as one tensor [length, sequence, …].

    >>> import monograph as mg
    >>> pad_sequence([mg.tensor([1, 2]), mg.tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    if not isinstance(sequences, (Iterable, Tensor)):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    listed: list[Any] = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError("padding_side should be either 'right' or 'left'")
    for n, sequence in enumerate(listed):
        if not isinstance(sequence, Tensor):
            raise no_tensor("pad_sequence", **{f"sequences[{n}]": sequence})
    longest = max(s.shape[0] for s in listed)
    padded = [_lengthened(s, longest, padding_value, padding_side == "left") for s in listed]
    result: Tensor = stack(padded, 0 if batch_first else 1)
    return result


def _lengthened(sequence: Any, length: int, padding: float, left: bool) -> Any:
    """A sequence with padding at one end, by reading each place or none."""
    own = sequence.shape[0]
    if own == length:
        return sequence
    place = np.arange(length) - (length - own if left else 0)
    inside = (place >= 0) & (place < own)
    if own == 0:
        shape = (length, *sequence.shape[1:])
        return sequence.new_full(shape, padding)
    rows = index_select(sequence, 0, adopt(np.where(inside, place, 0)))
    shape = (length, *[1] * (sequence.ndim - 1))
    return where(adopt(inside.reshape(shape)), rows, padding).to(sequence.dtype)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences [length, …]; longest first unless enforce_sorted is False.

    >>> import monograph as mg
    >>> packed = mg.nn.utils.rnn.pack_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, each with its own length.

    >>> import monograph as mg
    >>> padded = mg.tensor([[1, 2, 3], [4, 0, 0]])
    >>> parts = mg.nn.utils.rnn.unpad_sequence(padded, mg.tensor([3, 1]), batch_first=True)
    >>> [part.tolist() for part in parts]
    [[1, 2, 3], [4]]
    """
    padded: Any = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [padded[n, : int(length)] for n, length in enumerate(_lengths(lengths))]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed sequence, each with its own length.

    >>> import monograph as mg
    >>> rnn = mg.nn.utils.rnn
    >>> packed = rnn.pack_sequence([mg.tensor([1, 2, 3]), mg.tensor([4])])
    >>> [part.tolist() for part in rnn.unpack_sequence(packed)]
    [[1, 2, 3], [4]]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
