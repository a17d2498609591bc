"""What the plan behind an executor chose, for guard_pages.py; compiled there, from the package's own declarations."""
from libc.stdint cimport uintptr_t

from aclnn_bw._core cimport avg_pool2d as avg
from aclnn_bw._core cimport im2col as im2col
from aclnn_bw._core cimport max_pool2d as maxpool
from aclnn_bw._core cimport replication_pad2d as pad
from aclnn_bw._core cimport types as t
from aclnn_bw._core cimport upsample_nearest_exact1d as up

cdef extern from "operators.h":
    enum:
        AVG_POOL2D_BACKWARD "ACLNN_BW_AVG_POOL2D_BACKWARD"
        MAX_POOL2D_WITH_MASK_BACKWARD "ACLNN_BW_MAX_POOL2D_WITH_MASK_BACKWARD"
        MAX_POOL2D_WITH_MASK "ACLNN_BW_MAX_POOL2D_WITH_MASK"
        IM2COL_BACKWARD "ACLNN_BW_IM2COL_BACKWARD"
        UPSAMPLE_NEAREST_EXACT1D_BACKWARD "ACLNN_BW_UPSAMPLE_NEAREST_EXACT1D_BACKWARD"


def algorithm(uintptr_t pointer):
    """Its name, and what else sends the kernel another way."""
    cdef t.Executor* executor = <t.Executor*>pointer
    cdef avg.AvgPool2dPlan* a = <avg.AvgPool2dPlan*>executor.plan
    cdef maxpool.MaxPool2dGatherPlan* m = <maxpool.MaxPool2dGatherPlan*>executor.plan
    cdef maxpool.MaxPool2dForwardPlan* f = <maxpool.MaxPool2dForwardPlan*>executor.plan
    cdef im2col.Im2colPlan* i = <im2col.Im2colPlan*>executor.plan
    cdef up.UpsampleNearestExact1dPlan* u = <up.UpsampleNearestExact1dPlan*>executor.plan
    cdef pad.ReplicationPad2dPlan* p = <pad.ReplicationPad2dPlan*>executor.plan
    threads = " threads" if executor.ranges > 1 else ""
    if executor.op == AVG_POOL2D_BACKWARD:
        name = {avg.FILL: "FILL", avg.DOUBLE: "DOUBLE", avg.BANDED: "BANDED", avg.STREAMED: "STREAMED"}[a.algorithm]
        return name + " group" * (a.group > 1) + " divisors" * (not a.constant_divisor) + threads
    if executor.op == MAX_POOL2D_WITH_MASK_BACKWARD:
        name = {maxpool.GATHER: "GATHER", maxpool.SCATTER: "SCATTER", maxpool.PLANES: "PLANES"}[m.pool.algorithm]
        if m.pool.algorithm == maxpool.GATHER:
            name += f" {m.known}" + " flat" * m.flat
        return name + " argmax" * m.pool.argmax + threads
    if executor.op == MAX_POOL2D_WITH_MASK:
        name = {maxpool.PHASES: "PHASES", maxpool.SCAN: "SCAN"}[f.pool.algorithm]
        return name + " parts" * (f.kept < f.pool.h.kernel) + " coded" * f.coded + " argmax" * f.pool.argmax + threads
    if executor.op == IM2COL_BACKWARD:
        name = {im2col.SCATTER: "SCATTER", im2col.GATHER: "GATHER", im2col.INTERLEAVE: "INTERLEAVE"}[i.algorithm]
        return name + " packs" * i.packs + " turns" * i.turns + " streams" * i.streams + threads
    if executor.op == UPSAMPLE_NEAREST_EXACT1D_BACKWARD:
        name = {up.PERIODIC: "PERIODIC", up.WHOLE: "WHOLE", up.FILLED: "FILLED"}[u.tables]
        return name + {up.ROWS: "", up.PACKED: " packed", up.PIXELS: " pixels"}[u.layout] + threads
    name = {pad.PLANES: "PLANES", pad.PACKED: "PACKED", pad.PIXELS: "PIXELS"}[p.layout]
    return name + " streamed" * p.streamed + threads
