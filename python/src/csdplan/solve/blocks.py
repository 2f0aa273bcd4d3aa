"""Blocks of a broadcast shape: how a large sweep is solved without leaving the cache.

A sweep of millions of configurations needs some thirty passes over its arrays. Passes over the
whole are bound by memory; passes over one block after another are not. Arguments that do not vary
along an axis keep their single element there, so that a grid costs what its axes cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from csdplan.model.inputs import FloatArray

#: Elements in a block: some thirty temporary arrays of this many floats share a level 2 cache.
BLOCK = 16_384

Slices = tuple[slice, ...]


def blocks(shape: tuple[int, ...], elements: int = BLOCK) -> Iterator[Slices]:
    """Yield slices that cover `shape` exactly once, each of at most `elements` elements."""
    if prod(shape) <= elements:
        yield tuple(slice(0, length) for length in shape)
        return
    inner = prod(shape[1:])
    if inner > elements:
        for row in range(shape[0]):
            for rest in blocks(shape[1:], elements):
                yield (slice(row, row + 1), *rest)
        return
    step = max(1, elements // inner)
    whole = tuple(slice(0, length) for length in shape[1:])
    for first in range(0, shape[0], step):
        yield (slice(first, min(first + step, shape[0])), *whole)


def part(array: FloatArray, at: Slices) -> FloatArray:
    """Return the elements of a broadcast argument that stand in the block `at`.

    `array` has as many axes as `at`; axes of length 1 keep their one element.
    """
    return array[
        tuple(
            slice(None) if length == 1 else where
            for length, where in zip(array.shape, at, strict=True)
        )
    ]
