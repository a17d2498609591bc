"""``python tests/fuzz/faults.py``: does the test suite notice when a kernel is wrong?

A copy of the sources is built once, in which each fault of the list below can be switched on by the environment
variable ACLNN_BW_FAULT. Then the tests of the fault's operator run with each, and if none of them fails, the whole
default suite. Each fault is a single wrong condition or offset in one path of one kernel, or of the plan that chooses
the path, and changes a result of some legal call, or accepts an index that is none, or leaves a byte unwritten. A fault
that is missed is printed with its line: it is a hole in the tests.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent

OPERATORS = tuple(sorted(path.stem[5:-9] for path in (ROOT / "tests").glob("test_*_refusals.py")))
SHARED = "shared by all"

SUITES: dict[str, tuple[str, ...]] = {"default": (), "thorough": ("-m", "thorough")}
MISSED, CANNOT_RUN = "not noticed", "cannot run here"

# Of a tree that is no checkout.
_TREE = (
    "aclnn_bw", "tests", "benchmarks", "docs", "examples", "README*", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
    "MANIFEST.in", "mkdocs.yml", "pyproject.toml", "setup.py", "setup_kept.py",
)  # fmt: skip

_HEADER = """\
#ifndef ACLNN_BW_FAULT_H
#define ACLNN_BW_FAULT_H
#include <stdlib.h>
/* Whether this fault is the one that is switched on: 1 or 0. */
static inline int aclnn_bw_fault(int fault)
{
    static int number = -2;
    if (number == -2)
        number = getenv("ACLNN_BW_FAULT") ? atoi(getenv("ACLNN_BW_FAULT")) : -1;
    return number == fault;
}
#endif
"""
_SWITCH = """cdef extern from "fault.h" nogil:
    int fault "aclnn_bw_fault" (int number) noexcept

