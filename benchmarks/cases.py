"""What is measured: the operators and the rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

import aclnn_bw

from .avg_pool2d import AvgPool2dBackward
from .check import Reference
from .im2col import Im2colBackward
from .max_pool2d import MaxPool2dWithMask, MaxPool2dWithMaskBackward
from .problem import DTYPES, REAL, Case, Form, Operator, Problem
from .replication_pad2d import ReplicationPad2dBackward
from .upsample_nearest_exact1d import UpsampleNearestExact1dBackward

OPERATORS: dict[str, Operator] = {
    operator.call: operator
    for operator in (
        MaxPool2dWithMaskBackward(),
        MaxPool2dWithMask(),
        UpsampleNearestExact1dBackward(),
        AvgPool2dBackward(),
        Im2colBackward(),
        ReplicationPad2dBackward(),
    )
}


def _max(*shape: int, dtypes: tuple[str, ...] = REAL, **attributes: Any) -> tuple[Case, ...]:
    """A row for each mask layout."""
    return tuple(
        Case("max_pool2d_with_mask_backward", shape, {**attributes, "mask_layout": layout}, dtypes=dtypes)
        for layout in ("bitmask", "argmax")
    )


def _upsample(*shape: int, to: int, dtypes: tuple[str, ...] = REAL) -> Case:
    return Case("upsample_nearest_exact1d_backward", shape, {"output_size": to}, dtypes=dtypes)


def _avg(*shape: int, form: Form = Form.CALL, dtypes: tuple[str, ...] = REAL, **attributes: Any) -> Case:
    return Case("avg_pool2d_backward", shape, attributes, form, dtypes)


def _im2col(*shape: int, dtypes: tuple[str, ...] = REAL, **attributes: Any) -> Case:
    return Case("im2col_backward", shape, attributes, dtypes=dtypes)


def _pad(*shape: int, padding: int | tuple[int, ...], dtypes: tuple[str, ...] = tuple(DTYPES)) -> Case:
    return Case("replication_pad2d_backward", shape, {"padding": padding}, dtypes=dtypes)


# The tiny rows measure overhead, which does not depend on the dtype.
_TINY = ("float32",)

CASES: tuple[Case, ...] = (
    *_max(32, 64, 112, 112, kernel_size=3, stride=2, padding=1),
    *_max(8, 64, 224, 224, kernel_size=2, stride=2),
    *_max(8, 192, 28, 28, kernel_size=3, stride=1, padding=1),
    *_max(1, 16, 4, 4, kernel_size=2, dtypes=_TINY),
    Case("max_pool2d_with_mask", (32, 64, 112, 112), {"kernel_size": 3, "stride": 2, "padding": 1}),
    _upsample(8, 256, 4096, to=8192),
    _upsample(8, 256, 4096, to=6144),
    _upsample(8, 256, 4096, to=5000),
    _upsample(8, 256, 8192, to=4096),
    _upsample(2, 4, 8, to=16, dtypes=_TINY),
    _avg(32, 64, 112, 112, kernel_size=2, stride=2),
    _avg(8, 64, 112, 112, kernel_size=3, stride=2, padding=1),
    _avg(32, 256, 35, 35, kernel_size=3, stride=1, padding=1),
    _avg(32, 2048, 7, 7, kernel_size=7),
    _avg(8, 64, 56, 56, kernel_size=5, stride=1, padding=2),
    _avg(8, 64, 56, 56, kernel_size=3, stride=3),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY, form=Form.TWO_PHASE_ARRAYS),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY, form=Form.TWO_PHASE),
    _avg(1, 16, 4, 4, kernel_size=4, dtypes=_TINY, form=Form.PHASE_2),
    _im2col(8, 64, 56, 56, kernel_size=3, stride=1, padding=1),
    _im2col(16, 64, 28, 28, kernel_size=3, dilation=2, padding=2),
    _im2col(8, 64, 56, 56, kernel_size=2, stride=2),
    _im2col(8, 3, 224, 224, kernel_size=16, stride=16),
    _im2col(1, 4, 6, 6, kernel_size=3, dtypes=_TINY),
    _pad(8, 64, 128, 128, padding=1),
    _pad(1, 3, 1080, 1920, padding=(10, 20, 30, 40)),
    _pad(64, 3, 32, 32, padding=4),
    _pad(1, 2, 4, 4, padding=1, dtypes=_TINY),
)


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
