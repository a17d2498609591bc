"""AvgPool2dBackward: what the tests know of it."""

from functools import lru_cache
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np
from digest_calls import BOTH_WAYS, FEW_WIDTHS, HALVES, WIDTHS, Call, Digested, Group, as_pairs, fits, image, stand_in
from engine_helpers import counted, sentinel_array
from fuzz import cases, rules
from fuzz.calls import Argument, tensor
from fuzz.cases import Case, one_of, unreadable
from helpers import DTYPES, assert_is_sum, assert_same_bytes, normal, oracle_type, run_two_phase
from reference import pair, pairs, pooled_shape, pooled_size, round_float16, round_hf32

import aclnn_bw
from operators.base import BASIC, REAL, WITH_BF16, Operator, on_products
from operators.max_pool import POOLS

# ---- the twin --------------------------------------------------------------------------------------------------------


def _windows(size, kernel, stride, padding, ceil_mode):
    """Along one axis, for each output: the inputs start:end that its window covers and its length with the padding."""
    for o in range(pooled_size(size, kernel, stride, padding, ceil_mode)):
        start = o * stride - padding
        end = min(start + kernel, size + padding)
        yield max(start, 0), min(end, size), end - start


def _windows2d(input_shape, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """For each output (oh, ow): its place, its rows and columns of the image, its divisor."""
    axes = zip(input_shape[-2:], *pairs(kernel_size, stride, padding), strict=True)
    rows, columns = (list(_windows(*axis, ceil_mode)) for axis in axes)
    for oh, (top, bottom, height) in enumerate(rows):
        for ow, (left, right, width) in enumerate(columns):
            pool, inside = height * width, (bottom - top) * (right - left)
            divisor = divisor_override or (pool if count_include_pad else inside)
            yield (..., oh, ow), (..., slice(top, bottom), slice(left, right)), divisor


def avg_pool2d(
    x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None,
    dtype=np.float64,
):  # fmt: skip
    """The average of each window: the forward operator whose gradient the others compute."""
    x = np.asarray(x).astype(dtype)
    out = np.empty(pooled_shape(x.shape, kernel_size, stride, padding, ceil_mode), dtype)
    attributes = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    for place, window, divisor in _windows2d(x.shape, *attributes):
        out[place] = x[window].sum(axis=(-2, -1)) / divisor
    return out


def avg_pool2d_backward(
    grad_output, input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, dtype=np.float64,
):  # fmt: skip
    """Each element of `grad_output`, divided by its window's divisor, is added to all inputs of the window."""
    grad_output = np.asarray(grad_output).astype(dtype)
    grad_input = np.zeros(input_shape, dtype)
    attributes = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    for place, window, divisor in _windows2d(input_shape, *attributes):
        grad_input[window] += grad_output[place][..., None, None] / divisor
    return grad_input


def sum_abs_and_terms(
    grad_output, input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, dtype=np.float64,
):  # fmt: skip
    """For each input: the sum of |terms| and the number of terms, of which the error bound is made."""
    size = (kernel_size, stride, padding, ceil_mode)
    magnitude = np.abs(np.asarray(grad_output).astype(dtype))
    total = avg_pool2d_backward_quick(
        magnitude, input_shape, *size, count_include_pad, divisor_override and abs(divisor_override), dtype
    )
    ones = np.ones(pooled_shape(input_shape, *size)[-2:])
    return total, avg_pool2d_backward_quick(ones, input_shape[-2:], *size, True, 1)


# The quick form: the windows are products of a row and a column range, so the terms are spread along one axis at a
# time, one kernel position after the other. Unlike a matrix product it lets no NaN out of its own windows.


@lru_cache(maxsize=8192)
def _window_lengths(size, kernel, stride, padding, ceil_mode, count_include_pad):
    start = np.arange(pooled_size(size, kernel, stride, padding, ceil_mode)) * stride - padding
    end = np.minimum(start + kernel, size + padding)
    return end - start if count_include_pad else np.minimum(end, size) - np.maximum(start, 0)


@lru_cache(maxsize=8192)
def _taps(size, kernel, stride, padding, ceil_mode):
    """For each kernel position that reaches the image: the inputs that it reaches and the outputs it comes from."""
    out = pooled_size(size, kernel, stride, padding, ceil_mode)
    taps = []
    for tap in range(kernel):
        first = max(0, -((tap - padding) // stride))
        last = min(out - 1, (size - 1 + padding - tap) // stride)
        if first <= last:
            start = first * stride - padding + tap
            taps.append((slice(start, (last - first) * stride + start + 1, stride), slice(first, last + 1)))
    return taps


def avg_pool2d_backward_quick(
    grad_output, input_shape, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None, dtype=np.float64,
):  # fmt: skip
    """`avg_pool2d_backward` with another order of the sum; kernel height + width steps instead of one per window."""
    rows, columns = zip(input_shape[-2:], *pairs(kernel_size, stride, padding), strict=True)
    divisor = divisor_override or np.multiply.outer(
        _window_lengths(*rows, ceil_mode, count_include_pad), _window_lengths(*columns, ceil_mode, count_include_pad)
    )
    terms = np.asarray(grad_output).astype(dtype) / divisor
    by_rows = np.zeros((*terms.shape[:-2], rows[0], terms.shape[-1]), dtype)
    for inputs, outputs in _taps(*rows, ceil_mode):
        by_rows[..., inputs, :] += terms[..., outputs, :]
    grad_input = np.zeros(input_shape, dtype)
    for inputs, outputs in _taps(*columns, ceil_mode):
        grad_input[..., inputs] += by_rows[..., outputs]
    return grad_input


@lru_cache(maxsize=1 << 14)
def _averages(size, windows, kernel, stride, pad, include_pad):
    """Along one axis: what share of each window's gradient a position gets; all of it where include_pad is None."""
    matrix = np.zeros((size, windows))
    for window in range(windows):
        start = window * stride - pad
        end = min(start + kernel, size + pad)
        inside = slice(max(start, 0), min(end, size))
        length = end - start if include_pad else inside.stop - inside.start
        matrix[inside, window] = 1 if include_pad is None else 1 / length
    return matrix


def avg_pool2d_backward_tiny(grad, shape, kernel, stride, pad, include_pad, divisor):
    """`avg_pool2d_backward` of planes of a few elements and finite values."""
    rows, columns = (
        _averages(size, windows, *axis, None if divisor else include_pad)
        for size, windows, *axis in zip(shape[-2:], grad.shape[-2:], kernel, stride, pad, strict=True)
    )
    result = rows @ grad @ columns.T
    return result / divisor if divisor else result


# ---- the tests of its numbers ----------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """A pooling of an image of `input_shape`; unpacked after a tensor it makes a call of the package or of the twin."""

    input_shape: tuple
    kernel_size: int | tuple
    stride: int | tuple | None = None
    padding: int | tuple = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def __str__(self):
        text = "x".join(map(str, self.input_shape)) + f"-k{self.kernel_size}"
        text += f"-s{self.stride}" * (self.stride is not None) + f"-p{self.padding}" * (self.padding != 0)
        text += "-ceil" * self.ceil_mode + "-exclude" * (not self.count_include_pad)
        text += f"-by{self.divisor_override}" * (self.divisor_override is not None)
        return text.replace("(", "").replace(")", "").replace(", ", "x")

    @property
    def output_shape(self):
        return pooled_shape(*self[:5])

    def gradients(self, rng, dtype):
        return normal(rng, self.output_shape, DTYPES[dtype])


class Mode(NamedTuple):
    """What decides the arithmetic of the two-phase call."""

    product: str
    dtype: str
    cube_math_type: int = 0

    def __str__(self):
        return f"{self.product}-{self.dtype}-{self.cube_math_type}"

    @property
    def rounding(self):
        """What gradOutput, and for float16 the result too, is rounded to; None: nothing."""
        if self.dtype != "float32" or self.product == "Host" or self.cube_math_type == 0:
            return None
        half = self.cube_math_type == 2 or self.product != "Ascend910B"
        return round_float16 if half else round_hf32


# Every arithmetic that exists.
MODES = [Mode("Host", dtype) for dtype in DTYPES] + [Mode("Ascend910B", "float32", cube) for cube in (2, 3)]


def avg_pool2d_backward_two_phase(pool, grad_output, mode, out=None, stream=None):
    """Both phases; the workspace that the first asks for is checked against the package's promise."""
    dtype = DTYPES[mode.dtype]
    out = np.empty(pool.input_shape, dtype) if out is None else out
    stand_in = np.broadcast_to(np.zeros((), dtype), pool.input_shape)  # self gives its shape alone
    sizes = [None if size is None else list(pair(size)) for size in pool[1:4]]
    rest = (pool.ceil_mode, pool.count_include_pad, pool.divisor_override or 0, mode.cube_math_type)
    with aclnn_bw.soc(mode.product):
        size = run_two_phase("AvgPool2dBackward", grad_output, stand_in, *sizes, *rest, out, stream=stream)
    longest_row = max(pool.input_shape[-1], grad_output.shape[-1])
    assert size <= aclnn_bw.get_num_threads() * (2 * 2**20 + 64 * longest_row)
    return out


def assert_is_avg_pool2d_backward(result, grad_output, pool, mode):
    """The result against the twin, within the error bound."""
    wide = oracle_type(result.dtype)
    if mode.rounding:
        grad_output = mode.rounding(grad_output)
    with np.errstate(invalid="ignore"):
        exact = avg_pool2d_backward_quick(grad_output, *pool, dtype=wide)
        sum_abs, terms = sum_abs_and_terms(grad_output, *pool, dtype=wide)
    rounds_result = mode.rounding is round_float16
    assert_is_sum(result, exact, sum_abs, terms, round_float16 if rounds_result else None)


# ---- digested calls --------------------------------------------------------------------------------------------------


def avg(shape, kernel, stride=None, padding=0, ceil=False, include=True, divisor=None, **rest):
    attributes = kernel, kernel if stride is None else stride, padding, ceil, include, divisor
    return Call("AvgPool2dBackward", shape, attributes, **rest)


def digested_groups():
    hot = [(2, 2, 0), (3, 2, 1), (3, 2, 0), (3, 1, 1), (3, 1, 0), (5, 1, 2), (3, 3, 0)]
    other = [
        (1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 0), (2, 1, 1), (2, 2, 1), (2, 3, 1), (3, 3, 1), (4, 1, 2), (4, 2, 1),
        (4, 3, 2), (4, 4, 0), (5, 2, 2), (5, 3, 1), (5, 5, 0), (6, 3, 0), (7, 1, 3), (7, 2, 3), (8, 8, 0), (11, 4, 2),
    ]  # fmt: skip
    for kernel, stride, padding in hot:
        calls = [
            avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, 3, None, -7)[number % 4])
            for number, width in enumerate((*WIDTHS, *WIDTHS))
            if fits(shape := image(number, width), kernel, stride, padding)
        ]
        yield f"k{kernel} s{stride} p{padding}, widths", Group(calls)
    calls = [
        avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, None, 3)[number % 3])
        for number, ((kernel, stride, padding), width) in enumerate(product(other, FEW_WIDTHS))
        if fits(shape := image(number, width), kernel, stride, padding)
    ]
    yield "other kernels, widths", Group(calls)
    for stride in range(1, 9):
        calls = [
            avg((1, 2, 17, width), (rows, columns), (down, stride), (rows // 3, columns // 2), number % 2 == 0,
                number % 3 > 0)
            for number, (columns, (rows, down), width) in enumerate(
                product(range(1, 18), ((1, 1), (2, 3), (3, 2), (5, 1), (17, 9)), (19, 37)))
        ]  # fmt: skip
        yield f"kernel columns 1 to 17 at stride {stride}", Group(calls)
    calls = [
        avg((*planes, height, width), kernel, stride, padding, include=number % 2 == 0)
        for number, (height, width, planes, (kernel, stride, padding)) in enumerate(product(
            (1, 2, 4, 7, 14), (1, 3, 4, 7, 8, 14), ((12,), (2, 37)), ((2, 2, 0), (3, 1, 1), (3, 2, 1), (5, 3, 2))))
        if fits((height, width), kernel, stride, padding)
    ]  # fmt: skip
    yield "small planes", Group(calls)
    calls = [
        avg((2, channels, height, width), (height, width), divisor=(None, 5)[number % 2], out=out)
        for number, (channels, height, width, out) in enumerate(product(
            (1, 3, 33), (1, 2, 7), (1, 3, 4, 7, 8, 16, 33), ("contiguous", "channels_last", "columns_reversed")))
    ]  # fmt: skip
    yield "one window a plane", Group(calls)
    calls = [
        avg(shape, kernel, stride, padding, number % 5 == 4, number % 3 != 1, (None, None, -3)[number % 3],
            layout=layout, out=out, kind=kind)
        for number, ((layout, out), shape, (kernel, stride, padding), kind) in enumerate(product(
            (("contiguous", "contiguous"), *BOTH_WAYS), ((1, 31, 7, 8), (16, 3, 6, 5)),
            ((3, 2, 0), (4, 3, 2), ((3, 5), (2, 3), 1), (1, (2, 4), 0)), ("plain", "special")))
    ]  # fmt: skip
    yield "small planes, layouts", Group(calls)
    for kernel, stride, padding in (
        (2, 2, 0), (3, 2, 1), (3, 3, 0), (3, 1, 1), (5, 4, 2), (1, 1, 0), (2, 5, 0), (3, 7, 0)
    ):  # fmt: skip
        calls = [
            avg(shape, kernel, stride, padding, include=number % 2 == 0, layout=layout, out=out)
            for number, ((layout, out), shape) in enumerate(
                product(BOTH_WAYS, ((2, 19, 6, 13), (1, 35, 5, 18), (1, 3, 9, 65))))
        ]  # fmt: skip
        yield f"k{kernel} s{stride} p{padding}, layouts", Group(calls)
    calls = [
        avg((1, 2, 5, width), kernel, stride, padding, layout=layout, include=include)
        for (kernel, stride, padding), width, (layout, include) in product(
            ((2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), ((2, 17), 1, (1, 8))), (1000, 4099, 20001),
            (("contiguous", True), ("channels_last", False)))
    ]  # fmt: skip
    yield "long rows", Group(calls)
    calls = [
        avg((1, 1, 1500, 20), (1400, 5), (7, 3), (500, 2), include=False), avg((1, 2, 600, 20), (200, 3), 1, (100, 1)),
        avg((1, 1, 700, 3), (2, 3), (9, 1), (1, 1), include=False),
        avg((2, 1, 300, 40), (40, 4), (12, 5), (20, 2), True),
    ]  # fmt: skip
    yield "tall planes", Group(calls)
    # The rows of terms and of their sums that a band needs, 33 numbers each, are more than a MiB.
    for rows, dtypes in (8100, ("float32",)), (4050, HALVES), (2050, ("float64",)):
        stride = 2 if rows > 8000 else 1
        calls = [avg((1, 1, rows, 33), (rows - 3, 2), (stride, 1), 0, include=False)]
        if rows < 4000:
            calls += [avg((1, 1, 2 * rows, 33), (2 * rows - 3, 2), (2, 1), (3, 0), out="columns_reversed")]
        yield "kernels taller than the scratch", Group(calls, dtypes)
    geometries = [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 4, 2), (7, 7, 0), (4, 1, 2), (4, 6, 0)]
    calls = [
        avg((2, 3, 14, width), kernel, stride, padding, include=number % 2 == 0, kind=kind, product="Ascend910B",
            rest=cube, out=out)
        for number, ((kernel, stride, padding), width, kind, cube, out) in enumerate(product(
            geometries, (7, 33), ("plain", "special"), (1, 2, 3), ("contiguous", "channels_last")))
    ] + [avg((1, 1, 4050, 33), (4047, 2), 1, 0, product="Ascend910B", rest=2)]  # fmt: skip
    yield "reduced precision", Group(calls, ("float32",))
    calls = [
        avg((2, 3, 14, width), kernel, stride, padding, ceil, include, divisor, kind="special")
        for (kernel, stride, padding), width, (ceil, include, divisor) in product(
            geometries, (7, 16, 35, 70), ((False, True, None), (True, False, None), (False, True, 1), (True, True, -3)))
    ]  # fmt: skip
    yield "special values", Group(calls)
    calls = [
        avg((2, 3, *size), kernel, stride, padding, kind="nothing", out=out)
        for (kernel, stride, padding), size, out in product(
            (*geometries, (7, 7, 0)), ((7, 7), (14, 35)), ("contiguous", "every_second_column"))
        if fits((2, 3, *size), kernel, stride, padding)
    ]  # fmt: skip
    yield "nothing but -0.0", Group(calls)
    yield "short sums of a tall kernel", Group([avg((1, 1, 60001, 40), (20001, 3), 2)], ("float32",))
    calls = [
        avg((1, 64, 112, 112), 2, 2), avg((2, 64, 112, 112), 3, 2, 1), avg((1, 2, 512, 1023), 3, 1, 1),
        avg((1, 1, 1024, 1024), 3, 2, 1, include=False), avg((1, 3, 512, 512), 5, 4, 2, layout="channels_last"),
    ]  # fmt: skip
    yield "large", Group(calls)
    calls = [
        avg((2, 200, 35, 35), 3, 1, 1), avg((2, 2048, 7, 7), 7), avg((1, 64, 56, 56), 3, 3, out="rows_cropped"),
        avg((1, 64, 56, 56), 3, 2, 1, layout="channels_last"), avg((1, 64, 56, 56), 3, 1, 1, layout="channels_last"),
        avg((1, 1, 500, 640), (1, 7), 1, (0, 3)), avg((1, 1, 500, 640), 2), avg((1, 1, 500, 500), 500),
    ]  # fmt: skip
    yield "many planes and few", Group(calls)