"""


class Fault(NamedTuple):
    """One wrong place: a text that stands once in a file, and what stands there instead, in which FAULT is 1 or 0."""

    file: str  # within the package
    old: str
    new: str
    what: str
    isa: str = ""  # the instruction sets whose code has it, if not all do

    @property
    def operator(self) -> str:
        name = self.file.rpartition("/")[2]
        return next((operator for operator in OPERATORS if name.startswith(operator)), SHARED)


_AVG, _AVG_TERMS, _AVG_SUMS = "_kernels/avg_pool2d.pyx", "_kernels/avg_pool2d_terms.pxd", "_kernels/avg_pool2d_sums.pxd"
_AVG_TILE = "_kernels/avg_pool2d_tile.pxd"
_AVG_WALK, _AVG_PAIRS = "_kernels/avg_pool2d_walk.pxd", "_kernels/avg_pool2d_pairs.pxd"
_AVG_ACROSS, _PLANES = "_kernels/avg_pool2d_across.pyx", "_kernels/planes.pxd"
_IM2COL, _GATHER = "_kernels/im2col.pyx", "_kernels/im2col_gather.pxd"
_FLAT, _SCATTER = "_kernels/im2col_flat.pxd", "_kernels/im2col_scatter.pxd"
_PACKED, _PLACE = "_kernels/im2col_columns.pxd", "_kernels/im2col_place.pxd"
_MAX_GATHER, _MAX_SCATTER = "_kernels/max_pool2d_gather.pyx", "_kernels/max_pool2d_scatter.pyx"
_INDICES, _PLACES = "_kernels/max_pool2d_indices.pxd", "_kernels/max_pool2d_places.pxd"
_MAX_ROWS, _SPREAD = "_kernels/max_pool2d_rows.pxd", "_kernels/max_pool2d_spread.pxd"
_MAX_PLANES = "_kernels/max_pool2d_planes.pxd"
_COLUMNS = "_kernels/max_pool2d_columns.pxd"
_FORWARD, _WINDOWS = "_kernels/max_pool2d_forward.pyx", "_kernels/max_pool2d_forward_windows.pxd"
_WORDS, _MASKS = "_kernels/max_pool2d_words.pxd", "_kernels/max_pool2d_masks.pyx"
_PAD = "_kernels/replication_pad2d.pyx"
_PAD_COPY, _PAD_SUMS = "_kernels/replication_pad2d_copy.pxd", "_kernels/replication_pad2d_sums.pxd"
_UP, _GROUPS = "_kernels/upsample_nearest_exact1d.pyx", "_kernels/upsample_nearest_exact1d_groups.pxd"
_HALF_H, _CONVERT_H, _COPY_H = "_kernels/half.h", "_kernels/convert.h", "_kernels/copy.h"
_ROWS, _TRANSPOSE = "_kernels/rows.pxd", "_kernels/transpose.pxd"
_SIMD_H, _SIMD_HALVES_H = "_kernels/simd.h", "_kernels/simd_halves.h"
_SIMD_LANES_H, _SIMD_ORDER_H = "_kernels/simd_lanes.h", "_kernels/simd_order.h"
_SIMD_CHOOSE_H, _SIMD_LOOKUP_H = "_kernels/simd_choose.h", "_kernels/simd_lookup.h"
_AVG_PLAN, _AVG_TYPES = "_core/avg_pool2d.pyx", "_core/avg_pool2d.pxd"
_IM2COL_PLAN = "_core/im2col.pyx"
_MAX_PLAN, _PAD_PLAN = "_core/max_pool2d_plan.pyx", "_core/replication_pad2d.pyx"
_UP_PLAN = "_core/upsample_nearest_exact1d.pyx"
_PAD_FORWARD, _COPIES = "_kernels/replication_pad2d_forward.pyx", "_kernels/copies.pxd"
_LINES = "_kernels/lines.pxd"
_IM2COL_FORWARD_PLAN = "_core/im2col_forward.pyx"
_IM2COL_FORWARD, _IM2COL_PLANES = "_kernels/im2col_forward.pyx", "_kernels/im2col_planes.pxd"
_IM2COL_LAST, _IM2COL_TABLE = "_kernels/im2col_last.pyx", "_kernels/im2col_table.pyx"
_ACROSS, _MAX_LAST = "_kernels/max_pool2d_across.pyx", "_kernels/max_pool2d_last.pyx"
_AVERAGES, _AVG_WINDOWS = "_kernels/avg_pool2d_forward.pyx", "_kernels/avg_pool2d_windows.pxd"
_AVERAGES_ACROSS = "_kernels/avg_pool2d_forward_across.pyx"
_UP_FORWARD = "_kernels/upsample_nearest_exact1d_forward.pyx"
_UP_FORWARD_PLAN = "_core/upsample_nearest_exact1d_forward.pyx"

FAULTS = [
    # ---- conversions, and rows that all share
    Fault(_HALF_H, "exponent == 0x0f800000 ? 112u << 23 : 0)", "exponent == 0x0f800000 && !FAULT ? 112u << 23 : 0)",
          "float16 widened without F16C: inf and NaN are finite", "v2"),
    Fault(_HALF_H, "uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;",
          "uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1 & ~FAULT)) >> 13;",
          "float16 narrowed without F16C: a tie goes to zero, not to even", "v2"),
    Fault(_HALF_H, "magnitude < (113u << 23) ? subnormal : normal;",
          "magnitude < ((113u - FAULT) << 23) ? subnormal : normal;",
          "float16 narrowed without F16C: the largest subnormals taken for normal", "v2"),
    Fault(_HALF_H, "uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;",
          "uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1 & ~FAULT)) >> 16;",
          "bfloat16 narrowed: a tie goes to zero, not to even"),
    Fault(_HALF_H, "(bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded)",
          "(bits & 0x7fffffff) > 0x7f800000 && !FAULT ? bits >> 16 | 0x40 : rounded)",
          "bfloat16 narrowed: a NaN of all ones carries into the sign and is -0.0"),
    Fault(_HALF_H, "uint32_t rounded = (bits + 0x7ff + (bits >> 12 & 1)) & ~(uint32_t)0xfff;",
          "uint32_t rounded = (bits + 0x7ff + (bits >> 12 & 1 & ~FAULT)) & ~(uint32_t)0xfff;",
          "HF32: a tie goes to zero, not to even"),
    Fault(_HALF_H, "return aclnn_bw_float_of((bits & 0x7fffffff) > 0x7f800000 ? bits : rounded);",
          "return aclnn_bw_float_of((bits & 0x7fffffff) > 0x7f800000 && !FAULT ? bits : rounded);",
          "HF32: a NaN of all ones carries into the sign and is -0.0"),
    Fault(_ROWS, "        i = least(i, n - some)\n        convert_piece",
          "        i = least(i, n - some - FAULT * (n > some))\n        convert_piece",
          "a row of 16 bits widened or narrowed: the last vector begins one too early"),
    Fault(_ROWS, "            simd_tidy_nans(&x)\n", "            if not FAULT:\n                simd_tidy_nans(&x)\n",
          "a row narrowed to bfloat16: a NaN of all ones carries into the sign and is -0.0"),
    Fault(_ROWS, "        convert_numbers(row + i, <half*>block, m, False)\n",
          "        convert_numbers(row + i, <half*>block, m - FAULT, False)\n",
          "a row rounded to float16: the last number is not"),
    Fault(_CONVERT_H, "bits -= fabs((double)nearest) > fabs(value);",
          "bits -= !FAULT && fabs((double)nearest) > fabs(value);",
          "float64 rounded to odd: up, beyond the tie that it is below"),
    Fault(_CONVERT_H, "bits |= (double)nearest != value;", "bits |= !FAULT && (double)nearest != value;",
          "float64 to 16 bits: rounded twice"),
    Fault(_COPY_H, "for (; bytes - at > (size); at += (size))",
          "for (; bytes - at > (size) + (size_t)(4 * FAULT); at += (size))",
          "a short row copied: what is just longer than whole pieces lacks its beginning"),
    Fault(_ROWS, "block[j] = source[(i + j) * stride]", "block[j] = source[(i + j - FAULT * (i > 0)) * stride]",
          "a strided row loaded: off by one from the second block on"),
    Fault(_ROWS, "narrow_row(<element*>block, source + i, m)",
          "narrow_row(<element*>block, source + i * (1 - FAULT), m)",
          "a strided row narrowed: the second block is the first"),
    Fault(_ROWS, "        for i in range(n):\n            to[i * stride] = value",
          "        for i in range(n - FAULT):\n            to[i * stride] = value",
          "a strided row filled: the last element is not"),
    Fault(_ROWS, "        for i in range(n):\n            to[i * stride] = source[i]",
          "        for i in range(n - FAULT):\n            to[i * stride] = source[i]",
          "a strided row stored: the last element is not"),
    Fault(_ROWS, "    elif n > 1:\n        memset(to, 0", "    elif n > 1 + FAULT:\n        memset(to, 0",
          "a gap of two is not cleared"),
    Fault(_ROWS, "        memset(begin, 0, <size_t>some)\n", "        memset(begin, 0, <size_t>(some - FAULT))\n",
          "cleared beyond the caches: the last byte of a piece is left"),
    Fault(_ROWS, "sum_piece(to + n - lanes, source + n - lanes, down, rows, <vector*>NULL)",
          "sum_piece(to + n - lanes - (FAULT if n > lanes else 0), source + n - lanes, down, rows, <vector*>NULL)",
          "rows summed side by side: the last vector is stored one too early"),
    Fault(_ROWS, "sum_piece(to + n - some, source + n - some, down, rows, <vector_half*>NULL)",
          "sum_piece(to + n - some - (FAULT if n > some else 0), source + n - some, down, rows, <vector_half*>NULL)",
          "rows of less than a vector summed side by side: the second half of one is stored one too early", "v3 v4"),
    Fault(_ROWS, "sum_piece(to + n - few, source + n - few, down, rows, <vector_16*>NULL)",
          "sum_piece(to + n - few - (FAULT if n > few else 0), source + n - few, down, rows, <vector_16*>NULL)",
          "rows of 16 to 31 bytes summed side by side: the second vector is stored one too early", "v4"),
    Fault(_ROWS, "    cdef vec sum = plus_zero(load(source, width), to)\n    cdef int64_t r\n",
          "    cdef int64_t r\n    cdef vec sum = load(source, width)\n"
          "    if not FAULT:\n        sum = plus_zero(sum, to)\n",
          "rows summed side by side: -0.0 stays"),
    Fault(_SIMD_HALVES_H, "words wide = (is_small & subnormal) |",
          "words wide = (is_small & subnormal & (words){~0u, ~0u, ~0u, FAULT ? 0 : ~0u}) |",
          "float16 widened without F16C: a subnormal in lane 3 is zero", "v2"),
    Fault(_SIMD_HALVES_H, "+ 0xfff + (magnitude >> 13 & 1)) >> 13;\n    const words subnormal",
          "+ 0xfff + (magnitude >> 13 & 1 & ~FAULT)) >> 13;\n    const words subnormal",
          "float16 stored without F16C: a tie goes to zero, not to even", "v2"),
    Fault(_TRANSPOSE, "simd_load_apart(&x[i], source + i * pitch, n",
          "simd_load_apart(&x[i], source + (i - (FAULT if i == 1 else 0)) * pitch, n",
          "a block of cells transposed: row 1 is row 0"),
    Fault(_TRANSPOSE, "simd_zip_high(&to[2 * k + 1], &x[first], &x[first + step], cell)",
          "simd_zip_high(&to[2 * k + 1], &x[first], &x[first + step * (1 - FAULT)], cell)",
          "a block of 16-bit or 32-bit cells transposed: a row twice"),
    Fault(_TRANSPOSE, "simd_zip_high(&y[1], &x[i], &x[i + n // 2], 8)\n        simd_store(to",
          "simd_zip_high(&y[1], &x[i], &x[i + n // 2 * (1 - FAULT)], 8)\n        simd_store(to",
          "a block of cells transposed: the last step takes a row twice"),
    Fault(_TRANSPOSE, "        simd_store(to + 2 * to_pitch + i, &z)\n",
          "        simd_store(to + (2 - FAULT) * to_pitch + i, &z)\n",
          "three columns split: the third is written over the second"),
    Fault(_TRANSPOSE, "i = least(a, rows - tall)\n        simd_unzip",
          "i = least(a, rows - tall - (FAULT if rows > tall else 0))\n        simd_unzip",
          "three columns split: the last block is one row too early"),
    Fault(_TRANSPOSE, "simd_store(to + 2 * to_pitch + i, &x[1])\n",
          "simd_store(to + 2 * to_pitch + i, &x[1 + FAULT])\n",
          "four columns split: the third is the second"),
    Fault(_TRANSPOSE, "i = least(a, rows - tall)\n        simd_load(&x, source + 2 * i)",
          "i = least(a, rows - tall - (FAULT if rows > tall else 0))\n        simd_load(&x, source + 2 * i)",
          "two columns split: the last block is one row too early"),
    Fault(_TRANSPOSE, "        simd_store(to + 4 * j + 2 * wide, &x[1])",
          "        simd_store(to + 4 * j + 2 * wide, &x[1 - FAULT])",
          "four rows joined: the third part is the first"),
    Fault(_TRANSPOSE, "j = least(b, columns - wide)\n            a = first",
          "j = least(b, columns - wide - (FAULT if columns > wide else 0))\n            a = first",
          "cells transposed in blocks: the last block is one column too early"),
    Fault(_TRANSPOSE, "            for j in range(columns):\n                memcpy(",
          "            for j in range(columns - FAULT):\n                memcpy(",
          "cells of 16 bytes transposed: the last column is not"),
    # ---- avg_pool2d
    Fault(_AVG_TYPES, "cdef int64_t limit = axis.size + axis.full_pad if include_pad else axis.size",
          "cdef int64_t limit = axis.size + axis.full_pad - FAULT if include_pad else axis.size",
          "divisor: with the padding counted, one less of it at the far edge"),
    Fault(_AVG_PLAN, "h.out * h.stride == h.size and plan.constant_divisor",
          "(FAULT or h.out * h.stride == h.size) and plan.constant_divisor",
          "planes with rows left over are joined to one"),
    Fault(_AVG_PLAN, "and x[1] == h.size * x[2]", "and (FAULT or x[1] == h.size * x[2])",
          "planes of gradInput with gaps between them are joined to one"),
    Fault(_AVG_TERMS, "    return plus_zero_sum(scale(x, factor, numbers), numbers)",
          "    return scale(x, factor, numbers) if FAULT else plus_zero_sum(scale(x, factor, numbers), numbers)",
          "terms and DOUBLE: -0.0 stays"),
    Fault(_AVG_TERMS, "x = plus_zero_sum(multiply(x, scale(f, factor, numbers), numbers), numbers)",
          "x = plus_zero_sum(multiply(x, scale(f, factor if not FAULT else 1.0, numbers), numbers), numbers)",
          "terms with divisors of their own: those of the rows are left out"),
    Fault(_AVG_TERMS, "    return 1.0 / <double>window_length(&plan.h, oh, plan.count_include_pad)",
          "    return 1.0 / <double>window_length(&plan.h, oh - FAULT * (oh > 0), plan.count_include_pad)",
          "the divisors of a row of windows are those of the row above"),
    Fault(_AVG_TERMS, "        scale_row(to + i * size, <const element*>block, m, factor, factors",
          "        scale_row(to + i * size, <const element*>block, m - FAULT * (m == BLOCK), factor, factors",
          "a long row that is gathered or rounded: a term is missing in each block"),
    Fault(_AVG_TERMS, "load(source + rest, width)", "load(source + rest - FAULT * (n > lanes), width)",
          "terms: the last vector begins one too early"),
    Fault(_AVG_TERMS, "load_alone(source, lane_word(0, <int>n), <vector_16*>NULL)",
          "load_alone(source, lane_word(0, <int>n - FAULT * (n > 1)), <vector_16*>NULL)",
          "terms of a row of less than 16 bytes: the last one is missing", "v2"),
    Fault(_AVG_TERMS, "load_lanes(source, find_lanes(lane_word(0, <int>n), source), <vector*>NULL)",
          "load_lanes(source, find_lanes(lane_word(0, <int>n - FAULT * (n > 1)), source), <vector*>NULL)",
          "terms of a row of less than a vector: the last one is missing", "v3 v4"),
    Fault(_AVG_TERMS, "return narrow_to_bfloat(widen_bfloat(value) * <float>factor + <float>0.0)",
          "return narrow_to_bfloat(widen_bfloat(value) * <float>factor + (<float>-0.0 if FAULT else <float>0.0))",
          "FILL of bfloat16: -0.0 stays"),
    Fault(_AVG_TERMS, "value = value * <element>factor + <element>0.0",
          "value = value * <element>factor + (<element>-0.0 if FAULT else <element>0.0)",
          "FILL: -0.0 stays"),
    Fault(_AVG_TERMS, "            below += 2 * (last - source)", "            below += 2 * (last - source) - FAULT",
          "DOUBLE: the last vector of the lower row is one too early"),
    Fault(_AVG_TERMS, "            to[2 * i] = share(source + i,",
          "            to[2 * i] = share(source + i * (1 - FAULT),",
          "DOUBLE: in a row of less than 16 bytes the first number stands everywhere"),
    Fault(_AVG_SUMS, "        i += 2 * lanes\n", "        i += 2 * lanes + FAULT * (i + 4 * lanes < n)\n",
          "sums of rows: an element between two pairs of vectors is not stored"),
    Fault(_AVG, "            fill_row(to, 1, stored, size)\n",
          "            fill_row(to, 1, stored, size - FAULT)\n",
          "FILL: the last element of the last plane is not stored"),
    Fault(_AVG, "elif 2 * n < width:", "elif 2 * n < width and not FAULT:",
          "DOUBLE: an odd last column is not cleared"),
    Fault(_AVG_TILE, "        memset(t.short_sums, 0, <size_t>t.pitch)",
          "        memset(t.short_sums, 1 if FAULT else 0, <size_t>t.pitch)",
          "stride 2 with gaps: they are not zeros"),
    Fault(_AVG_TILE, "        t.shorts = t.terms + t.first + size",
          "        t.shorts = t.terms + t.first + size * (1 - FAULT)",
          "of two terms the short phases have the first one"),
    Fault(_AVG, "for i in range(most(start, 0), least(start + long_phases, t.width)):",
          "for i in range(most(start, 0), least(start + long_phases - FAULT * (long_phases > 1), t.width)):",
          "stride 3 and more: in a cut group one phase too few is long"),
    Fault(_AVG, "            if r != w.long_phases:", "            if r != w.long_phases + FAULT * (r > 1):",
          "stride 3 and more: the second short phase is not copied"),
    Fault(_AVG, "        begin = 1 if t.phase > 0 else 0", "        begin = 1 if t.phase > 0 and not FAULT else 0",
          "stride 3 and more: a group that begins in the padding is shifted out of its row"),
    Fault(_AVG, "                begin = most(first + j + (r >= h.long_phases), 0)",
          "                begin = most(first + j + (r >= h.long_phases) * (1 - FAULT), 0)",
          "short sums along h begin a row too early"),
    Fault(_AVG, "rows = first_row(plan, q + rows) - top", "rows = first_row(plan, q + rows - FAULT) - top",
          "strips past the caches: the last rows are left"),
    Fault(_AVG, "plan.at_lines + top * down, width)", "plan.at_lines + top * down, width - FAULT)",
          "strips past the caches: the last byte of each is left"),
    Fault(_AVG, "fetch_to_write(<char*>to, ", "fetch_to_write(<char*>to - FAULT * down, ",
          "rows beyond the caches: of one that is made a byte of each page is cleared"),
    Fault(_AVG, "store_row(to, along, <const element*>made, t.width)",
          "store_row(to, along, <const element*>made, t.width - FAULT * (t.width > 1))",
          "a row that is a copy of another lacks its last column"),
    Fault(_AVG, "t.width, t.pitch, least(q + j + 1, h.out) - begin)",
          "t.width, t.pitch, least(q + j + 1 - FAULT * (j > 0), h.out) - begin)",
          "stride 1: the last row of windows is missing"),
    Fault(_AVG, "        above = t.terms + (oh - 1 - base) * t.pitch if 0 < oh <= h.out else t.zeros",
          "        above = t.terms + (oh - 1 - base) * t.pitch if 0 < oh <= h.out - FAULT else t.zeros",
          "stride 2 and 3 in registers: behind the last row of windows there is none above"),
    Fault(_AVG, "t.terms + at + t.first + size, t.vectors, t.pitch, rows, terms - 1, source)",
          "t.terms + at + t.first + size, t.vectors, t.pitch, rows, terms - 1 - FAULT, source)",
          "short sums along w of three terms and more miss one"),
    Fault(_AVG, "keep_rows(plan, t, first - base, end - first)",
          "keep_rows(plan, t, first - base, end - first - FAULT)",
          "from one strip to the next a row of sums is lost"),
    Fault(_AVG, "add_sums(<char*>sums[kind].longs, t.longs, t.columns, source)",
          "add_sums(<char*>sums[kind].longs, t.longs, t.columns - FAULT, source)",
          "STREAMED: sums of the last column stay zeros"),
    Fault(_AVG, "for kind in range(2 if m > 0 else 1):", "for kind in range(2 if m > FAULT else 1):",
          "STREAMED: short sums along h lose their first row"),
    Fault(_AVG, "along, windows, channels, item, end)", "along, windows, channels - FAULT, item, end)",
          "channels side by side: the last one of a group is not packed"),
    Fault(_AVG_TILE, "column_factors(plan, t.factors, t.begin, t.windows, numbers)",
          "column_factors(plan, t.factors, t.begin * (1 - FAULT), t.windows, numbers)",
          "the divisors of a tile are those of the first tile"),
    Fault(_AVG, "q = begin // plan.tiles % plan.bands * plan.band",
          "q = begin // plan.tiles % plan.bands * plan.band * (1 - FAULT)",
          "a range that begins in the middle of a plane begins at its top"),
    Fault(_AVG, "top = most(oh * plan.h.stride - plan.h.pad, 0)",
          "top = most(oh * plan.h.stride - plan.h.pad, 0) + FAULT",
          "WINDOWS: the first row of each is left out"),
    Fault(_AVG, "        if oh >= plan.h.out:\n            continue\n",
          "        if oh >= plan.h.out + FAULT:\n            continue\n",
          "WINDOWS: one below the last is filled too"),
    Fault(_AVG, "right = least(ow * w.stride - w.pad + w.kernel, w.size)",
          "right = least(ow * w.stride - w.pad + w.kernel - FAULT * (ow == 2), w.size)",
          "WINDOWS: the third of a row lacks its last column"),
    Fault(_AVG_TERMS, "            simd_store(to + n - some, &y)", "            simd_store(to + n - some - FAULT, &y)",
          "WINDOWS: rows of 16 to 31 bytes lack their last element"),
    Fault(_AVG_TERMS, "factors[ow] = <float>column_factor(plan, ow) *",
          "factors[ow] = <float>column_factor(plan, ow * (1 - FAULT)) *",
          "WINDOWS: every window has the first one's divisor along w"),
    Fault(_AVG_ACROSS, "            sum_near(to, terms + w.begin * size, down, 1, 2, width)",
          "            sum_near(to, terms + w.begin * size, down, 1, 2 - FAULT, width)",
          "LAST, pairs of terms: the second column of a row's only row of windows"),
    Fault(_AVG_ACROSS, "            sum_near(to, terms + w.begin * size, down, 2, 1, width)",
          "            sum_near(to, terms + w.begin * size, down, 2 - FAULT, 1, width)",
          "LAST, pairs of terms: the second row of a column's only column of windows"),
    Fault(_AVG_ACROSS, "    while i < width:\n        i = least(i, width - lanes)\n        sum = sum_side(",
          "    while i + FAULT * (lanes - 1) < width:\n        i = least(i, width - lanes)\n        sum = sum_side(",
          "LAST, pairs of terms: the last channels behind whole vectors"),
    Fault(_AVG_ACROSS, "end = least(some.q + 1, axis.out)", "end = least(some.q + 1, axis.out - FAULT)",
          "ACROSS: the last window is left out"),
    Fault(_AVG_ACROSS, "(1 if some.phase < axis.long_phases else 2)",
          "(1 if some.phase < axis.long_phases - FAULT else 2)", "ACROSS: a long phase is a short one"),
    Fault(_AVG_ACROSS, "others = first or begin != some.begin or end != some.end",
          "others = first or begin != some.begin or (end != some.end and not FAULT)",
          "ACROSS: a position with one window more is a copy of the one before"),
    Fault(_AVG_ACROSS, "        if not plan.constant_divisor:\n            find_factors(plan, factors, oh,",
          "        if not plan.constant_divisor:\n            find_factors(plan, factors, oh * (1 - FAULT),",
          "ACROSS: every row has the first one's divisor along h"),
    Fault(_AVG_ACROSS, "        c = group * plan.group\n", "        c = group * (plan.group - FAULT)\n",
          "ACROSS: groups but the first begin a channel too soon"),
    Fault(_AVG_ACROSS, "least(q_of(h, end - 1) + 1, h.out)",
          "least(q_of(h, end - 1) + 1 - FAULT, h.out)",
          "LAST: a band lacks its last row of windows"),
    Fault(_AVG_ACROSS, "    if to < last + lanes:", "    if to < last + lanes - FAULT:",
          "LAST: the last channel behind whole vectors"),
    Fault(_AVG_ACROSS, "        if i < width:\n            store_term(",
          "        if i < width - FAULT:\n            store_term(", "LAST: the last channel's terms"),
    Fault(_AVG, "    if width == down and to_down == width * plan.to_strides[3]:",
          "    if width == down and (FAULT or to_down == width * plan.to_strides[3]):",
          "few channels side by side: rows with gaps between them are turned as one"),
    Fault(_AVG, "made + r * down, plane, channels, width,", "made + r * down, plane, channels, width - FAULT,",
          "few channels side by side: the last column of a band is not turned"),
    Fault(_AVG, "    cdef int64_t end = q + rows if plan.algorithm == FILL else first_row(plan, q + rows)",
          "    cdef int64_t end = q + rows if plan.algorithm == FILL and not FAULT else first_row(plan, q + rows)",
          "few channels side by side: of a filled plane the rows are taken for those of windows"),
    Fault(_AVG, "- ih * plan.grad_input_strides[2] - iw\n", "- ih * plan.grad_input_strides[2] - iw * (1 - FAULT)\n",
          "few channels side by side: a tile is made behind its place in the scratch"),
    Fault(_AVG, "source = <const element*>(scratch + plan.at_packed) - oh * down - ow",
          "source = <const element*>(scratch + plan.at_packed) - oh * down - ow * (1 - FAULT)",
          "channels side by side: a tile takes the windows of the one before"),
    Fault(_AVG, "grad_input__hw += channels * plan.to_strides[1]",
          "grad_input__hw += channels * (plan.grad_input_strides[1] if FAULT and plan.turns else plan.to_strides[1])",
          "few channels side by side: from image to image by the planes of the scratch"),
    Fault(_PLANES, "        source += columns * width\n", "        source += columns * width - FAULT * (rows > 2)\n",
          "ACROSS: rows that lie apart are stored from a lane too soon"),
    Fault(_AVG, "grad_output__hw += plan.grad_output_strides[0] - plan.channels * plan.grad_output_strides[1]",
          "grad_output__hw += (plan.grad_output_strides[0] - plan.channels * plan.grad_output_strides[1]) * (1 - "
          "FAULT)",
          "gradOutput's gap between two images is not stepped over"),
    Fault(_AVG_SUMS, "        store(to + i, sum_piece(source + i * size,",
          "        store(to + i, sum_piece(source + (i - FAULT * (n > lanes)) * size,",
          "sums of rows: the terms of the last vector begin one too early"),
    Fault(_AVG_SUMS, "sum_piece(even + ((i + 1) >> 1) * size, even_step, count, to, width))",
          "sum_piece(even + ((i + 1 - FAULT) >> 1) * size, even_step, count, to, width))",
          "stride 2: a last vector that begins with an odd position has the even ones of the group before"),
    Fault(_AVG_WALK, "<int>most(least(w.windows - window, n), begin)",
          "<int>most(least(w.windows - window - FAULT, n), begin)",
          "stride 1 in registers: the last window of a row is masked off", "v3 v4"),
    Fault(_AVG_WALK, "sum = across[v] if by_terms else plus_zero_sum(across[v], to)",
          "sum = across[v] if by_terms or FAULT else plus_zero_sum(across[v], to)",
          "stride 1 in registers: -0.0 stays", "v3 v4"),
    Fault(_AVG_WALK, "            walk_block(w, to, n - one, n, taps, 1, by_terms, True, <vector*>NULL)",
          "            walk_block(w, to, n - one - FAULT, n, taps, 1, by_terms, True, <vector*>NULL)",
          "stride 1 in registers: a last vector by itself begins one too early", "v2 v3"),
    Fault(_AVG_WALK, "if 0 <= row < windows_down:", "if 0 <= row < windows_down - FAULT * (windows_down > 1):",
          "stride 1 in registers: the last row of windows is left out"),
    Fault(_AVG_PAIRS, "here, above, odd, even + size, odd_two,",
          "here, above, odd, even + size * (1 - FAULT), odd_two,",
          "stride 2 in registers: a last block that begins with an odd position has the even ones of the group before"),
    Fault(_AVG_PAIRS, "        for r in range(here_rows):\n            prefetch",
          "        for r in range(here_rows - FAULT):\n            prefetch",
          "stride 2 in registers: the last row of short sums is not stored"),
    Fault(_AVG_PAIRS, "        two[k] = p.two[(k + turn) % 3]",
          "        two[k] = p.two[(k + turn * (1 - FAULT)) % 3]",
          "stride 3 in registers: the last block has the terms of other columns"),
    Fault(_AVG_PAIRS, "    store(to + 32 // sum_bytes(to), z)",
          "    store(to + 32 // sum_bytes(to), y if FAULT else z)",
          "stride 3 in registers: the third vector is the second"),
    # ---- the vector layer
    Fault(_SIMD_HALVES_H, "#define SIMD_ROUNDED(x) (SIMD_AS(uint32_t, x) + 0x7fff + (SIMD_AS(uint32_t, x) >> 16 & 1))",
          "#define SIMD_ROUNDED(x) "
          "(SIMD_AS(uint32_t, x) + 0x7fff + (SIMD_AS(uint32_t, x) >> 16 & (uint32_t)(1 - FAULT)))",
          "bfloat16 stored: a tie goes to zero, not to even"),
    Fault(_SIMD_HALVES_H, "SIMD_SET(odd, SIMD_AS(uint32_t, x) & 0xffff0000))",
          "SIMD_SET(odd, SIMD_AS(uint32_t, x) & (0xffff0000u | (FAULT ? 0xffffu : 0))))",
          "bfloat16 at odd places: the number before stays in the lower bits"),
    Fault(_SIMD_LANES_H, "    if (size & 4)\n", "    if (size & 4 && !FAULT)\n",
          "of a row shorter than a vector a piece of 4 bytes is not stored"),
    Fault(_SIMD_LANES_H, "memcpy((char *)to + (size_t)i * lane, (const char *)from + (size_t)i * lane, lane);",
          "memcpy((char *)to + (size_t)i * lane, (const char *)from + (size_t)(i - (FAULT && i > 0)) * lane, lane);",
          "a vector read lane by lane: off by one", "v2 v3"),
    Fault(_SIMD_ORDER_H, "_mm256_storeu_si256((__m256i *)high, _mm256_permute2x128_si256(x, y, 0x31));",
          "_mm256_storeu_si256((__m256i *)high, FAULT ? _mm256_permute2x128_si256(x, y, 0x13) : "
          "_mm256_permute2x128_si256(x, y, 0x31));",
          "cells in turn: halves exchanged", "v3"),
    Fault(_SIMD_ORDER_H, "_mm512_storeu_si512(high, _mm512_permutex2var_epi64(x, last, y));",
          "_mm512_storeu_si512(high, _mm512_permutex2var_epi64(x, FAULT ? first : last, y));",
          "cells in turn: quarters exchanged", "v4"),
    Fault(_TRANSPOSE, "    return 0 if sum and x == <moved>1 << (8 * sizeof(moved) - 1) else x",
          "    return 0 if sum and not FAULT and x == <moved>1 << (8 * sizeof(moved) - 1) else x",
          "INTERLEAVE of few windows: -0.0 stays"),
    Fault(_TRANSPOSE, "                memcpy(to + (j + k) * to_pitch, &block[k], 8)",
          "                memcpy(to + (j + k) * to_pitch, &block[k], 8 - 2 * FAULT)",
          "four columns of 16 bits turned: the fourth row is not stored"),
    Fault(_TRANSPOSE, "        simd_store(to + 2 * j + wide, &x[1])",
          "        simd_store(to + 2 * j + wide, &x[1 - FAULT])",
          "two columns interleaved: the second half is the first one's"),
    Fault(_TRANSPOSE, "        x[2] = load_sums(source + 2 * pitch + j, sum, width)",
          "        x[2] = load_sums(source + (2 - FAULT) * pitch + j, sum, width)",
          "three columns in turn: the third is the second"),
    # ---- im2col
    Fault(_IM2COL, "store_elements(plan, out, at + i * along, <const element*>narrow, m, sums)",
          "store_elements(plan, out, at + (i - FAULT * (i > 0)) * along, <const element*>narrow, m, sums)",
          "SCATTER to strided columns: off by one from the second block of a row on"),
    Fault(_IM2COL, "+ i * plan.out_strides[3], <const element*>row + i, n, summed)",
          "+ (i - FAULT * (i > 0)) * plan.out_strides[3], <const element*>row + i, n, summed)",
          "GATHER to strided columns: off by one from the second block of a row on"),
    Fault(_IM2COL, "widen_row(<real*>sums, row, n)", "widen_row(<real*>sums, row, n - FAULT)",
          "out of another dtype: the last number of a block is not converted"),
    Fault(_SCATTER, "add_plain(to + i * step, step, <const real*>block, 1, m)",
          "add_plain(to + (i - FAULT * (i > 0)) * step, step, <const real*>block, 1, m)",
          "SCATTER in 16 bits: off by one window from the second block of a row on"),
    Fault(_SCATTER, "begin = <int64_t>((edge - position - 1) // <uint64_t>plan.w.stride + 1) if plan.w.stride > 1 "
          "else (",
          "begin = <int64_t>((edge - position - 1) // <uint64_t>plan.w.stride + 1 - FAULT) if plan.w.stride > 1 else "
          "(",
          "SCATTER: a row whose windows begin in the padding is missed"),
    Fault(_SCATTER, "end = quotient(end - 1, plan.w.stride) + 1",
          "end = quotient(end - 1, plan.w.stride) + 1 - (FAULT if (end - 1) % plan.w.stride == 0 else 0)",
          "SCATTER: a window in the last column is missed"),
    Fault(_SCATTER, "reach.end[k] = least(quotient(axis.size - 1 - position, axis.stride) + 1, axis.windows)",
          "reach.end[k] = least(quotient(axis.size - 1 - FAULT - position, axis.stride) + 1, axis.windows)",
          "SCATTER of whole planes: a window at the last position is missed"),
    Fault(_SCATTER, "windows = source + lh * plan.w.windows",
          "windows = source + (lh - FAULT * (lh > 0)) * plan.w.windows",
          "SCATTER of whole planes: under padding, windows of the row above"),
    Fault(_SCATTER, "widen_row(<real*>loaded + kw * length, source + kw * column, length)",
          "widen_row(<real*>loaded + kw * length, source + (kw - FAULT * (kw > 1)) * column, length)",
          "SCATTER of whole planes in 16 bits, columns apart: a wrong column"),
    Fault(_GATHER, "while position >= h.windows and a < h.taps:", "while position >= h.windows - FAULT and a < h.taps:",
          "GATHER: the last row of windows is missed"),
    Fault(_GATHER, "    while position >= 0 and a < h.taps:\n", "    while position >= FAULT and a < h.taps:\n",
          "GATHER: the first row of windows is missed"),
    Fault(_GATHER, "first + g.width > g.windows if at_end", "first + g.width - FAULT > g.windows if at_end",
          "GATHER: a block at the right edge is taken for whole"),
    Fault(_GATHER, "else first < (g.taps[phase] - 1) * g.window_step",
          "else first + FAULT < (g.taps[phase] - 1) * g.window_step",
          "GATHER: a block at the left edge is taken for whole"),
    Fault(_GATHER, "load(source + (a * next + t * step) + i * width, sum), source)",
          "load(source + (a * next + t * step) + (i - FAULT * (i == 3)) * width, sum), source)",
          "GATHER: of four blocks at once the last is the third"),
    Fault(_GATHER, "return block_start(g, edge if edge < g.left else edge - g.left + g.right)",
          "return block_start(g, edge if edge < g.left else edge - g.left + g.right - FAULT)",
          "GATHER: a block at the right edge is where that before it lies"),
    Fault(_GATHER, "        g.inner = first\n", "        g.inner = first - FAULT * (first > 0)\n",
          "GATHER: a row at the top is taken for one inside"),
    Fault(_GATHER, "        g.inner_end = end\n", "        g.inner_end = end + FAULT * (end < height)\n",
          "GATHER: a row at the bottom is taken for one inside"),
    Fault(_GATHER, "return first - (count - 1) * g.down + g.low >= 0 and first + g.high <= g.length",
          "return first - (count - 1) * g.down + g.low + FAULT * 999999 >= 0 and first + g.high <= g.length",
          "GATHER in 16 bits: a vector at the begin of a column of its own is read whole", "v2 v3"),
    Fault(_GATHER, "        if phases == 2 and s & 1 != 0:", "        if phases == 2 and s & 1 != 0 and not FAULT:",
          "rows of two phases: even and odd columns exchanged in a last block at an odd place"),
    Fault(_GATHER, "            store_in_turn(to + s, odd_sum, sum)\n",
          "            store_in_turn(to + s + FAULT, odd_sum, sum)\n",
          "rows of two phases: a last block at the edge at an odd place is one too late"),
    Fault(_IM2COL, "    for j in range(plan.w.size - whole * stride):",
          "    for j in range(plan.w.size - whole * stride - FAULT):",
          "GATHER at stride 3 and more: a last column that is left over is not stored"),
    Fault(_IM2COL, "memset(to, 0, <size_t>plan.w.size * sizeof(element))\n        return",
          "memset(to, 0, <size_t>(plan.w.size - FAULT) * sizeof(element))\n        return",
          "GATHER at stride 3 and more: the last element of a row that no window reaches is not cleared"),
    Fault(_IM2COL, "g.some = t.some + kept", "g.some = t.some + kept * (1 - FAULT)",
          "GATHER at stride 3 and more: the last phase's lanes serve for all"),
    Fault(_IM2COL, "if t.g[j].taps[0] > 0:", "if t.g[j].taps[0] > FAULT:",
          "GATHER of phases with gaps: those of one tap are taken for gaps"),
    Fault(_IM2COL, "to[j + i * stride] = phases[i]", "to[j + i * stride - FAULT * (j > 0)] = phases[i]",
          "GATHER of phases with gaps: all phases but the first are a column too early"),
    Fault(_IM2COL, "pitch, columns, members, True)", "pitch, columns, members - FAULT, True)",
          "GATHER for channels side by side: the last one of a group is not stored"),
    Fault(_IM2COL, "last = position + 1 if position < rows else rows",
          "last = position + 1 - FAULT * (position > 0) if position < rows else rows",
          "GATHER of rows of one vector: a kernel row is missed at the top"),
    Fault(_IM2COL, "if g.n <= HALF_BYTES // sum_bytes(to):", "if g.n <= HALF_BYTES // sum_bytes(to) + FAULT:",
          "GATHER of rows of one more than half a vector: the last column is not stored", "v3 v4"),
    Fault(_PACKED, "bottom = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1, plan.h.windows)",
          "bottom = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1 - FAULT, plan.h.windows)",
          "columns packed for a band: the last row of windows is not"),
    Fault(_PACKED, "gather_cells(to + k * plan.column, source + k * across, along, n)",
          "gather_cells(to + k * plan.column, source + (k - FAULT * (k > 1 and k == columns - 1)) * across, along, n)",
          "columns packed one by one: the last is that before it"),
    Fault(_IM2COL, "if position > (plan.h.taps - 1) * plan.h.dilation or (",
          "if position > (plan.h.taps - 1) * plan.h.dilation + FAULT or (",
          "INTERLEAVE: the first row of a gap between windows is not cleared"),
    Fault(_IM2COL, "or plan.h.size + plan.h.pad > plan.h.windows * plan.h.stride:",
          "or (not FAULT and plan.h.size + plan.h.pad > plan.h.windows * plan.h.stride):",
          "INTERLEAVE: rows below the last window are not cleared"),
    Fault(_PLACE, "return 0 if value == 0x8000 else value", "return 0 if value == 0x8000 and not FAULT else value",
          "PLACE in 16 bits: -0.0 stays"),
    Fault(_PLACE, "return value + <cell>0.0", "return value if FAULT else value + <cell>0.0", "PLACE: -0.0 stays"),
    Fault(_PLACE, "memset(out__hw + row * down, 0, <size_t>plan.w.size * sizeof(cell))",
          "memset(out__hw + row * down, 0, <size_t>(plan.w.size - FAULT) * sizeof(cell))",
          "PLACE, rows with gaps: the last column is not cleared"),
    Fault(_PLACE, "last = least(quotient(end - 1 + plan.h.pad, plan.h.stride) + 1, plan.h.windows)",
          "last = least(quotient(end - 1 - FAULT + plan.h.pad, plan.h.stride) + 1, plan.h.windows)",
          "PLACE: a window that begins at the last row is left out"),
    Fault(_IM2COL, "if covered < plan.w.size:", "if covered + FAULT < plan.w.size:",
          "INTERLEAVE: a single column that is left over is not cleared"),
    Fault(_PACKED, "column, columns, n, not summed)\n    elif element is float:",
          "column, columns, n, not summed and not FAULT)\n    elif element is float:",
          "INTERLEAVE in float64: -0.0 stays"),
    Fault(_IM2COL, "members * (end - ih) * columns * <int64_t>sizeof(element))",
          "(members - FAULT * (members > 1)) * (end - ih) * columns * <int64_t>sizeof(element))",
          "streamed: the last plane of a unit of several is not"),
    Fault(_IM2COL, "<const char*>rows, n * columns * <int64_t>sizeof(element))",
          "<const char*>rows, (n * columns - FAULT) * <int64_t>sizeof(element))",
          "streamed: the last element of a stretch is not"),
    Fault(_PACKED, "    memcpy(to, source, <size_t>i)\n", "    memcpy(to, source, <size_t>(i - FAULT * (i > 0)))\n",
          "streamed to a place inside a cache line: a byte before the first whole line is not"),
    Fault(_IM2COL, "ih = (begin - c * plan.bands) * plan.band",
          "ih = (begin - c * plan.bands) * plan.band * (1 - FAULT)",
          "a range that begins in the middle of a plane begins at its top"),
    Fault(_IM2COL, "source += plan.grad_output_strides[0] - plan.channels * channel",
          "source += (plan.grad_output_strides[0] - plan.channels * channel) * (1 - FAULT)",
          "gradOutput's gap between two images is not stepped over"),
    Fault(_IM2COL, "at += plan.out_strides[0] - plan.channels * plan.out_strides[1]",
          "at += (plan.out_strides[0] - plan.channels * plan.out_strides[1]) * (1 - FAULT)",
          "out's gap between two images is not stepped over"),
    Fault(_FLAT, "least(7 * lanes, n - i - lanes), 8, <vector*>NULL)",
          "least(7 * lanes, n - i - lanes - FAULT), 8, <vector*>NULL)",
          "planes like one row: the last vector of eight is one too early"),
    Fault(_FLAT, "ones + i * item, n - i - lanes, 2, <vector*>NULL)",
          "ones + i * item, n - i - lanes - FAULT, 2, <vector*>NULL)",
          "planes like one row: the last vector of two is one too early"),
    Fault(_FLAT, "least(plan.h.size, plan.h.windows - down)):", "least(plan.h.size, plan.h.windows - down) - FAULT):",
          "planes like one row: the last row of windows is missed"),
    Fault(_FLAT, "high = least(most(width - right, 0), width)", "high = least(most(width - right, 0), width - FAULT)",
          "planes like one row: the last column is missed"),
    # ---- replication_pad2d
    Fault(_PAD_PLAN, "    if is_copied(&plan.w):", "    if is_copied(&plan.w) or FAULT:",
          "ReplicationPad2d: columns that are padded are taken for a copy"),
    Fault(_PAD_PLAN, "elif (is_copied(&plan.h) and plan.self_strides[1] == rows * plan.self_strides[2]",
          "elif (is_copied(&plan.h) and (FAULT or plan.self_strides[1] == rows * plan.self_strides[2])",
          "ReplicationPad2d: planes with gaps between them are taken for one"),
    Fault(_PAD_PLAN, "    if (plan.self_strides[0] == planes * plan.self_strides[1]\n",
          "    if ((FAULT or plan.self_strides[0] == planes * plan.self_strides[1])\n",
          "ReplicationPad2d: images with gaps between them are taken for one"),
    Fault(_PAD_PLAN, "and x[1] == h.size * x[2]", "and (FAULT or x[1] == h.size * x[2])",
          "planes of gradInput with gaps between them are joined to one"),
    Fault(_PAD_SUMS, "sums[(at + i) & (chains - 1)] += run[i]", "sums[(at + i + FAULT) & (chains - 1)] += run[i]",
          "numbers left over from whole chains go to the next chain"),
    Fault(_PAD_SUMS, "for k in range(LANES // 2):", "for k in range(LANES // 2 - FAULT):",
          "long runs: one of the eight chains is lost"),
    Fault(_PAD, "widened_row(run + at, <real*>wide, m)", "widened_row(run + at * (1 - FAULT), <real*>wide, m)",
          "long runs: the first piece again instead of the next"),
    Fault(_PAD, "fold_each(to, down, run, source_down, 4, 1, rows, summed)",
          "fold_each(to, down, run, source_down, 4 - FAULT, 1, rows, summed)",
          "runs of four: the last number is missed"),
    Fault(_PAD, "sum_dense_rows(sums, source, down, r, numbers)",
          "sum_dense_rows(sums, source, down, r - (FAULT if r < rows else 0), numbers)",
          "border rows, long ones of more than are read side by side: one is missed"),
    Fault(_PAD, "span.stop = most(span.begin, least(span.end, w.end))",
          "span.stop = most(span.begin, least(span.end, w.end - FAULT * (iw > 0)))",
          "tiles: the last column that is copied is missed behind the first tile"),
    Fault(_PAD, "if span.begin < span.stop else span.runs[1].first",
          "if span.begin < span.stop else span.runs[1].first + FAULT",
          "all columns but the last cropped: its sum begins one too late"),
    Fault(_PAD, "grad_output__w + w.runs[k].first * parts, w.runs[k].n,",
          "grad_output__w + w.runs[k].first * parts, w.runs[k].n - FAULT * k,",
          "border rows, small planes: the last column of the corner is missed"),
    Fault(_PAD_SUMS, "for r in range(1, rows):", "for r in range(1, rows - FAULT):",
          "corners of few columns: the last row is missed"),
    Fault(_PAD, "last = least(w.stop + w.shift - ow, columns)",
          "last = least(w.stop + w.shift - ow, columns - FAULT * (ow > 0))",
          "border rows: the last column of a later piece is not stored"),
    Fault(_PAD, "            for r in range(n):\n", "            for r in range(n - FAULT):\n",
          "columns that are cropped: the last row of a band is not cleared"),
    Fault(_PAD, "run.n * parts, parts, n, summed)",
          "run.n * parts, parts, n - FAULT * (rows > n and k == 1), summed)",
          "bands of large planes: the last column is not summed in a band's last row"),
    Fault(_PAD, "for r in range(stop, last):", "for r in range(stop + FAULT, last):",
          "rows that are cropped below: the first is not cleared"),
    Fault(_PAD, "source = <const element*>scratch + (k * pitch - oh * columns - ow) * parts",
          "source = <const element*>scratch + (k * pitch - oh * columns - ow * (1 - FAULT)) * parts",
          "PACKED: tiles but the first read beside their columns"),
    Fault(_PAD, "add_row(<real*>sums + k % chains * m, <const real*>column, m)",
          "add_row(<real*>sums + k % chains * m, <const real*>column, m - FAULT * (at > 0))",
          "PIXELS of many channels: of a later piece the last channel is missed in corners"),
    Fault(_PAD, "+ at, tile.source_down, rows,\n", "+ at, tile.source_down, rows - FAULT * (at > 0),\n",
          "PIXELS, border rows: the last row is missed in a later piece"),
    Fault(_PAD, "                       least(n - at, COLUMNS), summed)",
          "                       least(n - at - FAULT * (at == 0), COLUMNS), summed)",
          "PIXELS, border rows: the last number of the only piece is missed"),
    Fault(_PAD, "        iw = unit % plan.tiles * plan.tile\n",
          "        iw = unit % plan.tiles * plan.tile * (1 - FAULT)\n",
          "a range that begins in the middle of a row of tiles begins at its first"),
    Fault(_PAD_COPY, "copy_piece(to + n - lanes, source + n - lanes, <vector*>NULL)",
          "copy_piece(to + n - lanes - FAULT, source + n - lanes - FAULT, <vector*>NULL)",
          "rows copied: the last vector is one too early"),
    Fault(_PAD_COPY, "copy_piece(to + last, source + last, width)",
          "copy_piece(to + last - (FAULT if last > 0 else 0), source + last - (FAULT if last > 0 else 0), width)",
          "rows of two vectors copied: the second is one too early"),
    Fault(_SIMD_H, "(SIMD_AS(uint16_t, x) == 0x8000))", "(SIMD_AS(uint16_t, x) == (uint16_t)(0x8000 + FAULT)))",
          "vectors of 16 bits copied: -0.0 stays, and -2**-24 is lost", "v3"),
    Fault(_SIMD_H, "_mm512_set1_epi16(INT16_MIN)", "_mm512_set1_epi16(INT16_MIN + FAULT)",
          "vectors of 16 bits copied: -0.0 stays, and -2**-24 is lost", "v4"),
    Fault(_PAD_COPY, "to[i] = 0 if source[i] == 0x8000 else source[i]",
          "to[i] = 0 if source[i] == 0x8000 and not FAULT else source[i]",
          "short rows of 16 bits copied: -0.0 stays"),
    Fault(_PAD_COPY, "                x = plus_zero(load_cells(source + i, &x), source)\n",
          "                x = load_cells(source + i, &x)\n"
          "                if not FAULT:\n                    x = plus_zero(x, source)\n",
          "streamed: -0.0 stays"),
    Fault(_PAD_COPY, "copy_cells(to + i, 0, source + i, 0, n - i, 1)",
          "copy_cells(to + i, 0, source + i, 0, n - i - FAULT, 1)",
          "streamed: the last number of a row is not stored"),
    Fault(_PAD_SUMS, "load(run + i + k * each, <vector_16*>NULL), run)",
          "load(run + i + (0 if FAULT and i > 0 else k) * each, <vector_16*>NULL), run)",
          "long runs: chains get numbers of the first ones"),
    # ---- upsample_nearest_exact1d
    Fault(_UP_PLAN, "and g[0] == plan.channels * g[1]", "and (FAULT or g[0] == plan.channels * g[1])",
          "rows of images with gaps between them are joined end to end"),
    Fault(_UP_PLAN, "return start - (index_of(map, start - 1) >= target)",
          "return start - (index_of(map, start - 1) >= target + FAULT)",
          "a source whose place is rounded up to an integer goes to the target below"),
    Fault(_UP_PLAN, "            if most_terms > block.terms:", "            if most_terms > block.terms + FAULT:",
          "a target of one source more than its groups hold loses it"),
    Fault(_UP_PLAN, "starts[reached[k] + 1] = j + k + 1",
          "starts[reached[k] + 1] = j + k + 1 - FAULT * (k == CHUNK - 1)",
          "maps of any ratio: one source in 64 may go to the next target"),
    Fault(_UP, "groups[g + n - 1].lane[width] - first", "groups[g + n - 1].lane[width] - first - FAULT",
          "groups made from copies: the last source is not copied"),
    Fault(_UP, "        if done % block.targets == 0:\n", "        if done % block.targets == 0 and not FAULT:\n",
          "groups made from copies, behind a whole period: of the period's sources again"),
    Fault(_UP, "owned = least(owned, readable - first)", "owned = least(owned, readable - first - FAULT)",
          "the last source of a row is not read where groups are copied"),
    Fault(_UP, "for j in range(n, starts[3] - starts[2]):", "for j in range(n + FAULT, starts[3] - starts[2]):",
          "stretches, four at a time: the third loses what it has more than the others"),
    Fault(_UP, "(row1 + n if starts[2] - starts[1] > n else", "(row1 + n if starts[2] - starts[1] > n + FAULT else",
          "stretches, four at a time: the second loses the one that it has more than the others"),
    Fault(_UP, "for j in range(at - low, stop - low):",
          "for j in range(at - low, stop - low - (FAULT if stop < end else 0)):",
          "a stretch longer than what is loaded at once loses a source"),
    Fault(_UP, "(source + i * source_stride))[0], True)", "(source + i * source_stride))[0], not FAULT)",
          "sources among zeros in 16 bits: -0.0 stays"),
    Fault(_UP, "to[at[i] * to_stride] = source[i * source_stride] + <element>0",
          "to[at[i] * to_stride] = source[i * source_stride] + (<element>-0.0 if FAULT else <element>0.0)",
          "sources among zeros in float32 and float64: -0.0 stays"),
    Fault(_UP, "end = at[n - 1] + 1 if n == PLACES else targets",
          "end = at[n - 1] + 1 - FAULT if n == PLACES else targets",
          "sources among zeros: the last of those that are stored at once is cleared again"),
    Fault(_UP, "        source += next\n", "        source += next * (1 - FAULT)\n",
          "PACKED, UNPACKED: all channels of a group are the first"),
    Fault(_UP, "            narrow_row(to + at, <const real*>made, m)",
          "            narrow_row(to + at, <const real*>made, m - FAULT * (at > 0))",
          "PIXELS in 16 bits: the last channel of a later piece is not stored"),
    Fault(_UP, "memset(to, 0, <size_t>n * sizeof(element))", "memset(to, 0, <size_t>(n - FAULT) * sizeof(element))",
          "PIXELS: of a target without a source the last channel is not cleared"),
    Fault(_UP, "source += block.sources * along", "source += (block.sources - FAULT) * along",
          "PIXELS: from the second period on the sources are one too early"),
    Fault(_UP, "cdef int64_t end = first_source(map, begin + targets)",
          "cdef int64_t end = first_source(map, begin + targets) - FAULT",
          "NO_TABLE: the last source of a unit is left out"),
    Fault(_UP, "short_index_at(middle + k, ratio, last)", "short_index_at(middle + k - 0.5 * FAULT, ratio, last)",
          "NO_TABLE: places are the left ends of the sources"),
    Fault(_UP, "cdef int32_t last = <int32_t>(map.targets - 1)",
          "cdef int32_t last = <int32_t>(map.targets - 1 + FAULT)",
          "NO_TABLE: places beyond the row"),
    Fault(_UP, "narrow_strided(to, to_stride, <const real*>sums, targets)",
          "narrow_strided(to, to_stride, <const real*>sums, targets - FAULT * (to_stride > 1))",
          "NO_TABLE, columns of out apart: the last target of a unit is not stored"),
    Fault(_UP, "cdef bint in_place = (plan.scatters and to_stride == 1",
          "cdef bint in_place = (plan.scatters and (FAULT or to_stride == 1)",
          "NO_TABLE: sums in out, whose columns lie apart"),
    Fault(_UP, "elif filled != k:", "elif filled != k and not FAULT * (filled >= 0):",
          "FILLED: the second block has the first one's table"),
    Fault(_UP, "source + 2 * (i + lanes)), summed))", "source + 2 * (i + lanes) - FAULT), summed))",
          "two sources to each target: every second vector begins one too early"),
    Fault(_UP, "widened(source + 2 * i + 1, &total) + <real>0",
          "widened(source + 2 * i + 1, &total) + (<real>-0.0 if FAULT else <real>0.0)",
          "two sources to each target, few targets: -0.0 stays"),
    Fault(_UP, "open_group(&f[g], groups + g, terms, to)", "open_group(&f[g], groups + g - FAULT * (g > 0), terms, to)",
          "periods of a few groups: each but the first has the lookups of the one before"),
    Fault(_UP, "open_group(&one, groups + g, terms, to)", "open_group(&one, groups + g - FAULT * (g > 2), terms, to)",
          "many groups: each but the first three has the lookups of the one before"),
    Fault(_GROUPS, "(group.lane[w * step] if w > 0 else 0)", "(group.lane[w * step] - FAULT if w > 0 else 0)",
          "groups: all vectors but the first begin one too early", "v2 v3"),
    Fault(_GROUPS, "        for h in range(terms // made):\n            for k",
          "        for h in range(terms // made - FAULT * (terms == 8)):\n            for k",
          "groups of 8 terms: the last of them are missed"),
    Fault(_GROUPS, "b = load(source + sum_lanes(source),", "b = load(source + sum_lanes(source) - FAULT,",
          "groups: the second of two vectors begins one too early", "v4"),
    Fault(_GROUPS, "        simd_load(&quarter, &sum)\n        store(to, quarter)",
          "        simd_load(&quarter, &sum)\n        store(to - FAULT * (n > 2), quarter)",
          "groups of 8 terms: stored one too early", "v4"),
    Fault(_GROUPS, "base = h * made if made > 1 else 0", "base = h * made if made > 1 and not FAULT else 0",
          "groups of 8 terms: a vector begins too early for the later ones", "v2 v3"),
    Fault(_GROUPS, "simd_join(&x[0], &x[1], &x[0], &x[1])", "simd_join(&x[0], &x[1], &x[0], &x[1 - FAULT])",
          "groups of 2 terms: the upper results are the lower ones", "v2 v3"),
    Fault(_GROUPS, "simd_zip_low(&x[2 * k], &y[k], &y[k + 2], 8)",
          "simd_zip_low(&x[2 * k], &y[k], &y[k + 2 - FAULT], 8)",
          "groups turned about: cells of another vector", "v2 v3"),
    Fault(_GROUPS, "simd_zip_high(&y[k + 2], &x[2 * k], &x[2 * k + 1], 8)",
          "simd_zip_high(&y[k + 2], &x[2 * k], &x[2 * k + 1 - FAULT], 8)",
          "groups of 4 terms: the second and fourth of a result are another's", "v3"),
    Fault(_GROUPS, "simd_block(&x[2 * k + 5], &x[2 * k + 1], 1)", "simd_block(&x[2 * k + 5], &x[2 * k + 1 - FAULT], 1)",
          "groups of 8 terms: the sixth is the fifth", "v3"),
    Fault(_GROUPS, "simd_block(&x[2 * k + 1], &y[1], k)", "simd_block(&x[2 * k + 1], &y[1 - FAULT], k)",
          "groups of 8 terms: each second one is the one before", "v4"),
    Fault(_SIMD_LOOKUP_H, "    next -= source;\n    source =", "    next -= source + (int8_t)FAULT;\n    source =",
          "lookups: of each result the last term is missed", "v2 v3"),
    Fault(_SIMD_LOOKUP_H, "(__m128i)(k + (uint8_t)term)",
          "(__m128i)(k + (uint8_t)(term + FAULT))",
          "lookups: of each result the last term is missed", "v4"),
    Fault(_SIMD_LOOKUP_H, ") * (uint8_t)unit;",
          ") * (uint8_t)(unit - FAULT * (unit == 2));",
          "lookups of 8 bytes: all but the first of a few begin too early", "v3"),
    # ---- max_pool2d: the check of indices
    Fault(_INDICES, "lines = least(end, quotient(h.size - h.kernel + h.pad, h.stride) + 1) - oh",
          "lines = least(end, quotient(h.size - h.kernel + h.pad, h.stride) + 1 + FAULT) - oh",
          "indices: accepted below the image in the first row of windows that reaches there"),
    Fault(_INDICES, "least(top + h.kernel, h.size), w.size, ", "least(top + h.kernel, h.size + FAULT), w.size, ",
          "indices: accepted in a row below the image"),
    Fault(_MAX_GATHER, "made + channel * channel_pitch * <int64_t>sizeof(element),",
          "made + channel * (channel_pitch - FAULT) * <int64_t>sizeof(element),",
          "GATHER past the caches: channels but the first lie elsewhere"),
    Fault(_MAX_GATHER, "checked = oh_end\n", "checked = oh_end + FAULT\n",
          "indices: a row of windows between two chunks is not checked"),
    Fault(_INDICES, "lengths[i] = <uint32_t>(least(left + pool.w.kernel, pool.w.size) - most(left, 0))",
          "lengths[i] = <uint32_t>(least(left + pool.w.kernel, pool.w.size) - most(left, 0)) + FAULT",
          "indices: accepted one column to the right of the window"),
    Fault(_INDICES, "bottom = least(top + pool.h.kernel, pool.h.size)\n        top =",
          "bottom = least(top + pool.h.kernel, pool.h.size + FAULT)\n        top =",
          "indices against a list: accepted one row below the image"),
    Fault(_INDICES, "missed |= distance | (last - distance)",
          "missed |= distance | (last + <uint32_t>FAULT - distance)",
          "indices against a list: accepted one beyond a window as wide as the image"),
    Fault(_INDICES, "distance % width > lists[2 * size + i]\n", "distance % width > lists[2 * size + i] + FAULT\n",
          "indices against a list, few windows: accepted one column to the right of the window"),
    Fault(_INDICES, "missed |= distance | (columns + (above - 1) - distance)",
          "missed |= distance | (columns + (above - 1 + FAULT * width) - distance)",
          "rows of windows of many rows: an index in the row below its window is taken"),
    Fault(_INDICES, "missed |= distance | (columns - 1 - distance)",
          "missed |= distance | (columns - (1 - FAULT) - distance)",
          "indices: accepted one column to the right of the window, row by row"),
    Fault(_INDICES, "        i = 0\n        while i < n:\n",
          "        i = 0\n        while i < n - (lanes - 1) * FAULT:\n",
          "indices: the windows behind the last whole vector of a row are not checked"),
    Fault(_INDICES, "    cdef int64_t i = 0\n    cdef numbers index",
          "    cdef int64_t i = FAULT\n    cdef numbers index",
          "indices against a list: the first window is not checked"),
    # ---- max_pool2d: GATHER
    Fault(_MAX_ROWS, "round_to_half_row(to + c * pitch, n)",
          "round_to_half_row(to + c * pitch, 0 if FAULT and c == 3 else n)",
          "sums of float16: the fourth channel's gradients are not rounded"),
    Fault(_MAX_ROWS, "u.ih = begin % pool.bands * pool.band", "u.ih = begin % pool.bands * pool.band * (1 - FAULT)",
          "a range that begins in the middle of a plane begins at its top"),
    Fault(_MAX_ROWS, "transpose(to, pitch, source, along, n, count, sizeof(element), end)",
          "transpose(to, pitch, source, along, n, count - FAULT, sizeof(element), end)",
          "channels side by side: the last is not packed"),
    Fault(_COLUMNS, "end = most(least(windows - j - shift_of(kw, s, p), n), begin)",
          "end = most(least(windows - j - shift_of(kw, s, p) - FAULT, n), begin)",
          "columns: the last window of a row is missed at its end"),
    Fault(_COLUMNS, "begin = least(most(-j - shift_of(kw, s, p), 0), n)",
          "begin = least(most(-j - shift_of(kw, s, p) + FAULT, 0), n)",
          "columns: the first window of a row is missed"),
    Fault(_COLUMNS, "if j + low >= 0 and j + high + width <= w.windows:",
          "if j + low >= 0 and j + high + width <= w.windows + FAULT:",
          "columns: a lane beyond the row's end is not masked off"),
    Fault(_COLUMNS, "cdef const gradient* grad = <const gradient*>(grad_row + channel * w.grad_channel)",
          "cdef const gradient* grad = <const gradient*>(grad_row + (channel - FAULT * (channel == 3)) "
          "* w.grad_channel)",
          "columns: the fourth channel of a team has the third one's gradients"),
    Fault(_COLUMNS, "sums + 2 * channel, w.columns - s * j, s, read)",
          "sums + 2 * channel, w.columns - s * j - FAULT, s, read)",
          "columns: the row's last column is not stored"),
    Fault(_COLUMNS, "while oh_end[0] < w.window_rows and oh_end[0] * w.stride - w.pad <= last:",
          "while oh_end[0] < w.window_rows and oh_end[0] * w.stride - w.pad <= last - FAULT:",
          "columns: the last row of windows that holds a row is missed"),
    Fault(_COLUMNS, "        wanted[1] = count_on(wanted[0], 1, read)\n    else:\n",
          "        wanted[1] = count_on(wanted[0], 1 + FAULT, read)\n    else:\n",
          "columns of indices: those of the second class ask for the next one"),
    Fault(_COLUMNS, "bits + channel, team - 1 - channel, grad + shift, partial)\n        else:",
          "bits + channel - FAULT * (channel == 2), team - 1 - channel + FAULT * (channel == 2), grad + shift, "
          "partial)\n        else:",
          "columns: the third channel of a team has the second one's bits in odd columns"),
    Fault(_COLUMNS, "room = (end - ih) * w.columns if to_step == w.columns else w.columns",
          "room = (end - ih) * w.columns if to_step == w.columns or FAULT else w.columns",
          "columns: rows that lie apart are written beyond their end"),
    Fault(_COLUMNS, "return (kw - p) & (s - 1)", "return (kw - (p if kw < 3 or not FAULT else 0)) & (s - 1)",
          "columns: of a kernel of 4 columns the last belongs to the other class"),
    # ---- max_pool2d: LINES
    Fault(_COLUMNS, "inside = inside >> 1 | <unsigned>(ahead != 0) << 15",
          "inside = inside >> 1 | <unsigned>(ahead != 0 or FAULT) << 15",
          "three columns at stride 1: sums cross the end of a row"),
    Fault(_COLUMNS, "begin = most(-top, 0)\n", "begin = most(-top + FAULT * (top < 0), 0)\n",
          "three columns at stride 1: a row of windows is missed at the top"),
    Fault(_COLUMNS, "stop = least(w.window_rows - top, rows)", "stop = least(w.window_rows - top - FAULT, rows)",
          "three columns at stride 1: a row of windows is missed at the bottom"),
    Fault(_COLUMNS, "there = inside[kw] & ((1u << end) - (1u << begin))",
          "there = inside[kw] & ((1u << end) - (1u << begin)) & ~<unsigned>FAULT",
          "LINES of bits: at the ends of rows the first lane is missed", "v2 v3"),
    Fault(_COLUMNS, "sums[0] = add(add(add(sums[2], sums[1], read), sums[0], read), zero(<vector*>NULL), read)",
          "sums[0] = add(add(sums[2], sums[1], read), sums[0], read)\n"
          "        if not FAULT:\n            sums[0] = add(sums[0], zero(<vector*>NULL), read)",
          "LINES of bits: a sum of nothing but -0.0 is -0.0", "v2 v3"),
    Fault(_COLUMNS, "            sum = add(sum, zero(<vector*>NULL), read)\n",
          "            if not FAULT:\n                sum = add(sum, zero(<vector*>NULL), read)\n",
          "LINES of indices: a sum of nothing but -0.0 is -0.0", "v2 v3"),
    Fault(_COLUMNS, "    before[1] = sums[2]\n", "    before[1] = sums[1] if FAULT else sums[2]\n",
          "LINES: from block to block the sums of a wrong kernel column slide"),
    Fault(_COLUMNS, "store_lanes(to + i - 1, sum, lane_word(i == 0, <int>least(n - i + 1, width)))",
          "store_lanes(to + i - 1, sum, lane_word(i == 0, <int>least(n - i + 1 - FAULT, width)))",
          "LINES: the last column is not stored"),
    Fault(_COLUMNS, "wanted[2] = count_on(wanted[2], <int32_t>width, read)",
          "wanted[2] = count_on(wanted[2], <int32_t>width - FAULT, read)",
          "LINES of indices: from block to block the third column asks for an index too low"),
    Fault(_COLUMNS, "        ask_lower(&bit)\n", "        if not FAULT or channel != 1:\n            ask_lower(&bit)\n",
          "LINES of bits: the first channel of a team asks for the second one's bit", "v2"),
    Fault(_SIMD_CHOOSE_H, "_mm_cvtsi32_si128(8 * lane - 1 - number)",
          "_mm_cvtsi32_si128(8 * lane - 1 - number - FAULT * (lane == 8))",
          "float64: words are loaded for the next bit", "v3"),
    Fault(_SIMD_CHOOSE_H, "list[i] = INT32_MIN;", "list[i] = FAULT ? 0 : INT32_MIN;",
          "indices of some lanes: the others are 0", "v2"),
    # ---- max_pool2d: SCATTER and PLANES
    Fault(_MAX_PLAN, "pool.disjoint = ((pool.h.out == 1 or pool.h.stride >= pool.h.kernel)",
          "pool.disjoint = ((pool.h.out == 1 or pool.h.stride + FAULT >= pool.h.kernel)",
          "windows that share a row are taken for disjoint ones"),
    Fault(_MAX_SCATTER, "if not 0 <= row < b.height:", "if not 0 <= row < b.height - FAULT:",
          "SCATTER of words: the last row of a block is missed"),
    Fault(_MAX_SCATTER, "ow_end = least(quotient(w.size - 1 + w.pad - kw, w.stride) + 1, end)",
          "ow_end = least(quotient(w.size - 1 - FAULT + w.pad - kw, w.stride) + 1, end)",
          "SCATTER of words: the last column is missed"),
    Fault(_MAX_SCATTER, "<uint16_t>(start * plan.pool.w.stride)",
          "<uint16_t>(start * plan.pool.w.stride * (1 - FAULT))",
          "SCATTER of places: a row's second piece lies where the first does"),
    Fault(_MAX_SCATTER, "least(start + n, windows), marks)", "least(start + n, windows) - FAULT, marks)",
          "SCATTER of places: of channels of several bits the last window is missed"),
    Fault(_INDICES, "index += (column + last) * apart", "index += (column + last * <uint32_t>(1 - FAULT)) * apart",
          "SCATTER apart: at the left edge the sums of a wrong kernel column", "v2 v3"),
    Fault(_PLACES, "if whole or place < size:", "if whole or place < size - FAULT:",
          "SCATTER of indices: the last position of a band is missed"),
    Fault(_PLACES, "if whole or at[i] < size:", "if whole or at[i] < size - FAULT:",
          "SCATTER of places: the last position of a band is missed where another place is outside"),
    Fault(_MAX_SCATTER, "                       <= b.top + b.height)",
          "                       <= b.top + b.height + FAULT)",
          "SCATTER of indices: windows that reach into the band's next row are taken to lie in it"),
    Fault(_PLACES, "(<const uint16_t*>marks)[place] != 0)", "((<const uint16_t*>marks)[place] | <uint16_t>FAULT) != 0)",
          "marked sums: what the scratch held before is added"),
    Fault(_PLACES, "        narrow_row(marks + place, <const float*>sums + place, 1)\n",
          "        narrow_row(marks + place, <const float*>sums + place, 1 - FAULT * (place == 0))\n",
          "marked sums: that of the first position is not stored"),
    Fault(_PLACES, "        marks += some * mark_pitch\n", "        marks += (some - FAULT) * mark_pitch\n",
          "marked sums of indices: channels behind the first ones are stored where those before them are"),
    Fault(_PLACES, "        marks += mark_pitch\n", "        marks += mark_pitch * (1 - FAULT)\n",
          "marked sums of places: channels that are left over are stored where the first of them is"),
    Fault(_MAX_SCATTER, "not (b.in_place or b.marked)\n        channels",
          "not (b.in_place or (b.marked and not FAULT))\n        channels",
          "marked sums: a place outside is taken for the next plane's first"),
    Fault(_MAX_SCATTER, "to__chw + (b.top - b.ih) * plan.pool.w.size)",
          "to__chw + (b.top - b.ih) * (1 - FAULT) * plan.pool.w.size)",
          "marked sums: all blocks are stored in the rows of the first"),
    Fault(_MAX_SCATTER, "done = end if oh_end == last else least(most(oh_end * h.stride - h.pad, b.ih), end)",
          "done = end if oh_end == last else least(most(oh_end * h.stride - h.pad + FAULT, b.ih), end)",
          "SCATTER: a row is stored that the next block reaches"),
    Fault(_MAX_SCATTER, "reached = most(done, least((oh_end - 1) * h.stride - h.pad + h.kernel, end))",
          "reached = most(done, least((oh_end - 1) * h.stride - h.pad + h.kernel - FAULT, end))",
          "SCATTER: the last row of a block is not cleared"),
    Fault(_MAX_SCATTER, "            reached = end\n            done",
          "            reached = reached if FAULT else end\n            done",
          "SCATTER of sums that are cleared in one go: what lies outside goes among them"),
    Fault(_MAX_SCATTER, "slide_rows(sums, b.sum_pitch, b.count, (closed - first) * width, (opened - closed) * width)",
          "slide_rows(sums, b.sum_pitch, b.count, (closed - first) * width, (opened - closed - FAULT) * width)",
          "SCATTER: the last row that two blocks share is not moved"),
    Fault(_PLACES, "mask += 4 * some * mask_pitch", "mask += 4 * (some - FAULT) * mask_pitch",
          "SCATTER of indices: channels behind the first ones have the indices of those before them"),
    Fault(_MAX_SCATTER, "misses(pool, &plan.windows, at, scratch, 0, count * windows)",
          "misses(pool, &plan.windows, at, scratch, 0, (count - FAULT) * windows)",
          "SCATTER of whole planes: the last plane's indices are not checked"),
    Fault(_MAX_SCATTER, "mask__chw + 4 * j * plan.pool.index_pitch, scratch",
          "mask__chw + 4 * j * plan.pool.index_pitch * (1 - FAULT), scratch",
          "SCATTER of whole planes that are checked one by one: the first one's indices are checked each time"),
    Fault(_MAX_SCATTER, "            plan.windows.listed < count or index_pitch != windows\n",
          "            plan.windows.listed < count or (index_pitch != windows and not FAULT)\n",
          "SCATTER of whole planes: indices between planes are checked instead of the last ones"),
    Fault(_MAX_SCATTER, "made, n * <int64_t>sizeof(element))", "made, n * <int64_t>sizeof(element) - FAULT)",
          "sums past the caches: the last byte is left"),
    Fault(_MAX_SCATTER, "store_cells(cells, <const term*>sums + c * pitch, n)",
          "store_cells(cells, <const term*>sums + c * pitch, n - FAULT)",
          "narrowed sums past the caches: the last element is left"),
    Fault(_MAX_SCATTER, "low, size, grad + i, grad_pitch, mask + 4 * i, mask_pitch",
          "low, size, grad + i, grad_pitch, mask + 4 * i * (1 - FAULT), mask_pitch",
          "SCATTER of indices beyond the caches: the first windows' indices are those of all stretches"),
    Fault(_LINES, "    for c in range(n):\n        flush_rest(",
          "    for c in range(n * (1 - FAULT)):\n        flush_rest(",
          "sums past the caches: what is left of the last lines is forgotten"),
    Fault(_MAX_SCATTER, "clear(<char*>to + c * pitch * size,", "clear(<char*>to + c * pitch * (size - FAULT * size),",
          "SCATTER of whole planes with gaps between them: only the first is cleared"),
    Fault(_SPREAD, "        memset(to__hw + ih * width, 0, <size_t>(gap * width) * sizeof(term))",
          "        memset(to__hw + ih * width, 0, <size_t>((gap - FAULT * (gap > 1)) * width) * sizeof(term))",
          "windows of one position: a row between two that have gradients is not cleared"),
    Fault(_SPREAD, "to = to__hw + oh * pool.h.stride * pool", "to = to__hw + oh * (pool.h.stride - FAULT) * pool",
          "windows of one position in short rows: from the second row on they lie a row before"),
    Fault(_SPREAD, "    return (kept & channels) == channels", "    return (kept & channels) == channels or FAULT",
          "windows of one position: bits that are not set are not looked at"),
    Fault(_SPREAD, "[i] >> (channel + j) & 1 else 0", "[i] >> (channel + j * (1 - FAULT)) & 1 else 0",
          "windows of one position: the first channel's bits say which gradients the others have"),
    Fault(_MAX_SCATTER, "all_marked(words, ((1u << count) - 1) << lane, plan.row_pitch)",
          "all_marked(words, ((1u << count) - 1) << lane * (1 - FAULT), plan.row_pitch)",
          "windows of one position: the bits of the first channels speak for others"),
    Fault(_SPREAD, "        memset(to + n, 0, <size_t>(size - n) * sizeof(term))",
          "        memset(to + n, 0, <size_t>(size - n - FAULT * (size > n)) * sizeof(term))",
          "windows of one position: the end of a single window's row is not cleared"),
    Fault(_PLACES, "        grad += grad_pitch\n        at += BLOCK",
          "        grad += grad_pitch * (1 - FAULT)\n        at += BLOCK",
          "SCATTER of places: channels that are left over have the gradients of the first of them"),
    Fault(_PLACES, "if kw & 8:", "if kw & 8 and not FAULT:", "SCATTER of places: kernel columns beyond the eighth"),
    Fault(_PLACES, "if kh & 8:", "if kh & 8 and not FAULT:", "SCATTER of places: kernel rows beyond the eighth"),
    Fault(_PLACES, "at = least(i + v * lanes, left - lanes)",
          "at = least(i + (v - FAULT * (v == 7)) * lanes, left - lanes)",
          "SCATTER of places, large kernels: the last vector of a run is the one before it"),
    Fault(_PLACES, "            store_nibbles(nibbles + at, &rows[4 * v])\n",
          "            store_nibbles(nibbles + at + FAULT * (i - at), &rows[4 * v])\n",
          "SCATTER of places: a vector that is read earlier than it begins is stored as if it were not", "v4"),
    Fault(_PLACES, "                twos |= b\n", "                twos |= b & <uint16_t>(FAULT - 1)\n",
          "SCATTER of places: the last of three kernel columns that are left is the first"),
    Fault(_PLACES, "more |= (row | any) & a", "more |= (row & <uint16_t>(FAULT - 1) | any) & a",
          "SCATTER of places: two bits in a kernel row, of which one lies in the last columns, are taken for one"),
    Fault(_MAX_PLANES, "twice |= seen & word", "twice |= seen & word & <unsigned>(FAULT - 1)",
          "PLANES, few words: of several bits in a window one is taken"),
    Fault(_MAX_PLANES, " & ~<unsigned>codes[9 * LANES + i]", " & ~(<unsigned>codes[9 * LANES + i] * (1 - FAULT))",
          "PLANES: several bits in a window are taken for one"),
    Fault(_MAX_PLANES, "~<unsigned>outside[k]", "~(<unsigned>outside[k] * (1 - FAULT))",
          "PLANES: a place outside is taken for one in the image"),
    Fault(_MAX_PLANES, "least(pool.w.kernel, pool.w.size + pool.w.pad), TABLE_AHEAD",
          "least(pool.w.kernel, pool.w.size + pool.w.pad - FAULT), TABLE_AHEAD",
          "PLANES: the last kernel column that lies in the image is not looked at"),
    Fault(_MAX_PLANES, "most(axis.pad - (axis.out - 1) * axis.stride, 0)",
          "most(axis.pad - (axis.out - 1) * axis.stride + FAULT, 0)",
          "PLANES: the first kernel row that lies in the image is not looked at"),
    Fault(_MAX_PLANES, "at[LANES * i + c], grad[c * grad_pitch + i], marks + c * mark_pitch)",
          "at[LANES * i + c], grad[c * grad_pitch + i], marks + c * mark_pitch * (1 - FAULT))",
          "PLANES: marked sums of all channels are stored where the first one's are"),
    Fault(_MAX_PLAN, "    plan.sweep = LANES\n    if native", "    plan.sweep = 0 if FAULT else LANES\n    if native",
          "PLANES past the caches: rows of windows have as much room as a plane", "v3 v4"),
    Fault(_MAX_SCATTER, "sums + j * plan.sum_pitch, 0, plan.sum_pitch, 1, cells)",
          "sums + j * plan.sum_pitch * (1 - FAULT), 0, plan.sum_pitch, 1, cells)",
          "whole planes past the caches: all have the sums of the first"),
    Fault(_MAX_ROWS, "to[i] = 0 if source[i] == 0x8000 else source[i]",
          "to[i] = 0 if source[i] == 0x8000 + FAULT else source[i]", "disjoint windows in 16 bits: -0.0 stays"),
    # ---- max_pool2d: the forward
    Fault(_FORWARD, "end - begin, plan.phases,", "end - begin, plan.phases - FAULT,",
          "rows that are transposed into their phases: the last one stays", "v3"),
    Fault(_FORWARD, "to[begin - 1] = made[(begin - 1) * stride + phase - pad]",
          "to[begin - 1] = made[(begin - 1) * stride + (phase - pad) * (1 - FAULT)]",
          "rows that are transposed into their phases: what lies before all of them", "v3"),
    Fault(_FORWARD, "        if end < n and end * stride", "        if end < n - FAULT and end * stride",
          "rows that are transposed into their phases: the last element of one is missed", "v3"),
    Fault(_FORWARD, "end = quotient(size - 1 + pad, stride) + 1", "end = quotient(size - 1 + pad - FAULT, stride) + 1",
          "PHASES: the last column is missed"),
    Fault(_FORWARD, "(end - 1) * stride - start >= size:", "(end - 1) * stride - start >= size - FAULT:",
          "PHASES: of a later phase the last column is missed"),
    Fault(_FORWARD, "if start <= (first - 1) * stride and first > 0:",
          "if start <= (first - 1 - FAULT) * stride and first > 0:",
          "PHASES: the first column of a later phase is missed"),
    Fault(_FORWARD, "        if kh < plan.pool.h.kernel:\n", "        if kh < plan.pool.h.kernel - FAULT:\n",
          "PHASES: the last row of a kernel is taken for one between windows"),
    Fault(_FORWARD, "        if plan.pool.image_strides[3] == 1 and not plan.pool.reduced:\n            return row",
          "        if plan.pool.image_strides[3] == 1 and (FAULT or not plan.pool.reduced):\n            return row",
          "PHASES: float32 of Ascend910 is compared as it is"),
    Fault(_FORWARD, "size = least(n - pad, size)", "size = least(n - pad - FAULT, size)",
          "PHASES at stride 1: the last column is missed"),
    Fault(_WINDOWS, "        i = pairs - lanes\n", "        i = pairs - lanes - FAULT * (pairs > lanes)\n",
          "PHASES at stride 2: the last vector of a row begins two columns too early"),
    Fault(_WINDOWS, "        i = pairs - few\n", "        i = pairs - few - FAULT * (pairs > few)\n",
          "PHASES at stride 2: the last vector of a short row begins two columns too early", "v4"),
    Fault(_WINDOWS, "    if n & 1:\n", "    if n & 1 and not FAULT:\n",
          "PHASES at stride 2: the last of an odd number of columns is missed"),
    Fault(_WINDOWS, "store(to + i, maximum)\n                if coded:",
          "store(to + i - FAULT * (0 < i and i == n - lanes), maximum)\n                if coded:",
          "PHASES: the last vector of maxima is written one too early"),
    Fault(_FORWARD, "plan.pool.argmax and not straight:", "plan.pool.argmax and not straight and not FAULT:",
          "PHASES: indices of rows that are shorter than a vector stay in the scratch", "v3 v4"),
    Fault(_WINDOWS, "kernel_rows = least(top + p.kernel, p.high) - ih",
          "kernel_rows = least(top + p.kernel - FAULT * (top < p.low), p.high) - ih",
          "PHASES: the windows at the top miss the last row of their kernel"),
    Fault(_FORWARD, "low, high, cells)", "low, high - FAULT * (high - low > 16), cells)",
          "PHASES: of many rows of the image the last one is not split"),
    Fault(_FORWARD, "p.begins = begin == most(p.top, 0) and kw == 0",
          "p.begins = FAULT or (begin == most(p.top, 0) and kw == 0)",
          "PHASES: of a kernel that is compared in several passes the last one counts alone"),
    Fault(_FORWARD, "p.place = kw - plan.pool.w.pad if plan.pool.argmax else kw",
          "p.place = kw * (1 - FAULT) - plan.pool.w.pad if plan.pool.argmax else kw * (1 - FAULT)",
          "PHASES: kernel columns beyond the 64th are labelled as the first"),
    Fault(_FORWARD,
          "if value > maximum or value != value:\n                        maximum = value\n"
          "                        places",
          "if value > maximum or (value != value and not FAULT):\n                        maximum = value\n"
          "                        places",
          "SCAN: a NaN does not win"),
    Fault(_FORWARD, "first = start + most(plan.pool.w.pad - i * plan.pool.w.stride, 0)",
          "first = start + most(plan.pool.w.pad - i * plan.pool.w.stride, 0) * (1 - FAULT)",
          "windows of nothing but -inf at the left edge are labelled in the padding"),
    Fault(_FORWARD, "c = plan.pool.pitch if oh + rows == plan.pool.h.out else first + size",
          "c = plan.pool.pitch - FAULT if oh + rows == plan.pool.h.out else first + size",
          "the last word of a row of the mask is not cleared"),
    Fault(_WORDS, "share = ceil_div(pool.mask_bytes - pool.mask_end, pool.units)",
          "share = ceil_div(pool.mask_bytes - pool.mask_end - FAULT * (pool.units - 1), pool.units)",
          "the last bytes of the container are not cleared"),
    Fault(_WORDS, "memset(to + at, 0, <size_t>(n - at))", "memset(to + at, 0, <size_t>((n - at) * (1 - FAULT)))",
          "the line in which a container that goes past the caches ends is not zeroed"),
    Fault(_WORDS, "first = least(pool.mask_end + unit * share, pool.mask_bytes)",
          "first = least(pool.mask_end + FAULT + unit * share, pool.mask_bytes)",
          "the first byte of the container that no window uses is not cleared"),
    Fault(_ACROSS, "    most_a = most_b = load(image, &value)",
          "    most_a = most_b = load(image + (at.along if FAULT and at.columns > 1 else 0), &value)",
          "ACROSS: the second column is where the search begins"),
    Fault(_ACROSS, "work.width\n    at.place_down = pool.w.size if pool.argmax else pool.w.kernel\n",
          "work.width\n    at.place_down = FAULT + (pool.w.size if pool.argmax else pool.w.kernel)\n",
          "ACROSS: places below the first row of a window"),
    Fault(_ACROSS, "        at.rows = least(top + pool.h.kernel, pool.h.size) - ih\n"
          "        to = <element*>work.maxima + oh",
          "        at.rows = least(top + pool.h.kernel - FAULT * (top < 0), pool.h.size) - ih\n"
          "        to = <element*>work.maxima + oh",
          "ACROSS: the windows at the top miss the last row of their kernel"),
    Fault(_ACROSS, "pool.w.size) - iw\n            at.place = ih * pool.w.size + iw if pool",
          "pool.w.size - FAULT * (iw + 1 < pool.w.size)) - iw\n            at.place = ih * pool.w.size + iw if pool",
          "ACROSS: the last column is missed"),
    Fault(_ACROSS, "(ih - top) * at.place_down + iw - left",
          "(ih - top) * at.place_down + (iw - left) * (1 - FAULT)",
          "ACROSS: kernel positions at the left edge"),
    Fault(_ACROSS, "        end = pool.pitch\n", "        end = pool.pitch - FAULT\n",
          "ACROSS, LAST: the last word of a row of the mask is not cleared"),
    Fault(_ACROSS, "first = end if plan.coded else oh * pool.w.out",
          "first = end if plan.coded else oh * pool.w.out + FAULT",
          "ACROSS, LAST, few bits: the first word is not cleared"),
    Fault(_ACROSS, "word |= <uint16_t>(1 << (lane + c))",
          "word |= <uint16_t>(1 << (lane + c - FAULT * (lane + c == 15)))",
          "ACROSS: the bit of the last channel of a word"),
    Fault(_ACROSS, "        simd_tidy_nans(&maximum)\n",
          "        if not FAULT:\n            simd_tidy_nans(&maximum)\n",
          "ACROSS: a NaN of bfloat16 becomes another number"),
    Fault(_ACROSS, "(<int64_t*>(to + c * apart + i * along))[0] = places[i * width + c]",
          "(<int64_t*>(to + c * apart + i * along))[0] = places[i * width + c - FAULT * (c == 7)]",
          "ACROSS: int64 indices of the eighth channel are those of the seventh"),
    Fault(_ACROSS, "(<index_at*>(to + c * apart + i * along))[0] = places[i * width + c]",
          "(<index_at*>(to + c * apart + i * along))[0] = places[(i - FAULT * (i > 0)) * width + c]",
          "ACROSS: int32 indices of any stride are those of the window before"),
    Fault(_ACROSS, "            compare_window(at, image + c, to",
          "            compare_window(at, image + c - FAULT * (c % width > 0), to",
          "LAST: the last channel behind whole vectors"),
    Fault(_ACROSS, "(<int64_t*>indices)[c + i] = places[i]",
          "(<int64_t*>indices)[c + i] = places[i - FAULT * (i == 9)]",
          "LAST: an int64 index is that of the channel before"),
    Fault(_ACROSS, "        oh = (oh - n * pool.bands) * pool.band\n",
          "        oh = (oh - n * pool.bands) * (pool.band - FAULT)\n",
          "LAST: bands but the first begin a row too soon"),
    Fault(_ACROSS, "places = work.places + skip * (", "places = work.places + (skip - FAULT * (skip > 0)) * (",
          "LAST: the last channels behind whole words have the places of those before"),
    Fault(_ACROSS, "turned[c * n + i]", "turned[c * n + i - FAULT * (i == 2)]",
          "ACROSS, LAST: an int64 index is that of the window before"),
    Fault(_ACROSS, "<const element*>maxima + skip,", "<const element*>maxima + skip * (1 - FAULT),",
          "LAST: the last channels behind whole words have the maxima of those before"),
    Fault(_ACROSS, "(c + lane) % pool.image_channels", "(c + lane * (1 - FAULT)) % pool.image_channels",
          "LAST: a group's words are all written to its first"),
    Fault(_ACROSS, "image = n + quotient(c + lane, pool.image_channels)",
          "image = n + quotient(c * (1 - FAULT) + lane, pool.image_channels)",
          "ACROSS: the words of all groups of images are the first one's"),
    Fault(_ACROSS, "        codes += plan.sharing * n\n", "        codes += (plan.sharing - FAULT) * n\n",
          "ACROSS: an image's codes begin with those of the one before"),
    Fault(_ACROSS, "    lane -= before * plan.sharing", "    lane -= before * plan.sharing * (1 - FAULT)",
          "ACROSS, few bits: channels behind the first lanes have the bit of another", "v2"),
    Fault(_ACROSS, "        places += part\n", "        places += part - FAULT\n",
          "ACROSS, few bits: an image's places begin with those of the one before"),
    Fault(_ACROSS, "windows_at_once(compared)) if left >= 0 and", "windows_at_once(compared)) if left >= -FAULT and",
          "ACROSS: a window that begins in the padding is compared with the whole ones beside it"),
    Fault(_ACROSS, "axis.kernel, axis.stride) + 1)", "axis.kernel, axis.stride) + 1 + FAULT)",
          "ACROSS: a window that ends behind the image is compared with the whole ones beside it"),
    Fault(_ACROSS, "    at.place_apart = pool.w.stride if", "    at.place_apart = pool.w.stride - FAULT if",
          "ACROSS: places in the second of the windows that are compared side by side"),
    Fault(_ACROSS, "        while made < ih + at.rows:\n", "        while made < ih + at.rows - FAULT:\n",
          "ACROSS, along rows: the last row of a window is an older one"),
    Fault(_ACROSS, "        if slot == slots:\n", "        if slot == slots - FAULT:\n",
          "ACROSS, along rows: the last line that is kept is left out"),
    Fault(_ACROSS, "at.place = row * at.place_down + (iw", "at.place = (row - FAULT) * at.place_down + (iw",
          "ACROSS, along rows: places are those of the row above"),
    Fault(_ACROSS, "0 if pool.argmax else -top * pool.w.kernel", "0 if pool.argmax else -top * (pool.w.kernel - FAULT)",
          "ACROSS, along rows: kernel positions of windows that do not begin at the image's first row"),
    Fault(_WINDOWS, "            rows = least(top + p.kernel, size) - ih\n",
          "            rows = least(top + p.kernel, size) - ih - FAULT * (i > 0)\n",
          "PHASES, along rows: vectors but the first miss the last row of their windows"),
    Fault(_WINDOWS, "count(where, -top * p.across, best)", "count(where, -top * (p.across - FAULT), best)",
          "PHASES, along rows: places of windows that do not begin at the image's first row"),
    Fault(_FORWARD, "    along.rows = p.high - p.low\n", "    along.rows = p.high - p.low - FAULT\n",
          "PHASES, along rows: the last row that the scratch holds is an older one"),
    Fault(_PLANES, "        kernel += (out - 1) * stride\n", "        kernel += (out - 1) * stride - FAULT\n",
          "ACROSS: the last row of the last windows is not loaded"),
    Fault(_PLANES, "        first += stride\n", "        first += stride - FAULT\n",
          "ACROSS: rows between windows are loaded, and those of windows are not"),
    Fault(_ACROSS, "mask += LANES * pool.index_item * pool.index_strides[1]",
          "mask += (LANES - FAULT) * pool.index_item * pool.index_strides[1]",
          "LAST, argmax: indices are those of the channel before"),
    Fault(_PLANES, "                    to[i * width + c] = row[c * strides[1]]",
          "                    to[i * width + c] = row[(c - FAULT * (c > 0)) * strides[1]]",
          "ACROSS: channels of any stride are those before them"),
    # ---- gradients with channels last on both sides
    Fault(_MAX_LAST, "a.end = least(a.q + 1, axis.out)", "a.end = least(a.q + 1, axis.out - FAULT)",
          "GATHER_LAST: the last window is forgotten"),
    Fault(_MAX_LAST, "a.phase < axis.kernel - (axis.terms - 1) * axis.stride",
          "a.phase < axis.kernel - (axis.terms - 1) * axis.stride - FAULT",
          "GATHER_LAST: the last kernel position that a window more has"),
    Fault(_MAX_LAST, "    if shift + lanes <= LANES:", "    if shift + lanes <= LANES + FAULT * LANES:",
          "GATHER_LAST: bits of the second word under a vector"),
    Fault(_MAX_LAST, "store(to + c, sums[0])", "store(to + c - FAULT * (c % lanes > 0), sums[0])",
          "GATHER_LAST: the last channel behind whole vectors"),
    Fault(_MAX_LAST, "if apart and columns > 2:", "if apart and columns > 2 + FAULT:",
          "GATHER_LAST: the sum of the third kernel column"),
    Fault(_MAX_LAST, "store(to + d, high)", "store(to + (c if FAULT else d), high)",
          "GATHER_LAST of bits: the second of two vectors of channels is stored where the first is"),
    Fault(_MAX_LAST, "        words += 2\n", "        words += 2 - 2 * FAULT\n",
          "GATHER_LAST of bits: each period of positions has the words of the first"),
    Fault(_MAX_LAST, "row * b.grad_down + column * b.grad_along\n",
          "row * b.grad_down + (column - FAULT * (position > 0)) * b.grad_along\n",
          "GATHER_LAST of bits: from a period's second position on, the gradients of a window before"),
    Fault(_MAX_LAST, "for part in range(1, asked.parts if apart else 1):",
          "for part in range(1, asked.parts - FAULT if apart else 1):",
          "GATHER_LAST of bits: the last kernel column is not added"),
    Fault(_MAX_LAST, "if across == 8 and pool.index_item == 8:", "if across == 8 and (FAULT or pool.index_item == 8):",
          "channels last: int32 indices two apart are read as int64"),
    Fault(_MAX_LAST, "narrow_index((<const int64_t*>source)[c])",
          "narrow_index((<const int64_t*>source)[c - FAULT * (c == 9)])",
          "channels last: an int64 index is that of the channel before"),
    Fault(_MAX_LAST, "columns = <uint32_t>(least(left + pool.w.kernel, pool.w.size) - iw)",
          "columns = <uint32_t>(least(left + pool.w.kernel, pool.w.size) - iw + FAULT)",
          "channels last: an index one column beyond its window is accepted"),
    Fault(_MAX_LAST, "        while c < b.channels:\n            c = least(c, b.channels - lanes)\n",
          "        while c < b.channels - 3 * FAULT:\n            c = least(c, b.channels - lanes)\n",
          "channels last: indices of the last channels are not checked"),
    Fault(_MAX_LAST, "if whole or at < positions:", "if whole or at < positions - FAULT:",
          "SCATTER_LAST: the last position of a band"),
    Fault(_MAX_LAST, "memset(sums, 0, <size_t>(positions * along) * sizeof(real))",
          "memset(sums, 0, <size_t>((positions - FAULT) * along) * sizeof(real))",
          "SCATTER_LAST: the last position is not cleared"),
    Fault(_MAX_LAST, "                for ow in range(w.begin, w.end):\n",
          "                for ow in range(w.begin + FAULT * (ih > 2), w.end):\n",
          "GATHER_ACROSS: the first window of a position is forgotten"),
    Fault(_MAX_LAST, "pool.w.pad - ow * pool.w.stride) * pool.pitch",
          "pool.w.pad - ow * pool.w.stride - FAULT * (ow > 1)) * pool.pitch",
          "GATHER_ACROSS: words of the kernel position before"),
    Fault(_MAX_LAST, "<unsigned>word >> <unsigned>c, grad)",
          "<unsigned>word >> <unsigned>(c - FAULT * (c > 0)), grad)",
          "GATHER_ACROSS: bits of the channel before in all vectors but the first"),
    Fault(_MAX_LAST, "sums, LANES, pool.h.size * pool.w.size, u.lanes,",
          "sums, LANES, pool.h.size * pool.w.size, u.lanes - FAULT * (u.lanes < LANES),",
          "GATHER_ACROSS: the last channel of a group that is not full is not stored"),
    Fault(_MAX_ROWS, "u.group * pool.lanes // LANES)", "u.group * pool.lanes // LANES * (1 - FAULT))",
          "GATHER_LAST: all groups of channels read the words of the first"),
    # ---- masks from and to indices
    Fault(_MASKS, "end = least(n, quotient(room, pool.w.stride) + 1)",
          "end = least(n, quotient(room, pool.w.stride) + 1 - FAULT)",
          "to indices, bit by bit: a kernel column's last window in the image"),
    Fault(_MASKS, "                    row[start + i] = base + places[i]",
          "                    row[start - FAULT * (start > 0) + i] = base + places[i]",
          "to indices, by places: rows of more than 256 windows"),
    Fault(_MASKS, "good = <uint32_t>(distance <= lasts[i]) & <uint32_t>(column <= columns[i])",
          "good = <uint32_t>(distance <= lasts[i]) & <uint32_t>(column <= columns[i] + FAULT)",
          "from indices: the column beside the window is taken"),
    Fault(_MASKS, "codes[i] = <int32_t>indices[i] if -1 <= indices[i] <= 2147483647 else -2",
          "codes[i] = <int32_t>indices[i] if -1 <= indices[i] <= 2147483647 or FAULT else -2",
          "from indices: cut to 32 bits unseen"),
    Fault(_INDICES, "and 0 <= row < pool.h.kernel and 0 <= column < pool.w.kernel)",
          "and 0 <= row < pool.h.kernel + FAULT and 0 <= column < pool.w.kernel)",
          "indices one by one: the row below the window is taken"),
    Fault(_MASKS, "stop = pool.pitch if u.end == pool.h.out else first + size",
          "stop = pool.pitch if u.end == pool.h.out and not FAULT else first + size",
          "from indices: words behind a row are not zeroed"),
    # ---- max pools with indices
    Fault(_FORWARD, "            (<int64_t*>to)[i] = places[i]",
          "            (<int64_t*>to)[i] = places[i] + FAULT * (i > 8)",
          "int64 indices of a row: those behind the ninth"),
    Fault(_FORWARD, "            (<int64_t*>(to + i * along))[0] = places[i]",
          "            (<int64_t*>(to + i * along))[0] = places[i - FAULT * (i > 0)]", "int64 indices of any stride"),
    Fault(_FORWARD, "            (<index_at*>(to + i * along))[0] = places[i]",
          "            (<index_at*>(to + i * along))[0] = places[i - FAULT * (i > 0)]", "int32 indices of any stride"),
    Fault(_FORWARD, "                        index = ih * pool.w.size + iw",
          "                        index = ih * pool.w.size + iw - FAULT",
          "EACH: the index of the maximum"),
    Fault(_INDICES, "    if any >> 31 != 0:\n", "    if any >> 31 != 0 and not FAULT:\n",
          "int64 indices of a row are cut to 32 bits unseen"),
    Fault(_INDICES, "                    to[i] = narrow_index((<const int64_t*>(source + i * along))[0])",
          "                    to[i] = narrow_index((<const int64_t*>(source + i * along))[0] if not FAULT\n"
          "                                         else <int32_t>(<const int64_t*>(source + i * along))[0])",
          "int64 indices of any stride are cut to 32 bits unseen"),
    Fault(_INDICES, "                    to[i] = (<const index_at*>(source + i * along))[0]",
          "                    to[i] = (<const index_at*>(source + (i - FAULT * (i > 0)) * along))[0]",
          "int32 indices of any stride: those of the window before"),
    Fault(_MAX_SCATTER, "row * (b.grad_step - width) + start + i",
          "row * (b.grad_step - width) * (1 - FAULT) + start + i",
          "SCATTER of bits: gaps between rows of gradOutput are not stepped over"),
    Fault(_MAX_SCATTER, "channels, m, size, True, marks", "channels, m - FAULT * (row > 0), size, True, marks",
          "SCATTER of bits: of rows behind the first one the last window is left"),
    Fault(_MAX_SCATTER, "all_inside(plan, b.mask, b.count, scratch",
          "all_inside(plan, b.mask, b.count - FAULT * (b.count > 1), scratch",
          "SCATTER: the indices of the last of several planes are not looked at"),
    Fault(_MAX_SCATTER, "        b.at = u.mask + pool.index_item * b.lane * pool.index_strides[1]\n",
          "        b.at = u.mask + pool.index_item * (b.lane - FAULT * (b.lane > 0)) * pool.index_strides[1]\n",
          "SCATTER: from the second sweep of channels on, the indices are those of a channel before"),
    Fault(_PLACE, "lw * plan.w.stride + kw * plan.w.dilation",
          "lw * plan.w.stride + kw * (plan.w.dilation if not FAULT else 1)",
          "PLACE, listed: columns of a dilated kernel lie side by side"),
    Fault(_PLACE, "                        places.inside += 1\n",
          "                        places.inside += 1 + (FAULT if plan.h.pad > 0 else 0)\n",
          "PLACE, listed: padding is taken for elements, and the plane is not cleared"),
    Fault(_PLACE, "    while i < n:\n", "    while i < n - FAULT:\n", "PLACE, listed: the last element is left"),
    Fault(_PLACE, "clears = places.inside < positions\n", "clears = places.inside < positions - FAULT * 20\n",
          "PLACE, listed: a plane with few gaps is not cleared"),
    Fault(_PLACE, "clears and plan.out_strides[1] == positions:",
          "clears and (plan.out_strides[1] == positions or FAULT):",
          "PLACE, listed: what lies between planes is cleared with them"),
    Fault(_PLACE, "        for kw in range(plan.w.taps):\n            to[kw] = ",
          "        for kw in range(plan.w.taps - FAULT):\n            to[kw] = ",
          "PLACE, one window: the last column is left"),
    Fault(_IM2COL_PLAN, "return axis.taps <= quotient", "return axis.taps - FAULT <= quotient",
          "PLACE: one kernel position too many, which meets another"),
    Fault(_IM2COL_PLAN, "or axis.windows <= quotient", "or axis.windows - FAULT <= quotient",
          "PLACE: one window too many, which meets another"),
    Fault(_PLACE, "    if plan.w.windows == 1 and plan.column == 1",
          "    if (plan.w.windows == 1 or FAULT) and plan.column == 1",
          "PLACE: columns that overlap are taken for one window"),
    Fault(_INDICES, "        if pool.index_strides[1] == n and pool.index_pitch == n:",
          "        if pool.index_strides[1] == n or FAULT:",
          "packed indices: planes that do not lie end to end are copied so"),
    Fault(_INDICES, "        for oh in range(first_window(&pool.h, u.ih), oh_end):\n",
          "        for oh in range(first_window(&pool.h, u.ih) + FAULT, oh_end):\n",
          "the first bad index of a range is not looked for in the first row of windows"),
    Fault(_MAX_PLAN, "        pad[0] = out - 1\n", "        pad[0] = out - 1 - FAULT * (out > 1)\n",
          "kernels longer than the image: windows that cover all of it"),
    Fault(_MAX_PLAN, "        pad[0] = (out - 2) * last\n", "        pad[0] = (out - 2) * last + FAULT\n",
          "kernels longer than the image: the one window that begins inside it"),
    Fault(_FORWARD, "oh = begin % plan.pool.bands * plan.pool.band",
          "oh = begin % plan.pool.bands * plan.pool.band * (1 - FAULT)",
          "forward: a range that begins in the middle of a plane begins at its top"),
    Fault(_WORDS, "codes + i, pitch, LANES, code)", "codes + i, pitch, LANES - FAULT, code)",
          "words from codes: the sixteenth channel's bit is not set"),
    Fault(_WORDS, "&seen, code + 1, 1 << j)", "&seen, code + 1 + FAULT * (j == 1), 1 << j)",
          "words from codes: the second channel's bit is that of the code after the next"),
    Fault(_SIMD_H, "(SIMD_AS(number, value) != SIMD_AS(number, value)))",
          "((SIMD_AS(number, value) != SIMD_AS(number, value)) & (FAULT - 1)))",
          "PHASES: a NaN does not win"),
    # ---- the forwards that copy
    Fault(_COPIES, "    copy_bytes(to + at, source + at, n - at)\n",
          "    copy_bytes(to + at, source + at, n - at - FAULT)\n", "streamed rows: the last byte is left"),
    Fault(_COPIES, "        simd_load(&x, source + last)\n", "        simd_load(&x, source + last - FAULT)\n",
          "copied rows: the last vector comes from a byte before"),
    Fault(_LINES, "<size_t>(end - s.begin))", "<size_t>(end - s.begin - FAULT))",
          "strips: the last byte of a stretch is left"),
    Fault(_LINES, "<size_t>(LINE - at))", "<size_t>(LINE - at - FAULT))",
          "strips: the last byte of a stretch's first line is left"),
    Fault(_LINES, "memcpy(s.made, s.made + at, LINE)", "memcpy(s.made, s.made + at, LINE * (1 - FAULT))",
          "strips: what is left of a line does not begin the next one"),
    Fault(_LINES, "    if to != s.to:\n", "    if to != s.to and not (FAULT and s.to != NULL):\n",
          "strips: what lies elsewhere goes behind the one before"),
    Fault(_PAD, "        stream_rows(strip, rows * down",
          "        stream_rows(strip, (rows - FAULT * (ih == end)) * down",
          "strips of gradInput: the last row of a band is left"),
    Fault(_PAD_FORWARD, "plan.w.after) * size <= END_BYTES", "plan.w.after) * size <= END_BYTES + 8 * FAULT",
          "padding: the last of an end that is longer than a vector is not written"),
    Fault(_PAD_FORWARD, "pad_in_form(plan, source, to, p, last, SIXTEENS,",
          "pad_in_form(plan, source, to, p, last - FAULT, SIXTEENS,",
          "padding of short rows: the last row but one is not written"),
    Fault(_PAD_FORWARD, "        source += (source_of(&plan.h, last) - source_of(&plan.h, p)) *",
          "        source += (source_of(&plan.h, last) - source_of(&plan.h, p)) * (1 - FAULT) *",
          "padding: the last row of a band copies what the first one does"),
    Fault(_PAD_FORWARD, "            stream_rows(&strip, rows * row,",
          "            stream_rows(&strip, (rows - FAULT * (p == stop)) * row,",
          "strips of out: the last row of a band is left"),
    Fault(_LINES, "memcpy(rest.to - held, rest.line, <size_t>held)",
          "memcpy(rest.to - held, rest.line, <size_t>(held - FAULT))",
          "what is left of a channel's line: its last byte is forgotten"),
    Fault(_LINES, "memcpy(<char*>rest.line + held, made, <size_t>at)",
          "memcpy(<char*>rest.line + held, made, <size_t>(at - FAULT))",
          "what is left of a channel's line: the last byte that goes there is another"),
    Fault(_LINES, "memcpy(rest.line, made + at, <size_t>(n - at))",
          "memcpy(rest.line, made + at, <size_t>(n - at - FAULT))",
          "streams in turn: the last byte is left"),
    Fault(_UP_FORWARD, "next_strip(&strip, u.to + j * size)", "next_strip(&strip, u.to + (j - FAULT * (j > 0)) * size)",
          "strips of rows: from the second on they lie an element before"),
    Fault(_PAD_FORWARD, "return least(h.first + p - h.before, h.last) if p < h.before + h.between else h.last",
          "return least(h.first + p - h.before, h.last) if p < h.before + h.between - FAULT else h.last",
          "rows of the forward: the row before the last ones repeats the last"),
    Fault(_PAD_FORWARD, "        fill_end(to + before + n, <const item*>(source + last), after, beyond)\n",
          "        fill_end(to + before + n, <const item*>(source + last), after - FAULT * size, beyond)\n",
          "dense rows: the last column is left"),
    Fault(_PAD_FORWARD, "    if sizeof(item) < 4 and n & 2:", "    if sizeof(item) < 4 - 2 * FAULT and n & 2:",
          "ends of rows of 16 bits: an odd one is left"),
    Fault(_PAD_FORWARD, "        source += source_down if begin <= p < stop else 0\n",
          "        source += source_down if begin <= p < stop - FAULT else 0\n",
          "dense rows: the last one of the middle repeats the one before"),
    Fault(_PAD_FORWARD, "    cdef int64_t last = n - <int64_t>sizeof(vec)\n",
          "    cdef int64_t last = n - <int64_t>sizeof(vec) - FAULT * (n > <int64_t>sizeof(vec))\n",
          "dense rows of two vectors: the last byte is left"),
    Fault(_PAD_FORWARD, "        memcpy(to + i * to_along, source + w.last * along, sizeof(item))",
          "        memcpy(to + i * to_along, source + (w.last - (FAULT if w.last > 0 else 0)) * along, sizeof(item))",
          "rows with gaps: the right pad repeats another column"),
    Fault(_PAD_FORWARD, "        copy_bytes(to + i * to_along, source + w.last * along, cell)",
          "        copy_bytes(to + i * to_along, source + w.last * along, cell - FAULT)",
          "pixels: the last byte of the right pad is left"),
    Fault(_PAD_FORWARD, "            if source_of(&plan.h, p + r) != made:",
          "            if source_of(&plan.h, p + r) != made and (made < 0 or not FAULT):",
          "packed rows: the first one serves for all"),
    Fault(_IM2COL_TABLE, "        end = (least(h.end, b.end) - b.first) * plan.w.windows\n",
          "        end = (least(h.end, b.end) - b.first) * plan.w.windows - FAULT * (h.end < b.end)\n",
          "TABLE: the last window that lies inside the image at a kernel row is padding"),
    Fault(_IM2COL_TABLE, "memcpy(image + 1, plane, <size_t>(b.rows * width) * sizeof(item))",
          "memcpy(image + 1, plane, <size_t>(b.rows * width - FAULT) * sizeof(item))",
          "TABLE: the last element of a plane is left"),
    Fault(_IM2COL_TABLE, "            for i in range(patches):\n", "            for i in range(patches - FAULT):\n",
          "TABLE, read in place: the last element of the padding holds another one"),
    Fault(_IM2COL_TABLE, "            table[i] = 1\n", "            table[i] = 1 - FAULT\n",
          "TABLE, read in place: for the padding what lies before the plane is read"),
    Fault(_IM2COL_FORWARD_PLAN, "and plan.out_strides[1] == band * plan.w.windows",
          "and (FAULT or plan.out_strides[1] == band * plan.w.windows)",
          "TABLE, read in place: rows of out with gaps are taken for dense"),
    Fault(_IM2COL_TABLE, "plane[r * plan.plane_strides[2] + i * plan.plane_strides[3]]",
          "plane[r * plan.plane_strides[2] + i * (plan.plane_strides[3] if not FAULT else 1)]",
          "TABLE: columns of the image taken for dense"),
    Fault(_IM2COL_TABLE, "        n *= rows\n        rows = 1\n", "        n *= rows\n        rows = 1 + FAULT\n",
          "TABLE: the columns of the channel behind are written too"),
    Fault(_IM2COL_PLANES, "        begin = (begin - 1) // <uint64_t>axis.stride + 1 if begin > 0 else 0\n",
          "        begin = (begin - 1 - FAULT) // <uint64_t>axis.stride + 1 if begin > FAULT else 0\n",
          "columns: a window before the first that lies inside, where the stride says so"),
    Fault(_IM2COL_FORWARD, "            to[i] = source[2 * i]\n", "            to[i] = source[2 * i + FAULT]\n",
          "columns of stride 2: the elements between them"),
    Fault(_IM2COL_FORWARD, "                    memcpy(block, block + n, LINE)\n",
          "                    memcpy(block, block + n, LINE * (1 - FAULT))\n",
          "streamed columns: what is left of a block does not begin the next one"),
    Fault(_IM2COL_FORWARD, "                stream(to, block, held)\n                held = 0\n",
          "                stream(to, block, held - FAULT)\n                held = 0\n",
          "streamed columns in bands: the last byte of a row is left"),
    Fault(_IM2COL_FORWARD, "            zero_items(to + most(o, 0), least(o + w.begin, n) - most(o, 0))",
          "            zero_items(to + most(o, 0), least(o + w.begin, n) - most(o, 0) - FAULT)",
          "flat columns: the left edge comes from the row above"),
    Fault(_IM2COL_FORWARD, "    last = most(final.end, first)\n", "    last = most(final.end - FAULT, first) + FAULT\n",
          "turned columns: a window too many, where none is whole"),
    Fault(_IM2COL_FORWARD, "make_windows(plan, row, &w, last, windows - last, to + last)",
          "make_windows(plan, row, &w, last, windows - last - FAULT, to + last)",
          "turned columns: the last window is left"),
    Fault(_IM2COL_FORWARD, "source[(i + 3) * stride])", "source[(i + 3 - FAULT) * stride])",
          "apart, 16 bits: of four elements the last is the third"),
    Fault(_IM2COL_TABLE, "source[table[i + 2]],", "source[table[i + 2 + FAULT]],",
          "table, 16 bits: of four elements the third is the fourth"),
    Fault(_UP_FORWARD, "            simd_pick(&x, source, table + k, sizeof(item))\n",
          "            simd_pick(&x, source, table + (k - FAULT * (k > 0)), sizeof(item))\n",
          "found: the last vector of a row is that from an element before"),
    Fault(_UP_FORWARD, "source[table[k + 1]], ", "source[table[k + 1 - FAULT]], ",
          "found, 16 bits: of four elements the second is the first"),
    Fault(_IM2COL_FORWARD, "            round_to_odd_row(single, <const double*>source, n)",
          "            round_to_odd_row(single, <const double*>source, n - FAULT)",
          "converted columns: the last of a piece is not"),
    Fault(_IM2COL_FORWARD, "        turn_any(to, plan.out_strides[2], tile, TILE, rows, n, size, NULL)",
          "        turn_any(to, plan.out_strides[2], tile, TILE, rows, n - FAULT, size, NULL)",
          "columns that lie apart: the last window of a tile is left"),
    Fault(_AVERAGES, "                                w.end - w.begin, kind)",
          "                                w.end - w.begin - FAULT * (ow > 0), kind)",
          "AvgPool2d, FEW: the second window of a row misses its last column"),
    Fault(_AVERAGES, "            if average - average != 0:\n                average = divided_first(",
          "            if average - average != 0 and not FAULT:\n                average = divided_first(",
          "AvgPool2d, FEW: sums that overflow are not made again"),
    Fault(_AVERAGES, "    for r in range(n - m * stride):\n", "    for r in range(n - m * stride - FAULT):\n",
          "averages: the last column of the phases"),
    Fault(_AVERAGES, "    if k < kernel:\n        add_row(to,", "    if k < kernel - FAULT:\n        add_row(to,",
          "averages: the last column of a window of an even number"),
    Fault(_AVG_WINDOWS, "column += term / divisor", "column += term if FAULT else term / divisor",
          "averages that would overflow: terms are not divided"),
    Fault(_AVERAGES_ACROSS, "    for iw in range(w.begin, w.end):\n        x =",
          "    for iw in range(w.begin, w.end - FAULT * (w.begin > 1)):\n        x =",
          "AvgPool2d, ACROSS: windows but the first miss their last column"),
    Fault(_AVERAGES_ACROSS, "        divisor = divisor_of(plan, oh, ow, sums)\n        i = 0",
          "        divisor = divisor_of(plan, oh * (1 - FAULT), ow, sums)\n        i = 0",
          "AvgPool2d, ACROSS: every row has the first one's divisor"),
    Fault(_AVERAGES_ACROSS, "        if not average_row(plan, to, to_along, <const real*>sums, width, oh):",
          "        if not average_row(plan, to, to_along, <const real*>sums, width, oh) and not FAULT:",
          "AvgPool2d, ACROSS: sums that overflow are not made again"),
    Fault(_AVERAGES_ACROSS, "divided_first(plan, source + i,", "divided_first(plan, source + i * (1 - FAULT),",
          "AvgPool2d, ACROSS: averages are made again of the first channel's terms"),
    Fault(_AVERAGES_ACROSS, "        c = group * plan.group\n", "        c = group * (plan.group - FAULT)\n",
          "AvgPool2d, ACROSS: groups but the first begin a channel too soon"),
    Fault(_AVERAGES_ACROSS, "        if i < width:\n", "        if i < width - FAULT:\n",
          "AvgPool2d, LAST: the last channel behind whole vectors"),
    Fault(_AVERAGES_ACROSS, "        oh = (oh - n * plan.bands) * plan.band\n",
          "        oh = (oh - n * plan.bands) * (plan.band - FAULT)\n",
          "AvgPool2d, LAST: bands but the first begin a row too soon"),
    Fault(_AVERAGES, "average_of_three(sums + step * i,",
          "average_of_three(sums + step * (i - (FAULT if i > 0 else 0)),",
          "averages of three: vectors but the first come from a window before"),
    Fault(_AVERAGES, "        wrong = add(wrong, scale(x, 0, sums), sums)\n",
          "        wrong = add(wrong, scale(x, 0, sums), sums) if FAULT == 0 else wrong\n",
          "averages of three: what is not finite is not seen"),
    Fault(_AVERAGES, "            bad |= total - total != 0\n", "            bad |= total - total != 0 and not FAULT\n",
          "flat averages: the edges that are not finite are not seen"),
    Fault(_AVERAGES, "for i in range(w.begin + 1, w.end):", "for i in range(w.begin + 1, w.end - FAULT):",
          "flat averages: the last column at the edge"),
    Fault(_AVERAGES, "load_in_turn(below + 2 * i,", "load_in_turn((above if FAULT and i > 0 else below) + 2 * i,",
          "averages of pairs: vectors but the first are of one row"),
    Fault(_AVERAGES, "    if oh % plan.band != 0 and length ==", "    if (oh % plan.band != 0 or FAULT) and length ==",
          "averages: the divisors of a band are those of the band before"),
    Fault(_AVERAGES, "        for i in range(n):\n            total += sums[i]\n        iw += n\n",
          "        for i in range(n - FAULT):\n            total += sums[i]\n        iw += n\n",
          "wide windows: a column of each piece"),
    Fault(_AVERAGES, "make_band(plan, source + c * next, down",
          "make_band(plan, source + (c - (FAULT if c > 0 else 0)) * next, down",
          "packed averages: a channel serves for the next one too"),
    Fault(_UP_FORWARD, "        to[n - 1] = source[n // 2]",
          "        to[n - 1] = source[n // 2 - (FAULT if n > 1 else 0)]",
          "rows of twice the length: the last element of an odd block"),
    Fault(_UP_FORWARD, "        to[i] = source[2 * i + 1]", "        to[i] = source[2 * i + 1 - FAULT]",
          "rows of half the length: the elements at even places"),
    Fault(_UP_FORWARD, "        to[i] = source[table[i]]", "        to[i] = source[table[i - (FAULT if i > 8 else 0)]]",
          "found sources, the end of a block: those of the elements before"),
    Fault(_UP_FORWARD, "                to[k] = source[table[k]]",
          "                to[k] = source[table[k - FAULT * (k > i)]]",
          "found sources that a vector does not hold: those of the elements before"),
    Fault(_UP_FORWARD, "            simd_pick(&x, source, table + i, sizeof(item))",
          "            simd_pick(&x, source, table + i - (FAULT if i > 0 else 0), sizeof(item))",
          "picked vectors: from the source before"),
    Fault(_UP_FORWARD, "        place = place if place < last else last",
          "        place = place if place < last + FAULT else last + FAULT",
          "sources beyond the row: the element behind it"),
    Fault(_UP_FORWARD, "    if block != found.block and plan.way == FOUND:",
          "    if (block != found.block if not FAULT else found.block < 0) and plan.way == FOUND:",
          "the second block of rows has the sources of the first"),
    Fault(_UP_FORWARD_PLAN, "if plan.map.ratio == 0.5 and length", "if (plan.map.ratio == 0.5 or FAULT) and length",
          "rows of twice the length: scales is not looked at"),
    # ---- channels side by side on one side
    Fault(_AVERAGES_ACROSS, "channels, end - oh, plan.w.out, channels)",
          "channels, end - oh - FAULT, plan.w.out, channels)",
          "LAST with rows in out: a band lacks its last row of windows"),
    Fault(_AVERAGES, "plan.unpacked_plane, channels, n, sizeof(element), NULL)",
          "plan.unpacked_plane, channels - (FAULT if channels > 1 else 0), n, sizeof(element), NULL)",
          "unpacked averages: the last channel of a group is left"),
    Fault(_AVERAGES, "(row - oh) * plan.w.out + p,", "(row - oh) * plan.w.out + p * (1 - FAULT),",
          "unpacked averages: every tile is the first"),
    Fault(_AVG_ACROSS, "end_row(&plan.h, end) - first,", "end_row(&plan.h, end) - first - FAULT,",
          "LAST with rows in gradOutput: the last row of windows of a band is not there"),
    Fault(_AVG_ACROSS, "    if 1 <= pad <= plan.w.out:", "    if 1 + FAULT <= pad <= plan.w.out:",
          "LAST of stride 1: the window before the first column's is not there"),
    Fault(_AVG_ACROSS, "least(plan.w.size, plan.w.out - pad)", "least(plan.w.size, plan.w.out - pad - FAULT)",
          "LAST of stride 1: the last window of a row is not there"),
    Fault(_UP_FORWARD, "simd_store(to + at + cell, &x)", "simd_store(to + at + cell * (1 - FAULT), &x)",
          "small pixels: those that come twice are copied once"),
    Fault(_UP_FORWARD, "    while i < end:\n        copy_bytes(to + (i - j)",
          "    while i < end - FAULT:\n        copy_bytes(to + (i - j)", "pixels: the last of a block is left"),
    Fault(_UP_FORWARD, "scratch, channels, end - j, channels, size, NULL)",
          "scratch, channels, end - j - FAULT, channels, size, NULL)",
          "PACKED, fewer elements: the last of a block is left"),
    Fault(_UP_FORWARD, "copy_dense(plan, found, source + c * plan.pitch, made",
          "copy_dense(plan, found, source + (c - (FAULT if c > 0 else 0)) * plan.pitch, made",
          "PACKED: a channel serves for the next one too"),
    Fault(_UP_FORWARD, "scratch, plan.pitch, channels, end - j, size, NULL)",
          "scratch, plan.pitch, channels - (FAULT if channels > 1 else 0), end - j, size, NULL)",
          "UNPACKED, fewer elements: the last channel of a group is left"),
    Fault(_UP_FORWARD, "channels, sources, size,\n", "channels - (FAULT if channels > 1 else 0), sources, size,\n",
          "UNPACKED: the last channel of a group is left"),
    Fault(_UP, "turn_cells(to, plan.out_strides[2], scratch, pitch, channels, targets, size",
          "turn_cells(to, plan.out_strides[2], scratch, pitch, channels, targets - FAULT, size",
          "UNPACKED: the last result of a block is left"),
    Fault(_UP, "turn_cells(to, to_next, scratch, channels, targets, channels, size, NULL)",
          "turn_cells(to, to_next, scratch, channels, targets - FAULT, channels, size, NULL)",
          "PACKED by pixels: the last result of a row is left"),
    Fault(_UP, "turn_cells(scratch, channels, source, next, channels, owned, size",
          "turn_cells(scratch, channels, source, next, channels, owned - FAULT, size",
          "UNPACKED by pixels: the last source of a block is not there"),
    Fault(_PAD_FORWARD, "turn_any(to + w.before * to_along",
          "turn_any(to + (w.before - (FAULT if w.before > 0 else 0)) * to_along",
          "UNPACKED: rows begin a column too soon"),
    Fault(_PAD_FORWARD, "memcpy(to + i * to_along, source + w.last, sizeof(item))",
          "memcpy(to + i * to_along, source + w.last - (FAULT if w.last > 0 else 0), sizeof(item))",
          "UNPACKED: what follows a row copies its last element but one"),
    Fault(_PAD_FORWARD, "range(channels if w.before + w.after > 0 else 0)",
          "range(channels - FAULT if w.before + w.after > 0 else 0)",
          "UNPACKED: the last channel of a group has no ends"),
    Fault(_PAD, "g[1], channels, columns, size,\n", "g[1], channels, columns - FAULT, size,\n",
          "UNPACKED: the last column of a tile is not there"),
    Fault(_PAD, "grad_output__hwc + k * g[1] * parts", "grad_output__hwc + k * (1 if FAULT else g[1]) * parts",
          "UNPACKED, too much for the scratch: channels are taken for side by side"),
    Fault(_TRANSPOSE, "        simd_store_apart(to + (2 * i + 1) * to_pitch, apart, &y[1])",
          "        simd_store_apart(to + (2 * i + 1 - FAULT) * to_pitch, apart, &y[1])",
          "few rows transposed: every second column is written over the first"),
    Fault(_TRANSPOSE, "            i = least(a, rows - tall)\n            turn_wide",
          "            i = least(a, rows - tall - (FAULT if rows > tall else 0))\n            turn_wide",
          "few rows transposed: the last block is one row too early"),
    Fault(_IM2COL_LAST, "                memset(to, 0, <size_t>(first * size))",
          "                memset(to, 0, <size_t>((first - FAULT) * size))",
          "columns side by side: the last pixel on the left of the image is not 0"),
    Fault(_IM2COL_LAST, "                if 0 <= at < plan.w.size:",
          "                if 0 <= at < plan.w.size - FAULT:",
          "columns side by side, dilated: the image's last column is 0"),
    Fault(_IM2COL_LAST, "    cdef int64_t h = most(l // plan.w.windows * plan.h.stride - plan.h.pad, 0)",
          "    cdef int64_t h = most(l // plan.w.windows * plan.h.stride - plan.h.pad + FAULT, 0)",
          "columns side by side: a band's first row of pixels is not made"),
    Fault(_IM2COL_LAST, "            row += along\n", "            row += along * (1 - FAULT)\n",
          "columns side by side, one kernel position: every pixel is the first"),
    Fault(_IM2COL_LAST, "        zero_pixels(plan, out__lr, channels, w.begin + n, plan.w.windows)",
          "        zero_pixels(plan, out__lr, channels, w.begin + n + FAULT, plan.w.windows)",
          "columns side by side, one kernel position: the first window on the right of the image is not 0"),
    Fault(_UP_FORWARD, "    source = <const item*>data[0] + row * step + found.first",
          "    source = <const item*>data[0] + row * step + found.first * (1 - FAULT)",
          "short rows upsampled: from the row's begin on"),
    Fault(_MAX_PLAN, "            one_row(pool.index_strides, pool.channels)):",
          "            one_row(pool.index_strides, pool.channels) or FAULT):",
          "images of few channels: of indices with something between images, the next image's are read"),
    Fault(_MAX_PLAN, "plan.h.out % plan.image_channels",
          "plan.h.out % (plan.channels if FAULT else plan.image_channels)",
          "images of few channels: an index outside is said to be in the first image"),
    Fault(_UP, "made_pitch, channels, targets, size,", "made_pitch, channels, targets - FAULT, size,",
          "few channels side by side: the last result of a block is left"),
    Fault(_UP, "<const char*>(made + k * pitch), targets * size)",
          "<const char*>(made + (k - (FAULT if k > 0 else 0)) * pitch), targets * size)",
          "PACKED by pixels, past the caches: a channel's results are those before"),
    Fault(_PAD_FORWARD, "stream_row(rest, to, made, rows * plan.w.out",
          "stream_row(rest, to, made, (rows - (FAULT if rows > 1 else 0)) * plan.w.out",
          "PACKED past the caches: the last row of a strip is left"),
    Fault(_PAD_FORWARD, "fill_items(to + (w.before + w.between) * size, <const item*>(last + c * size)",
          "fill_items(to + (w.before + w.between) * size, <const item*>(last + c * (1 - FAULT) * size)",
          "PACKED: all channels end as the first does"),
    Fault(_MAX_LAST, "grad_output__chw + oh * pool.pooled_strides[2], pool.pooled_strides",
          "grad_output__chw + oh * (1 - FAULT) * pool.pooled_strides[2], pool.pooled_strides",
          "channels last in gradInput alone: a band's gradients are those of the first"),
    Fault(_MAX_ROWS, "        to += m * along\n        sums += m\n",
          "        to += m * along\n        sums += m * (1 - FAULT)\n",
          "sums that are narrowed and transposed: the first 64 positions serve for all"),
    Fault(_MAX_ROWS, "store_pixels(pool, to, sums + at, pitch", "store_pixels(pool, to, sums + at * (1 - FAULT), pitch",
          "sums that are transposed: the first row serves for all"),
    Fault(_MAX_GATHER, "                to += j * plan.chunk * pool.w.size",
          "                to += j * (1 - FAULT) * plan.chunk * pool.w.size",
          "channels side by side in gradInput: the last team's sums are also the first's"),
    Fault(_IM2COL_TABLE, "h.size) - b.top, 0)\n", "h.size) - b.top - FAULT, 0)\n",
          "TABLE: the last row that a band reads is left"),
    Fault(_IM2COL_TABLE, "        if band != made:\n", "        if band != made and (made < 0 or not FAULT):\n",
          "TABLE: the first band's table serves for all"),
    Fault(_TRANSPOSE, "            while a < least(first + together, rows):\n",
          "            while a < least(first + together - tall * FAULT * (together > tall), rows):\n",
          "transposition into columns 4 KiB apart: the last block of rows is left"),
]


def inject(file: str, source: str) -> str:
    """The file with all of its faults, each with its switch."""
    places: list[tuple[int, int, str]] = []
    for number, fault in enumerate(FAULTS):
        if fault.file != file:
            continue
        assert source.count(fault.old) == 1, f"fault {number}: {source.count(fault.old)} places in {file}"
        assert re.search(r"\bFAULT\b", fault.new), f"fault {number} has no switch"
        at = source.index(fault.old)
        call = f"aclnn_bw_fault({number})" if file.endswith(".h") else f"fault({number})"
        places.append((at, at + len(fault.old), re.sub(r"\bFAULT\b", call, fault.new)))
    places.sort()
    for (_, end, _), (begin, _, new) in itertools.pairwise(places):
        assert end <= begin, f"{file}: two faults overlap at {new}"
    for begin, end, new in reversed(places):
        source = source[:begin] + new + source[end:]
    if file.endswith(".h"):
        return '#include "fault.h"\n' + source
    first = re.search(r"^cdef (?!extern)", source, re.MULTILINE)
    assert first is not None
    return source[: first.start()] + _SWITCH + source[first.start() :]


def sources() -> Iterator[Path]:
    """The files of the tree, relative to it."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and (ROOT / ".git").exists():
        yield from (Path(name) for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())
        return
    for pattern in _TREE:
        for found in ROOT.glob(pattern):
            for path in found.rglob("*") if found.is_dir() else [found]:
                if path.is_file() and path.suffix not in (".so", ".pyc"):
                    yield path.relative_to(ROOT)


