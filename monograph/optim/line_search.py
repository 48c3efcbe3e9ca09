"""A step length along a direction that satisfies the strong Wolfe conditions.

The value must fall enough (Armijo) and the slope must flatten enough (curvature). The search first
finds two lengths between which such a point lies, then narrows them down by cubic interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

FALL, FLATTEN = 1e-4, 0.9  # how much of the slope's promise must be kept; how flat it must become


@dataclass
class Point:
    """A length that was tried: value, gradient, and the slope along the direction."""

    length: float
    value: float
    gradient: np.ndarray
    slope: float


Objective = Callable[[float], tuple[float, np.ndarray]]


def dot(a: np.ndarray, b: np.ndarray) -> float:
    """The product of two vectors, in this thread.

    NumPy's `@` has a team of its own for long ones, which waits for a processor while others spin.
    """
    if a.dtype.kind != "f":  # bfloat16 is none of NumPy's own
        return float(a @ b)
    return float(np.einsum("i,i->", a, b))


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points, with their slopes, is lowest within the bounds."""
    least, most = bounds or (min(a.length, b.length), max(a.length, b.length))
    turn = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    square = turn**2 - a.slope * b.slope
    if square < 0:
        return (least + most) / 2.0
    root = math.sqrt(square)
    near, far = (a, b) if a.length <= b.length else (b, a)
    width = far.length - near.length
    place = far.length - width * ((far.slope + root - turn) / (far.slope - near.slope + 2 * root))
    return min(max(place, least), most)


class StrongWolfe:
    """One search: `run` returns the point found and how often the objective was evaluated."""

    def __init__(
        self, objective: Objective, direction: np.ndarray, start: Point, most_evaluations: int,
        least_change: float = 1e-9,
    ) -> None:  # fmt: skip
        self.objective = objective
        self.direction = direction
        self.start = start
        self.most = most_evaluations
        self.least_change = least_change
        self.evaluations = 0

    def _at(self, length: float) -> Point:
        value, gradient = self.objective(length)
        self.evaluations += 1
        return Point(length, value, gradient, dot(gradient, self.direction))

    def _too_high(self, point: Point) -> bool:
        return point.value > self.start.value + FALL * point.length * self.start.slope

    def _flat(self, point: Point) -> bool:
        return abs(point.slope) <= -FLATTEN * self.start.slope

    def run(self, length: float) -> tuple[Point, int]:
        """Search from a first guess."""
        turns, points = self._bracket(length)
        if len(points) == 2:
            points = [self._narrow(turns, points)]
        return points[0], self.evaluations

    def _bracket(self, length: float) -> tuple[int, list[Point]]:
        """The number of turns taken, and one good point or two with a good one between them."""
        before, point = self.start, self._at(length)
        turns = 0
        while turns < self.most:
            if self._too_high(point) or (turns > 1 and point.value >= before.value):
                return turns, [before, point]
            if self._flat(point):
                return turns, [point]
            if point.slope >= 0:
                return turns, [before, point]
            least = point.length + 0.01 * (point.length - before.length)
            following = cubic_minimum(before, point, (least, point.length * 10))
            before, point = point, self._at(following)
            turns += 1
        return turns, [self.start, point]

    def _narrow(self, turns: int, points: list[Point]) -> Point:
        """The best point between two, once it is good or the turns are used up."""
        reach = float(np.abs(self.direction).max())
        low, high = sorted(points, key=lambda point: point.value)
        stuck = False
        while turns < self.most:
            if abs(high.length - low.length) * reach < self.least_change:
                break
            length, stuck = self._trial(points, stuck)
            place = points.index(high), points.index(low)
            point = self._at(length)
            turns += 1
            if self._too_high(point) or point.value >= low.value:
                points[place[0]] = point
                low, high = (points[0], points[1]) if points[0].value <= points[1].value else (
                    points[1], points[0])  # fmt: skip
                continue
            if self._flat(point):
                return point
            if point.slope * (high.length - low.length) >= 0:
                points[place[0]] = high = low
            points[place[1]] = low = point
        return low

    @staticmethod
    def _trial(points: list[Point], stuck: bool) -> tuple[float, bool]:
        """A length between two, not twice in a row close to one of them."""
        length = cubic_minimum(points[0], points[1])
        least, most = sorted([points[0].length, points[1].length])
        margin = 0.1 * (most - least)
        if min(most - length, length - least) >= margin:
            return length, False
        if stuck or length >= most or length <= least:
            nearer_most = abs(length - most) < abs(length - least)
            return (most - margin if nearer_most else least + margin), False
        return length, True
