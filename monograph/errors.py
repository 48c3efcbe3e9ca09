"""The exceptions that users meet. Each derives from the class that PyTorch would raise."""

from __future__ import annotations


class MonographError(Exception):
    """Base of all errors that Monograph itself raises."""


class OperandError(MonographError, RuntimeError, ValueError):
    """Shapes or dtypes that an operator does not take, found at the call."""


class DtypeError(OperandError, NotImplementedError):
    """A dtype that an operator is not defined for."""


class IndexOutOfRange(MonographError, IndexError, RuntimeError):
    """An index outside the axis that it addresses. PyTorch raises either, by operator."""


class ValueOutOfRange(MonographError, RuntimeError, ValueError):
    """A number in a tensor that an operator does not take, found when it is computed."""


class GradientError(MonographError, RuntimeError):
    """A derivative that cannot be taken: no graph, a freed graph, or a value overwritten since."""


class NoDataError(MonographError, NotImplementedError):
    """Contents asked for of a tensor on the device `meta`, which has a shape and no contents."""

    def __init__(self, message: str = "Cannot copy out of meta tensor; no data!") -> None:
        super().__init__(message)


class SparseOperand(MonographError, NotImplementedError, RuntimeError):
    """A sparse tensor where only dense ones are taken."""

    def __init__(self, operator: str = "this operation", known: list[str] | None = None) -> None:
        listed = f" Operators that take sparse tensors are {', '.join(known)}." if known else ""
        super().__init__(
            f"{operator} is not defined for sparse tensors; to_dense() gives a dense one.{listed}"
        )


class InternalError(MonographError, RuntimeError):
    """A mistake of Monograph itself, or of a library below it. Please report it."""


class LinAlgError(MonographError, RuntimeError):
    """A matrix that has no inverse, no factor, or for which an iteration did not converge."""


class TransformError(MonographError, RuntimeError):
    """Something that a function under vmap, grad or another transform must not do."""


class DataError(MonographError, RuntimeError, TypeError, ValueError):
    """Data that is no number. PyTorch raises any of these, by what it meets first."""


class StructureError(MonographError, TypeError):
    """Trees of tensors that should agree in structure, shapes and dtypes, and do not."""


class LengthError(MonographError, ValueError, AssertionError):
    """Tensors that should agree in a length, as those of a data set, and do not."""


class DeviceError(MonographError, AssertionError):
    """Tensors asked for on a GPU: as in a build of PyTorch without CUDA."""


class FileFormatError(MonographError, RuntimeError, ValueError):
    """A file that is not what it should be: cut short, damaged, or of another format."""


class ProfileError(MonographError, RuntimeError):
    """A profile that cannot be taken: another one is on."""