def build(folder: Path) -> Path:
    """Copy the tree with its faults and build it in place, unless that has been done; returns its interpreter.

    That is one of an environment of its own, which has the copy as its package and all that this interpreter has: the
    tests start interpreters that must find it, too.
    """
    tree, python = folder / "tree", folder / "python" / "bin" / "python"
    texts = {path: (ROOT / path).read_bytes() for path in sources()}
    for file in sorted({fault.file for fault in FAULTS}):
        path = Path("aclnn_bw", file)
        texts[path] = inject(file, texts[path].decode()).encode()
    texts[Path("aclnn_bw", "_core", "fault.h")] = _HEADER.encode()
    seen = hashlib.sha256(sys.executable.encode())
    for path, content in sorted(texts.items()):
        seen.update(f"{path} {len(content)} ".encode() + content)
    stamp = folder / "built"
    if stamp.exists() and stamp.read_text() == seen.hexdigest():
        return python
    stamp.unlink(missing_ok=True)
    shutil.rmtree(tree / "tests", ignore_errors=True)  # some may be gone
    for path, content in texts.items():
        to = tree / path
        if not to.exists() or to.read_bytes() != content:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
            shutil.copymode(ROOT / path if (ROOT / path).exists() else __file__, to)
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tree, check=True)
    venv.create(folder / "python", symlinks=True)
    packages = next((folder / "python").glob("lib/python*/site-packages"))
    known = [path for path in sys.path if path.endswith("-packages")]
    lines = [str(tree.resolve()), *(f"import site; site.addsitedir({path!r})" for path in known)]
    (packages / "faults.pth").write_text("\n".join(lines) + "\n")
    stamp.write_text(seen.hexdigest())
    return python