class DigestedCalls(Digested):
    def input_shape(self, call):
        return pooled_shape(call.shape, *call.attributes[:4])

    def phase_1(self, call, inputs, outs):
        kernel, stride, padding, ceil, include, divisor = call.attributes
        return [
            inputs[0], stand_in(call, outs[0]), *as_pairs((kernel, stride, padding)), ceil, include, divisor or 0,
            call.rest, outs[0],
        ]  # fmt: skip

    def one_call(self, call, inputs, outs):
        return [aclnn_bw.avg_pool2d_backward(inputs[0], call.shape, *call.attributes, out=outs[0])]

    def groups(self):
        return digested_groups()


# ---- calls between guard pages ---------------------------------------------------------------------------------------


class Guarded(Case):
    def draw(self, rng):
        kind = one_of(rng, "any", "any", "walk", "walk", "walk", "spread", "spread", "spread", "double", "double",
                      "fill", "banded", "banded", "tall")  # fmt: skip
        shape = list(cases.image(rng))
        if kind == "tall" and rng.random() > 0.2:
            kind = "any"
        if kind == "any":
            kernel = [int(rng.integers(1, 8)) for _ in range(2)]
            stride = [int(rng.integers(1, 6)) for _ in range(2)]
        elif kind == "walk":
            kernel, stride = [int(one_of(rng, 1, 2, 3, 3, 4, 5, 5, 7, 16, 17)) for _ in range(2)], [1, 1]
            if rng.random() < 0.5:
                kernel[1] = kernel[0]
        elif kind == "spread":
            stride = [int(rng.integers(1, 10)), int(rng.integers(2, 4))]
            kernel = [int(rng.integers(1, 2 * s + 1)) for s in stride]
            if rng.random() < 0.5:
                kernel = stride = [stride[1], stride[1]] if rng.random() < 0.5 else stride
            elif rng.random() < 0.5:
                kernel, stride = [3, 3], [2, 2]
        elif kind == "double":
            kernel = stride = [2, 2]
        elif kind == "fill":
            kernel = shape[-2:]
            stride = [int(rng.integers(1, 4)) for _ in range(2)]
        elif kind == "banded":
            stride = [int(rng.integers(1, 13)), int(rng.integers(1, 13))]
            kernel = [int(rng.integers(1, 30)) for _ in range(2)]
        else:
            self.dtype = np.dtype(np.float64)  # the fewest rows that do not fit the scratch
            shape = [*([1] if len(shape) == 4 else []), 1, int(rng.integers(2500, 3500)), int(rng.integers(32, 41))]
            kernel = [shape[-2] - int(rng.integers(0, 6)), int(rng.integers(2, 5))]
            stride = [int(one_of(rng, 1, 1, 2, 3)), int(one_of(rng, 1, 2))]
        pad = [int(rng.integers(0, k // 2 + 1)) if rng.random() < 0.6 and kind not in ("fill", "double") else 0
               for k in kernel]  # fmt: skip
        if kind == "tall":  # takes a row of windows for each row of the image
            pad[0] = int(rng.integers(0, 4))
        ceil = bool(rng.random() < 0.3)
        for i in range(2):  # a window must fit
            if shape[i - 2] + 2 * pad[i] < kernel[i]:
                shape[i - 2] = kernel[i] - 2 * pad[i] if pad[i] * 2 < kernel[i] else 1
        self.shape = tuple(shape)
        self.geometry = self.shape, tuple(kernel), tuple(stride), tuple(pad), ceil
        self.include = bool(rng.random() < 0.6)
        self.divisor = one_of(rng, None, None, None, 1, 3, -7, 16)
        self.cube = 0
        if self.dtype == np.float32 and rng.random() < 0.2:
            self.product, self.cube = "Ascend910B", int(one_of(rng, 2, 3))

    def numbers(self):
        _, kernel, stride, pad, ceil = self.geometry
        return {"kernel": kernel, "stride": stride, "padding": pad, "ceil": ceil, "include": self.include,
                "divisor": self.divisor, "cube": self.cube}  # fmt: skip

    def tensors(self):
        return {"gradOutput": (pooled_shape(*self.geometry), self.dtype, "read"),
                "gradInput": (self.shape, self.dtype, "written")}  # fmt: skip

    def values(self, name, shape, dtype):
        return self.rng.standard_normal(shape).astype(dtype)

    def check(self, inputs, outputs):
        pool = Pool(*self.geometry, self.include, self.divisor)
        mode = Mode(self.product, self.dtype.name, self.cube)
        result = outputs["gradInput"]
        assert_is_avg_pool2d_backward(result, inputs["gradOutput"], pool, mode)
        if self.product == "Host":
            with aclnn_bw.num_threads(1):
                same = aclnn_bw.avg_pool2d_backward(inputs["gradOutput"], self.shape, *self.one_call_numbers())
            assert_same_bytes(result, same)

    def one_call_numbers(self):
        return *self.geometry[1:], self.include, self.divisor

    def phase1(self, t):
        _, kernel, stride, pad, ceil = self.geometry
        return (t["gradOutput"], unreadable(self.shape, self.dtype), kernel, stride, pad, ceil, self.include,
                self.divisor or 0, self.cube, t["gradInput"])  # fmt: skip

    def one_call(self, t):
        stand_in = unreadable(self.shape, self.dtype)
        aclnn_bw.avg_pool2d_backward(t["gradOutput"], stand_in, *self.one_call_numbers(), out=t["gradInput"])


# ---- the operator ----------------------------------------------------------------------------------------------------


class AvgPool2dBackward(Operator):
    declaration = "const aclTensor *gradOutput, const aclTensor *self, const aclIntArray *kernelSize, " \
        "const aclIntArray *stride, const aclIntArray *padding, bool ceilMode, bool countIncludePad, " \
        "int64_t divisorOverride, int8_t cubeMathType, aclTensor *gradInput"
    signature = "grad_output, self, kernel_size, stride=None, padding=0, ceil_mode=False, " \
        "count_include_pad=True, divisor_override=None, *, out=None"
    headers = ("aclnn_avgpool2d_backward.h",)
    roles: ClassVar[dict] = {"gradOutput": "read", "self": "shape", "gradInput": "written"}
    dtypes = on_products(BASIC, BASIC, WITH_BF16, REAL)
    geometries: ClassVar[list] = [
        *POOLS,
        {"shape": (3, 2, 9, 13), "kernel": (3, 3), "stride": (1, 1), "padding": (1, 1), "include": False},
        {"shape": (3, 2, 200, 90), "kernel": (5, 5), "stride": (1, 1), "padding": (2, 2), "divisor": -3},
        {"shape": (3, 2, 14, 14), "kernel": (3, 3), "stride": (6, 6), "padding": (1, 1)},
        {"shape": (3, 2, 12, 12), "kernel": (2, 3), "stride": (5, 4), "padding": (1, 0), "ceil": True, "divisor": 7},
    ]
    nullable = ("stride",)
    page = "avg_pool2d"
    enums = ("Algorithm",)
    demo = ("0.0625  0.0625", "gradInput: 16 of 16")
    exact = False
    picture = (3, 3), lambda g: aclnn_bw.avg_pool2d_backward(g, (1, 5, 5), 3, 2, 1)
    guarded = Guarded
    digested = DigestedCalls()

    def make(self, kernel=(2, 2), stride=(2, 2), padding=(0, 0), ceil=False, include=True, divisor=0):
        self.pool = kernel, stride, padding, ceil
        out = pooled_shape(self.shape, *self.pool)
        return {
            "gradOutput": self.integers(*out), "self": self.integers(*self.shape), "kernelSize": kernel,
            "stride": stride, "padding": padding, "ceilMode": ceil, "countIncludePad": include,
            "divisorOverride": divisor,
            # The Ascend910 and Ascend310P have no full float32; down-precision exists everywhere.
            "cubeMathType": int(aclnn_bw.ALLOW_FP32_DOWN_PRECISION),
            "gradInput": sentinel_array(self.shape, self.dtype),
        }  # fmt: skip

    def twin(self):
        rest = self["countIncludePad"], self["divisorOverride"] or None
        return {"gradInput": avg_pool2d_backward(self["gradOutput"], self.shape, *self.pool, *rest)}

    @classmethod
    def sample(cls):
        out = np.empty((1, 2, 4, 4), np.float32)
        grad, x = counted((1, 2, 2, 2), 1), counted((1, 2, 4, 4))
        cls.by_phases(grad, x, [2, 2], [2, 2], [0, 0], False, True, 0, 0, out)
        return {"gradInput": out}

    @staticmethod
    def rules(j, c, a):
        two = c.face == "two-phase"
        grad, kernel, divisor, ceil, out = (
            ("gradOutput", "kernelSize", "divisorOverride", "ceilMode", "gradInput") if two
            else ("grad_output", "kernel_size", "divisor_override", "ceil_mode", "out")
        )  # fmt: skip
        rules.nulls(j, a, grad, "self", kernel, "padding", *[out] * two)
        written = [out] * (a[out] is not None)
        rules.dtypes(j, c, a, grad, grad, "self", *written)
        j.stage()
        rules.ranks(j, a, (3, 4), grad, "self", *written)
        for name in (grad, "self", *written):
            formats = (rules.NCHW, rules.NCL) if a[name].rank == 3 else (rules.NCHW,)
            j.refuse(a[name].format not in formats, "format", name)
        j.refuse(written and a["self"].format != a[out].format, "formats differ", "self")
        j.stage()
        rules.lengths(j, a, **{kernel: (1, 2), "stride": (0, 1, 2), "padding": (1, 2)})
        j.stage()
        kernels, strides, pads = rules.pool_values(j, a, kernel, None)
        j.refuse(not two and a[divisor] == 0, "divisor 0", divisor)
        if c.product != "Host":
            j.refuse(not -255 <= a[divisor] <= 255, "divisor limit", divisor)
        if two:
            mode = a["cubeMathType"]
            j.refuse(mode not in (0, 1, 2, 3), "cubeMathType", "cubeMathType")
            old = c.product in ("Ascend910", "Ascend310P")
            full = old and a[grad].dtype == "float32" and mode in (0, 3)
            j.refuse(full, "cubeMathType of the product", "cubeMathType")
        j.stage()
        shape = a["self"].shape
        j.refuse(0 in shape[-3:], "no elements", "self")
        j.refuse(c.product != "Host" and shape[-3] > 65535, "channel limit", "self")
        if written:
            rules.shape_is(j, a, out, shape)
        windows = [rules.pooled(*axis, a[ceil]) for axis in zip(shape[-2:], kernels, strides, pads, strict=True)]
        j.refuse(min(windows) < 1, "no window", "self")
        j.stage()
        rules.shape_is(j, a, grad, (*shape[:-2], *windows))
        j.stage()
        rules.not_too_large(j, a, *written, fresh=None if written else shape)
        rules.memory(j, a, (grad,), ("self",), (out,))

    @staticmethod
    def draw(d):
        random = d.random
        size, kernel, stride, pad, ceil, pooled = d.pool()
        leading = d.leading()
        if random.random() < 0.02:  # the limit of the channels, and one more
            size = kernel = stride = pooled = (1, 1)
            leading, pad = (random.choice((65535, 65536)),), (0, 0)
        d.add("gradOutput", tensor(random, (*leading, *pooled), d.dtype, how=d.how))
        d.add("self", d.shape_of(tensor(random, (*leading, *size), d.dtype)))
        d.add("kernelSize", d.ints(kernel))
        d.add("stride", d.stride(kernel, stride, nullable=True))
        d.add("padding", d.ints(pad))
        d.add("ceilMode", Argument(ceil, ceil))
        include = random.random() < 0.5
        d.add("countIncludePad", Argument(include, include))
        divisor = random.choice((0, 0, 0, 2, -3, 255))
        divisor = divisor if d.two or divisor or random.random() < 0.05 else None
        d.add("divisorOverride", Argument(divisor, divisor))
        if d.two:
            old = d.drawn.product in ("Ascend910", "Ascend310P") and d.dtype == "float32"
            mode = random.choice((1, 2) if old and random.random() < 0.9 else (0, 1, 2, 3))
            d.add("cubeMathType", Argument(mode, mode))
        d.add("gradInput", d.out("gradInput", (*leading, *size), d.dtype))

    @staticmethod
    def expected(drawn, values, a):
        two = drawn.face == "two-phase"
        kernel = rules.pair(a["kernelSize" if two else "kernel_size"])
        stride, pad = rules.pair(a["stride"] or kernel), rules.pair(a["padding"])
        include = a["countIncludePad" if two else "count_include_pad"]
        divisor = a["divisorOverride" if two else "divisor_override"]
        return [avg_pool2d_backward_tiny(values, a["self"].shape, kernel, stride, pad, include, divisor)]
