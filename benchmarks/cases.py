"""What is measured: the operators and the rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

import aclnn_bw

from .check import Reference
from .operators import OPERATORS
from .problem import DTYPES, Case, Problem

CASES: tuple[Case, ...] = tuple(row for operator in OPERATORS.values() for row in operator.rows())


def rules(case: Case) -> AbstractContextManager[Any]:
    """Give the only rules under which every dtype goes through the two phases, with the mask layout of the case."""
    return aclnn_bw.soc("Host", mask_layout=case.attributes.get("mask_layout", "bitmask"))


def bytes_moved(case: Case, dtype: str) -> int:
    """Tell what a case must read and write; only one image of it is made."""
    batch, *image = case.shape
    one = replace(case, shape=(1, *image))
    return batch * OPERATORS[case.operator].problem(one, DTYPES[dtype], np.random.default_rng(0)).nbytes


def posed(case: Case, dtype: str, *, images: int | None = None, seed: int = 0) -> tuple[Problem, tuple[Reference, ...]]:
    """Draw the data of a case; the problem, and what the formula gives.

    With ``images``, a larger batch holds so many images over and over, and the references are of these alone: a batch
    of 1 GiB would take minutes and several times its memory.
    """
    operator, (batch, *image) = OPERATORS[case.operator], case.shape
    drawn = batch if images is None or batch % images else min(batch, images)
    problem = operator.problem(replace(case, shape=(drawn, *image)), DTYPES[dtype], np.random.default_rng(seed))
    references = operator.references(problem)
    return operator.repeated(problem, batch) if drawn < batch else problem, references


def posed_by_planes(case: Case, dtype: str, *, planes: int, seed: int = 0) -> tuple[Problem, tuple[Reference, ...]]:
    """Draw so many planes of a case at most, and their references; the others repeat them.

    So the check of a case of any size takes about as long.
    """
    operator, (_, channels, *plane) = OPERATORS[case.operator], case.shape
    drawn = next(count for count in range(min(channels, planes), 0, -1) if channels % count == 0)
    image = replace(case, shape=(1, drawn, *plane))
    problem = operator.problem(image, DTYPES[dtype], np.random.default_rng(seed))
    return operator.spread(problem, case), operator.references(problem)
