"""Native functions on matrices that LAPACK has and NumPy has not: LDL factors, raw reflections.

The last two axes are a matrix, all before them a batch. LDL is Bunch and Kaufman's: each step
divides by one element on the diagonal, or by a symmetric block of two where that would grow too
much. What is packed lies flat along the last axis.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native import Array, Inferred, native

# Bunch and Kaufman's constant: it bounds how much one step of one row or two may grow.
_GROWTH = (1 + math.sqrt(17)) / 8


def _raw_sizes(a: Any) -> Inferred:
    m, n = a.shape[-2:]
    return (*a.shape[:-2], m * n + min(m, n)), a.dtype


@native(_raw_sizes)
def qr_raw(a: Array) -> Array:
    """(R with the reflections' vectors below its diagonal, their factors)."""
    m, n = a.shape[-2:]
    if a.size == 0:
        return np.zeros((*a.shape[:-2], m * n + min(m, n)), a.dtype)
    turned, tau = np.linalg.qr(a, "raw")
    flat = np.swapaxes(turned, -1, -2).reshape(*a.shape[:-2], m * n)
    return np.concatenate([flat, tau], axis=-1)


def _ldl_sizes(a: Any, hermitian: bool) -> Inferred:
    n = a.shape[-1]
    return (*a.shape[:-2], n * n + n + 1), a.dtype


@native(_ldl_sizes)
def ldl_factor(a: Array, hermitian: bool) -> Array:
    """(unit lower triangle and blocks in one matrix, pivots as LAPACK counts them, info)."""
    n = a.shape[-1]
    out = np.zeros((*a.shape[:-2], n * n + n + 1), a.dtype)
    for place in np.ndindex(*a.shape[:-2]):
        work = np.tril(a[place])
        pivots, info = _bunch_kaufman(work, hermitian)
        out[place] = np.concatenate([work.reshape(-1), pivots.astype(a.dtype), [info]])
    return out


def _size(x: Array) -> Array:
    """What LAPACK compares: |re| + |im|."""
    return np.asarray(np.abs(x.real) + np.abs(x.imag))


def _bunch_kaufman(work: Array, hermitian: bool) -> tuple[Array, int]:
    """Factor a lower triangle in place: (pivots from 1, negative for blocks of two; info)."""
    n, k, info = len(work), 0, 0
    pivots = np.zeros(n, np.int64)
    while k < n:
        if hermitian:
            work[k, k] = work[k, k].real
        block, pivot, zero = _choose(work, k)
        if zero:
            info = info or k + 1
            pivots[k], k = k + 1, k + 1
            continue
        row = k + block - 1  # this one changes places with the pivot
        if pivot != row:
            _exchange(work, k, row, pivot, hermitian)
        if block == 1:
            _eliminate_one(work, k, hermitian)
            pivots[k] = pivot + 1
        else:
            _eliminate_two(work, k, hermitian)
            pivots[k : k + 2] = -(pivot + 1)
        k += block
    return pivots, info


def _choose(work: Array, k: int) -> tuple[int, int, bool]:
    """(size of the block, which row becomes its last, whether there is nothing to divide by)."""
    n = len(work)
    here = float(_size(work[k, k]))
    below = _size(work[k + 1 :, k])
    largest = float(below.max()) if k + 1 < n else 0.0
    if max(here, largest) == 0 or np.isnan(here):
        return 1, k, True
    if here >= _GROWTH * largest:
        return 1, k, False
    i = k + 1 + int(np.argmax(below))
    across = _size(np.concatenate([work[i, k:i], work[i + 1 :, i]]))
    beside = float(across.max())
    if here >= _GROWTH * largest * (largest / beside):
        return 1, k, False
    if float(_size(work[i, i])) >= _GROWTH * beside:
        return 1, i, False
    return 2, i, False


def _exchange(work: Array, k: int, row: int, pivot: int, hermitian: bool) -> None:
    """Rows and columns `row` and `pivot` of the symmetric matrix from k on change places."""

    def turned(x: Array) -> Array:
        return np.conj(x) if hermitian else x

    below = work[pivot + 1 :, row].copy()
    work[pivot + 1 :, row] = work[pivot + 1 :, pivot]
    work[pivot + 1 :, pivot] = below
    between = work[row + 1 : pivot, row].copy()
    work[row + 1 : pivot, row] = turned(work[pivot, row + 1 : pivot])
    work[pivot, row + 1 : pivot] = turned(between)
    if hermitian:
        work[pivot, row] = np.conj(work[pivot, row])
    work[row, row], work[pivot, pivot] = work[pivot, pivot], work[row, row]
    if row > k:  # the first column of a block of two
        work[row, k], work[pivot, k] = work[pivot, k], work[row, k]


def _eliminate_one(work: Array, k: int, hermitian: bool) -> None:
    column = work[k + 1 :, k].copy()
    scaled = column / work[k, k]
    other = np.conj(column) if hermitian else column
    work[k + 1 :, k + 1 :] -= np.tril(np.outer(scaled, other))
    work[k + 1 :, k] = scaled


def _eliminate_two(work: Array, k: int, hermitian: bool) -> None:
    columns = work[k + 2 :, k : k + 2].copy()
    corner = work[k + 1, k]
    block = np.array(
        [[work[k, k], np.conj(corner) if hermitian else corner], [corner, work[k + 1, k + 1]]]
    )
    scaled = columns @ np.linalg.inv(block)
    other = np.conj(columns) if hermitian else columns
    work[k + 2 :, k + 2 :] -= np.tril(scaled @ other.T)
    work[k + 2 :, k : k + 2] = scaled


def _of_right_side(factors: Any, pivots: Any, b: Any, hermitian: bool) -> Inferred:
    return b.shape, b.dtype


@native(_of_right_side, batch=False)
def ldl_solve(factors: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """x with A · x = b, given the factors of A; all have the same leading axes."""
    out = np.array(b)
    with np.errstate(all="ignore"):
        for place in np.ndindex(*b.shape[:-2]):
            _solve_ldl(factors[place], pivots[place], out[place], hermitian)
    return out


def _solve_ldl(factors: Array, pivots: Array, x: Array, hermitian: bool) -> None:
    n = len(factors)
    steps = []  # (first row of a block, its size)
    k = 0
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        steps.append((k, size))
        row, pivot = k + size - 1, abs(int(pivots[k])) - 1
        x[[row, pivot]] = x[[pivot, row]] if row != pivot else x[[row, pivot]]
        x[k + size :] -= factors[k + size :, k : k + size] @ x[k : k + size]
        x[k : k + size] = np.linalg.solve(_block(factors, k, size, hermitian), x[k : k + size])
        k += size
    for k, size in reversed(steps):
        back = factors[k + size :, k : k + size].T
        x[k : k + size] -= (np.conj(back) if hermitian else back) @ x[k + size :]
        row, pivot = k + size - 1, abs(int(pivots[k])) - 1
        x[[row, pivot]] = x[[pivot, row]] if row != pivot else x[[row, pivot]]


def _block(factors: Array, k: int, size: int, hermitian: bool) -> Array:
    block = np.array(factors[k : k + size, k : k + size])
    if size == 2:
        block[0, 1] = np.conj(block[1, 0]) if hermitian else block[1, 0]
    return block