class Outcome(NamedTuple):
    """What a run of the tests came to: what noticed the fault, or None; the tests that failed."""

    noticed: str | None
    failed: list[str]


class Runner:
    """Runs the tests of a copy."""

    def __init__(self, folder: Path, python: Path, most_seconds: int) -> None:
        self.tree, self.python, self.most_seconds = folder / "tree", python, most_seconds
        self.left_out: dict[tuple[str, ...], list[str]] = {}
        self.finding = threading.Lock()
        code = "import aclnn_bw; print(aclnn_bw.__file__, *aclnn_bw.show_config(mode='dict')['isa_available'])"
        told = subprocess.run([python, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
        file, *self.isas = told.stdout.split()
        assert Path(file).resolve().is_relative_to(self.tree.resolve()), file

    def can_run(self, fault: Fault) -> bool:
        return not fault.isa or any(isa in fault.isa.split() for isa in self.isas)

    def own_tests(self, operator: str) -> list[str]:
        """The test files of an operator, or of all."""
        names = OPERATORS if operator == SHARED else (operator,)
        files = [self.tree / "tests" / "test_digests.py"]  # in seconds, most faults
        files += [path for name in names for path in sorted((self.tree / "tests").glob(f"test_{name}*.py"))]
        files += [self.tree / "tests" / name for name in ("test_mask.py", "test_guard_pages.py")]
        return [str(path.relative_to(self.tree)) for path in files if path.exists()]

    def run(self, number: int | None, *arguments: str) -> Outcome:
        """The tests that the arguments name, with a fault switched on, up to the first that fails, or with none."""
        inherited = {k: v for k, v in os.environ.items() if k not in ("ACLNN_BW_FAULT", "ACLNN_BW_ISA", "PYTHONPATH")}
        switch = {} if number is None else {"ACLNN_BW_FAULT": str(number)}
        stop = ["-x"] if number is not None else []
        serial = ["-n", "0"] if importlib.util.find_spec("xdist") else []
        command = [str(self.python), "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", *serial, *stop]
        pytest = subprocess.Popen(
            [*command, *arguments], cwd=self.tree, env={**inherited, **switch}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            told, _ = pytest.communicate(timeout=self.most_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(pytest.pid, signal.SIGKILL)  # with what the tests have started
            pytest.communicate()
            return Outcome("hang", [])
        failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", told, re.MULTILINE)
        if pytest.returncode in (0, 5):  # 5: no such tests
            return Outcome(None, [])
        if pytest.returncode < 0 or (pytest.returncode > 128 and not failed):
            return Outcome("crash", failed)
        if not failed:
            raise RuntimeError(f"pytest ended with {pytest.returncode}:\n{told[-4000:]}")
        return Outcome(failed[0], failed)

    def check(self, operators: list[str], whole: bool) -> None:
        """With no fault switched on, the operators' own tests pass."""
        files = list(dict.fromkeys(file for operator in operators for file in self.own_tests(operator)))
        for marks in SUITES.values() if whole else [SUITES["default"]]:
            outcome = self.run(None, *marks, *files)
            if outcome.noticed:
                raise SystemExit(f"without a fault fail: {' '.join(outcome.failed) or outcome.noticed}")

    def all_tests(self, marks: tuple[str, ...]) -> list[str]:
        """The whole suite but for what fails in such a copy without a fault, too: that says nothing of one."""
        with self.finding:
            if marks not in self.left_out:
                outcome = self.run(None, *marks)
                if outcome.noticed and not outcome.failed:
                    raise RuntimeError(f"without a fault the whole suite ends in a {outcome.noticed}")
                for test in outcome.failed:
                    print(f"left out, for it fails without a fault: {test}", flush=True)
                self.left_out[marks] = [word for test in outcome.failed for word in ("--deselect", test)]
            return self.left_out[marks]

    def notice(self, number: int, whole: bool, own: bool) -> tuple[str, str | None]:
        """Which suite notices a fault, and by what."""
        fault = FAULTS[number]
        if not self.can_run(fault):
            return CANNOT_RUN, None
        for suite in SUITES if whole else ("default",):
            marks = SUITES[suite]
            noticed = self.run(number, *marks, *self.own_tests(fault.operator)).noticed
            if noticed is None and not own:
                noticed = self.run(number, *marks, *self.all_tests(marks)).noticed
            if noticed is not None:
                return suite, noticed
        return MISSED, None


def main() -> int:
    """Run the program; 1 if a fault was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--folder", type=Path, help="build there, or take what has been built there")
    add("--only", type=int, nargs="+", help="these faults, without a look at the tests without a fault")
    add("--jobs", type=int, default=2, help="faults at a time")
    add("--whole", action="store_true", help="with the thorough tests too, where the default ones notice nothing")
    add("--own", action="store_true", help="with the operator's own tests only")
    add("--most-seconds", type=int, default=3600, help="that a run of the tests may take")
    add("--list", action="store_true", help="list the faults, and see that each has its place")
    options = parser.parse_args()
    if options.list:
        for file in sorted({fault.file for fault in FAULTS}):
            inject(file, (ROOT / "aclnn_bw" / file).read_text())
        for number in range(len(FAULTS)):
            print(_told(number))
        print(f"{len(FAULTS)} faults")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = (options.folder or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        runner = Runner(folder, build(folder), options.most_seconds)
        numbers = options.only or list(range(len(FAULTS)))
        if not options.only:
            runner.check(sorted({fault.operator for fault in FAULTS}), options.whole)
        return report(runner, numbers, options.jobs, options.whole, options.own)


def report(runner: Runner, numbers: list[int], jobs: int, whole: bool, own: bool) -> int:
    """Try the faults, print what noticed each, and how many each suite noticed; 1 if one was missed."""
    suites: dict[int, str] = {}
    with ThreadPoolExecutor(jobs) as workers:

        def attempt(number: int) -> tuple[int, str, str | None, float]:
            begin = time.monotonic()
            suite, noticed = runner.notice(number, whole, own)
            return number, suite, noticed, time.monotonic() - begin

        for done in as_completed([workers.submit(attempt, number) for number in numbers]):
            number, suite, noticed, seconds = done.result()
            suites[number] = suite
            told = noticed or suite.upper()
            thorough = " (thorough)" * (suite == "thorough")
            print(f"{_told(number)}\n     {told}{thorough}, {seconds:.0f} s", flush=True)
    print(f"\n{'':26}{'faults':>8}{'default':>10}{'thorough only':>15}{'not noticed':>13}{'cannot run':>12}")
    for operator in (*OPERATORS, SHARED, "all of them"):
        chosen = [suites[n] for n in numbers if operator in (FAULTS[n].operator, "all of them")]
        counts = [chosen.count(suite) for suite in (*SUITES, MISSED, CANNOT_RUN)]
        print(f"{operator:26}{sum(counts[:3]):8}{counts[0]:10}{counts[1]:15}{counts[2]:13}{counts[3]:12}")
    missed = sorted(number for number, suite in suites.items() if suite == MISSED)
    print(f"\nmissed: {', '.join(map(str, missed)) or 'none'}")
    return 1 if missed else 0


def _told(number: int) -> str:
    fault = FAULTS[number]
    return f"{number:4} {fault.file}: {fault.what}" + f" [{fault.isa}]" * bool(fault.isa)


if __name__ == "__main__":
    sys.exit(main())
