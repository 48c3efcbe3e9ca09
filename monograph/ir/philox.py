"""Philox-4x32-10: the counter-based random generator, written in primitive scalar operations.

`philox4x32` turns a 128-bit counter and a 64-bit key into four random 32-bit words. It runs on any
handler with the methods `const`, `add`, `mul`, `shr`, `and_` and `xor`, as the definitions in
`elementary.py` do: NumPy evaluates it in the reference, the kernel emitters emit it. Every value
is a uint64 that holds a 32-bit number, so that one multiplication yields both halves of a product.
"""

from __future__ import annotations

from typing import Any

from .dtypes import uint64

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)  # the golden ratio and √3 - 1, as 32-bit fractions
WORD = 0xFFFFFFFF

Words = tuple[Any, Any, Any, Any]


def philox4x32(
    h: Any,
    counter_low: Any,
    counter_high: Any,
    offset_low: Any,
    offset_high: Any,
    key_low: Any,
    key_high: Any,
) -> Words:
    """The four random words of one counter under one key."""
    words: Words = (counter_low, counter_high, offset_low, offset_high)
    for step in range(ROUNDS):
        if step:
            key_low = _bump(h, key_low, KEY_STEPS[0])
            key_high = _bump(h, key_high, KEY_STEPS[1])
        words = _round(h, words, key_low, key_high)
    return words


def _round(h: Any, words: Words, key_low: Any, key_high: Any) -> Words:
    first_high, first_low = _wide_multiply(h, words[0], MULTIPLIERS[0])
    second_high, second_low = _wide_multiply(h, words[2], MULTIPLIERS[1])
    return (
        h.xor(h.xor(second_high, words[1]), key_low),
        second_low,
        h.xor(h.xor(first_high, words[3]), key_high),
        first_low,
    )


def _wide_multiply(h: Any, word: Any, multiplier: int) -> tuple[Any, Any]:
    """The high and the low word of word · multiplier."""
    product = h.mul(word, h.const(multiplier, uint64))
    return h.shr(product, h.const(32, uint64)), h.and_(product, h.const(WORD, uint64))


def _bump(h: Any, key: Any, step: int) -> Any:
    return h.and_(h.add(key, h.const(step, uint64)), h.const(WORD, uint64))
