"""Random calls of what stands around the operators: aclCreateTensor, re-pointing an executor, the mask helpers."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
from operators import avg_pool2d_backward as avg_twin
from operators import max_pool
from operators.max_pool2d_with_mask import MaxPool2dWithMask, mask_shape

import aclnn_bw
from fuzz import calls, capsules, rules
from fuzz.rules import INVALID, NULLPTR, SIZES, Bad, Ints, Refusal

INNER, INNER_NULLPTR = 561000, 561103
_NAME_OF = {number: name for name, number in calls.NUMBERS.items()}


def create(random: Random) -> tuple[Any, list[Refusal]]:
    """aclCreateTensor with something wrong, most likely; the call, and what it must object to."""
    dims = tuple(random.randint(0, 4) for _ in range(random.randint(0, 5) if random.random() < 0.95 else 9))
    strides: Any = tuple(random.randint(-4, 4) for _ in dims) if random.random() < 0.5 else None
    storage: Any = (random.randint(0, 200),) if random.random() < 0.5 else None
    number, format, offset = (
        random.choice((*calls.NUMBERS.values(), -1)),
        random.choice(calls.FORMATS),
        random.randint(-3, 3),
    )
    arguments: dict[str, Any] = {
        "viewDims": dims, "dataType": number, "strides": strides, "offset": offset, "format": format,
        "storageDims": storage, "tensorData": None,
    }  # fmt: skip
    meanings: dict[str, Any] = dict(arguments)
    for name in ("viewDims", "strides", "storageDims"):
        meanings[name] = None if arguments[name] is None else Ints(arguments[name])
        if random.random() < 0.25:
            spoiled = calls.spoil_ints(random, arguments[name] or (1,), False)
            if name == "viewDims" and random.random() < 0.2:
                spoiled = random.choice((calls.Argument((-1, -1), Ints((-1, -1))), calls.Argument(None, None)))
            arguments[name], meanings[name] = spoiled.value, spoiled.meaning
    for name in ("dataType", "offset", "format"):
        if random.random() < 0.1:
            spoiled = calls.spoil_int(random, null=False)
            arguments[name], meanings[name] = spoiled.value, spoiled.meaning
    size = random.choice((0, 1, 7, 64, 3200, 12800))
    data: Any = random.choice(
        (None, bytearray(size), bytes(size), np.zeros(size, np.uint8), np.zeros(2 * size, np.uint8)[::2])
    )
    kind = random.random()
    if kind < 0.1:
        data = random.choice((0, "data", calls.Exporter, np.array([None]), memoryview(np.array([None, None]))))
    elif kind < 0.2:
        data = random.choice((capsules.Forged(), *_GAPPED, *capsules.INVALID, *capsules.NO_CAPSULE))
    arguments["tensorData"] = data
    return lambda: aclnn_bw.aclCreateTensor(**arguments), _judge_create(meanings, data)


def _judge_create(a: dict[str, Any], data: Any) -> list[Refusal]:
    for name in ("viewDims", "dataType", "strides", "offset", "format", "storageDims"):
        if name == "dataType" and a["viewDims"] is None:
            return [Refusal("null", NULLPTR, "viewDims")]
        if isinstance(a[name], Bad):
            return [Refusal(a[name].rule, a[name].error, name)]
    found = []
    if a["viewDims"] is None:
        return [Refusal("null", NULLPTR, "viewDims")]
    if a["dataType"] not in _NAME_OF:
        found.append(Refusal("unknown dtype", INVALID, "dataType"))
    if a["format"] not in calls.FORMATS:
        found.append(Refusal("unknown format", INVALID, "format"))
    if found:
        return found
    dims, strides, storage, size = a["viewDims"], a["strides"], a["storageDims"], SIZES[_NAME_OF[a["dataType"]]]
    if len(dims) > rules.MOST_RANK:
        return [Refusal("rank", INVALID, "viewDims")]
    if strides is not None and len(strides) != len(dims):
        found.append(Refusal("length", INVALID, "strides"))
    if any(dim < 0 for dim in dims) or math.prod(dims) not in rules.INT64:
        found.append(Refusal("viewDims", INVALID, "viewDims"))
    if not found and storage is not None and any(dim < 0 for dim in storage):
        found.append(Refusal("storageDims", INVALID, "storageDims"))
    elements = math.prod(dims if storage is None else storage)
    if not found and elements * size not in rules.INT64:
        found.append(Refusal("storageDims", INVALID, "storageDims"))
    if found or data is None:
        return found
    if isinstance(data, capsules.Forged):
        if data in capsules.INVALID:
            return [Refusal("a forged capsule", INVALID, "tensorData")]
        if data in _GAPPED:
            return [Refusal("gaps", INVALID, "tensorData")]
        if data in capsules.NO_CAPSULE:
            return [Refusal("no capsule", INVALID, "tensorData")]
        return [Refusal("too small", INVALID, "tensorData")] if elements * size > 24 else []
    if isinstance(data, memoryview) or not isinstance(data, bytes | bytearray | np.ndarray) or data_of_objects(data):
        return [Refusal("no buffer", TypeError, "tensorData")]
    if isinstance(data, np.ndarray) and not data.flags.c_contiguous:
        return [Refusal("gaps", INVALID, "tensorData")]
    if memoryview(data).nbytes < elements * size:
        return [Refusal("too small", INVALID, "tensorData")]
    return []


def data_of_objects(data: Any) -> bool:
    return isinstance(data, np.ndarray) and data.dtype.hasobject


# Good capsules, but for memory in one piece.
_GAPPED = (capsules.Forged(shape=(1, 2, 2)), capsules.ENDLESS)


def lists(random: Random) -> tuple[Any, list[Refusal], Any]:
    """aclCreateIntArray and the functions that end a handle."""
    values, refuse = [random.randint(-3, 3) for _ in range(random.randint(0, 4))], Refusal
    kind = random.choice((0, 1, 2, 3, 3, 3, 3, 4, 5, 6))
    if kind == 0:
        size = random.choice((None, 0, len(values), len(values) + 1, -1, 2**62))
        wrong = size is not None and not 0 <= size <= len(values)
        return (
            lambda: aclnn_bw.aclCreateIntArray(values, size), [refuse("length", INVALID, "size")] * wrong,
            lambda array: repr(array) == f"<aclIntArray {values[:size]}>",
        )  # fmt: skip
    if kind == 1:
        old = aclnn_bw.aclCreateIntArray(values)
        aclnn_bw.aclDestroyIntArray(old)
        return lambda: aclnn_bw.aclCreateIntArray(old), [refuse("destroyed", INVALID, "value")], None
    if kind == 2:
        return lambda: aclnn_bw.aclCreateIntArray(None), [refuse("null", NULLPTR, "value")], None
    if kind == 3:
        spoiled = calls.spoil_ints(random, values or (1,), False, null=False)
        wrong = isinstance(spoiled.meaning, Bad)
        bad = [refuse(spoiled.meaning.rule, spoiled.meaning.error, "value")] if wrong else []
        return lambda: aclnn_bw.aclCreateIntArray(spoiled.value), bad, None
    nothing: Any = random.choice((0, "x", [1], values, aclnn_bw.aclTensor, object()))
    if kind == 4:
        return lambda: aclnn_bw.aclDestroyIntArray(nothing), [refuse("no handle", TypeError, "array")], None
    if kind == 5:
        return lambda: aclnn_bw.aclDestroyTensor(nothing), [refuse("no handle", TypeError, "tensor")], None
    unmade = aclnn_bw.aclOpExecutor.__new__(aclnn_bw.aclOpExecutor)
    call: Any = unmade.explain if random.random() < 0.3 else lambda: aclnn_bw.aclDestroyAclOpExecutor(nothing)
    return call, [refuse("no handle", INNER, "executor")], None


def converters(random: Random) -> tuple[Any, list[Refusal], Any]:
    """mask_to_indices and indices_to_mask of a 4x4 plane in windows of 2x2, most often of something that is neither."""
    if random.random() < 0.5:
        call, objection, right = _from_mask(random)
    else:
        call, objection, right = _to_mask(random)
    return call, [] if objection is None else [objection], right


def _no_array(random: Random, good: Any) -> tuple[Any, Refusal]:
    """Something that is not this array, and why not."""
    shape, number, item = good.shape, calls.NUMBERS[good.dtype.name], good.dtype.itemsize
    data = np.empty(good.nbytes + 8, np.uint8)
    woe = random.choice(("unbound", "destroyed", "leaves", *("misaligned",) * 3, "forged", "null", "type"))
    refuse = Refusal
    if woe == "unbound":
        return aclnn_bw.aclCreateTensor(shape, number), refuse("unbound", NULLPTR, "")
    if woe == "destroyed":
        dead = aclnn_bw.aclCreateTensor(shape, number)
        aclnn_bw.aclDestroyTensor(dead)
        return dead, refuse("destroyed", INVALID, "")
    if woe == "leaves":
        rows, offset = random.choice(((None, 1), (None, -1), (None, 2**62), ((good.size, shape[2], 2**40), 0)))
        data[:] = 0
        return aclnn_bw.aclCreateTensor(shape, number, rows, offset, tensorData=data), refuse("leaves", INVALID, "")
    if woe == "misaligned" and item > 1:
        view = data[data.ctypes.data % item == 0 :][: good.nbytes]
        view[:] = good.reshape(-1).view(np.uint8)
        return aclnn_bw.aclCreateTensor(shape, number, tensorData=view), refuse("misaligned", INVALID, "")
    if woe in ("misaligned", "rank"):
        return capsules.ENDLESS, refuse("rank", INVALID, "")
    if woe == "forged":
        return random.choice(capsules.INVALID), refuse("a forged capsule", INVALID, "")
    if woe == "null":
        return None, refuse("null", NULLPTR, "")
    return random.choice((3, "x", [1], object())), refuse("no tensor", TypeError, "")


def _layout(random: Random) -> tuple[Any, Refusal | None]:
    """A layout of the mask, most likely one that there is."""
    value = random.choice(("bitmask", "argmax") * 4 + ("other", None))
    if value is None:
        return value, Refusal("no layout", TypeError, "mask_layout")
    return value, Refusal("unknown layout", INVALID, "mask_layout") if value == "other" else None


def _from_mask(random: Random) -> tuple[Any, Refusal | None, Any]:
    mask: Any = np.zeros((1, 4, 64), np.int8)
    layout, objection = _layout(random)
    woe = random.choice(("none", "none", "none", "dtype", "shape", "array", "array", "array"))
    if woe == "array":
        mask, wrong = _no_array(random, mask)
        objection = objection or wrong._replace(argument="mask")
    elif woe == "dtype":
        mask, objection = mask.view(np.uint8), objection or Refusal("dtype", INVALID, "mask")
    elif woe == "shape":
        mask = random.choice((mask[0], mask[:, :3], mask[:, :, :32], mask[None]))
        objection = objection or Refusal("shape", INVALID, "mask")
    return (
        lambda: aclnn_bw.mask_to_indices(mask, (1, 4, 4), 2, mask_layout=layout), objection,
        lambda indices: indices.shape == (1, 2, 2) and bool((indices == (-1 if layout == "bitmask" else 0)).all()),
    )  # fmt: skip


def _to_mask(random: Random) -> tuple[Any, Refusal | None, Any]:
    """Of each window a position or none; each is told back by the mask."""
    top_left = np.array([[[0, 2], [8, 10]]])
    within = np.array([random.choice((0, 1, 4, 5)) for _ in range(4)]).reshape(top_left.shape)
    indices: Any = (top_left + within).astype(random.choice((np.int8, np.int32, np.int64, np.uint8, np.uint64)))
    layout, objection = _layout(random)
    woe = random.choice(("none", "none", "no maximum", "outside", "outside", "dtype", "shape", "array", "array"))
    outside = Refusal("index outside its window", INVALID, "indices")
    place = (0, random.randrange(2), random.randrange(2))
    if woe == "array":
        indices, wrong = _no_array(random, indices.astype(random.choice((np.int32, np.int64))))
        objection = objection or wrong._replace(argument="indices")
    elif woe == "no maximum":
        indices = indices.astype(np.int64)
        indices[place] = -1
        objection = objection or (outside if layout == "argmax" else None)
    elif woe == "outside":
        indices = indices.astype(np.int64)
        own = top_left[place] + np.array((0, 1, 4, 5))
        indices[place] = random.choice(sorted({*range(16), -2, 16, 2**31, 2**32 + 5, 2**63 - 1, -(2**63)} - {*own}))
        objection = objection or outside
    elif woe == "dtype":
        indices = indices.astype(random.choice((np.float32, np.bool_, np.complex128)))
        objection = objection or Refusal("dtype", INVALID, "indices")
    elif woe == "shape":
        indices = random.choice((indices[0], indices[:, :1], indices[:, :, :1], indices[None]))
        objection = objection or Refusal("shape", INVALID, "indices")
    return (
        lambda: aclnn_bw.indices_to_mask(indices, (1, 4, 4), 2, mask_layout=layout), objection,
        lambda mask: np.array_equal(aclnn_bw.mask_to_indices(mask, (1, 4, 4), 2, mask_layout=layout), indices),
    )  # fmt: skip


class _Destroyer(calls.Exporter):
    """An array that ends an executor while it is read."""

    def __init__(self, executor: Any, array: Any) -> None:
        super().__init__(array)
        self.executor = executor

    def __dlpack__(self, **keywords: Any) -> Any:
        aclnn_bw.aclDestroyAclOpExecutor(self.executor)
        return super().__dlpack__(**keywords)


def address(random: Random) -> tuple[Any, list[Refusal], Any]:
    """Re-point a tensor of a repeatable executor; the call, what it must object to, and a check of the run after it."""
    grad = np.array([random.randint(-4, 4) for _ in range(4)], np.float32).reshape(1, 2, 2)
    x, out = np.zeros((1, 4, 4), np.float32), np.full((1, 4, 4), 7, np.float32)
    with aclnn_bw.soc("Host"):
        size, executor = aclnn_bw.aclnnAvgPool2dBackwardGetWorkspaceSize(
            grad, x, [2, 2], None, [0, 0], False, True, 1, 0, out
        )
    repeatable = random.random() < 0.9
    if repeatable:
        aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
    name = random.choice(("aclSetInputTensorAddr", "aclSetOutputTensorAddr", "aclSetTensorAddr"))
    tensors = {"aclSetInputTensorAddr": (0, 1), "aclSetOutputTensorAddr": (2,), "aclSetTensorAddr": (0, 1, 2)}[name]
    index: Any = random.choice((0, 0, 0, 1, 2, 3, -1, 2**40, 2**63, None, 1.5))
    position = tensors[index] if type(index) is int and 0 <= index < len(tensors) else None
    old = (grad, x, out)[position] if position is not None else grad
    new = (np.arange(old.size, dtype=np.float32) % 5 - 2).reshape(old.shape)
    objections: list[Refusal] = []
    data, woe = _data(random, new, old, position)
    given = random.choice((None, None, old, new, "tensor"))
    target: Any = random.choice((executor,) * 8 + (None, "executor"))
    if index is None or isinstance(index, float):
        objections = [Refusal("no int", TypeError, "index")]
    elif index >= 2**63:
        objections = [Refusal("beyond 64 bits", OverflowError, "index")]
    elif target is None:
        objections = [Refusal("null", INNER_NULLPTR, "executor")]
    elif target is not executor or not repeatable:
        objections = [Refusal("no repeatable executor", INNER, "executor")]
    elif position is None:
        objections = [Refusal("no such tensor", INVALID, "index")]
    elif given is not None and given is not old:
        objections = [Refusal("another tensor", INVALID, "tensor")]
    elif random.random() < 0.05:
        data, objections = _Destroyer(executor, new), [Refusal("destroyed meanwhile", INNER, "executor")]
    elif woe is not None:
        objections = [woe]
    before = out.copy()

    def after() -> bool:
        """Run: into the new output from the new input, or as before if nothing has changed."""
        if isinstance(data, _Destroyer):
            return "destroyed" in repr(executor)
        moved = not objections
        result = data if moved and position == 2 else out
        source = grad
        if moved and position == 0:
            source = (
                np.frombuffer(data, np.float32)[: new.size].reshape(new.shape)
                if not isinstance(data, np.ndarray)
                else data
            )
        aclnn_bw.aclnnAvgPool2dBackward(bytearray(size) if size else None, size, executor)
        wanted = avg_twin.avg_pool2d_backward_quick(source, (1, 4, 4), 2, None, 0, False, True, 1)
        shown = (
            np.frombuffer(result, np.float32)[:16].reshape(1, 4, 4) if not isinstance(result, np.ndarray) else result
        )
        kept = result is out or bool(np.array_equal(out, before))
        return kept and bool(np.array_equal(shown.reshape(1, 4, 4), wanted))

    return lambda: getattr(aclnn_bw, name)(target, index, given, data), objections, after


def _data(random: Random, new: Any, old: Any, position: int | None) -> tuple[Any, Refusal | None]:
    """Memory to point at, and what is wrong with it."""
    woe = random.choice(
        ("array", "array", "buffer", "null", "type", "small", "dtype", "shape", "misaligned", "same")
        + ("swapped",)
        + ("read-only",) * (5 if position == 2 else 1)
    )
    argument = ("gradOutput", "self", "gradInput")[position or 0]
    if woe == "buffer":
        return bytearray(new.tobytes()), None
    if woe == "null":
        return None, Refusal("null", INNER_NULLPTR, "data")
    if woe == "type":
        return random.choice((1, "data", [1.0], object(), calls.Exporter)), Refusal("no memory", TypeError, "data")
    if woe == "small":
        return bytearray(new.nbytes - 1), Refusal("too small", INVALID, "data")
    if woe == "read-only":
        return new.tobytes(), Refusal("read-only", INVALID, argument) if position == 2 else None
    if woe == "dtype":
        return new.astype(np.float64), Refusal("dtype", INVALID, "data")
    if woe == "swapped":
        swapped = new.astype(new.dtype.newbyteorder())
        return swapped, Refusal("foreign byte order", INVALID, "data")
    if woe == "shape":
        return new[:, 1:], Refusal("too small", INVALID, "data")
    if woe == "misaligned":
        raw = np.zeros(new.nbytes + 1, np.uint8)[1:]
        return raw, Refusal("misaligned", INVALID, argument)
    return (old, None) if woe == "same" else (new, None)


def masks(random: Random) -> tuple[Any, list[Refusal], Any]:
    """A mask helper with a hostile geometry; the call, what it must object to, and a check of its result."""
    drawing = calls.Drawing(random, MaxPool2dWithMask, "one-call")
    size, kernel, stride, pad, ceil, _ = drawing.pool()
    shape = (*drawing.leading(), *size)
    geometry: list[calls.Argument] = [
        calls.Argument(shape, Ints(shape)), drawing.ints(kernel), drawing.ints(stride), drawing.ints(pad),
        drawing.ints((1, 1)), calls.Argument(ceil, ceil),
    ]  # fmt: skip
    names = ("input_shape", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    if random.random() < 0.8:
        at = random.randrange(6)
        geometry[at] = calls.spoil_bool(random) if at == 5 else calls.spoil_ints(random, geometry[at].meaning, at > 0)
        if random.random() < 0.4:
            at = 0
            strange = random.choice((calls.strange(random, shape), (1, 1, 2**62, 2**62), (2**40, 2**20, 9, 9), None))
            geometry[0] = calls.Argument(strange, None if strange is None else Ints(strange))
            if random.random() < 0.1:  # a plane that no machine addresses, with few windows
                huge = (1, 1, 2, 2**47)
                geometry[0] = calls.Argument(huge, Ints(huge))
                geometry[1:4] = (drawing.ints(pair) for pair in ((2, 1), (1, 2**40), (0, 0)))
        elif at > 0 and random.random() < 0.2:
            geometry[3] = drawing.ints((0, -1))
        elif at > 0 and random.random() < 0.2:  # more positions than 64 bits count
            geometry[1], geometry[3] = drawing.ints((2**32, 2**32)), drawing.ints((2**31, 2**31))
        if at == 0 and not isinstance(geometry[0].value, tuple | list | None):
            geometry[0].meaning = Bad(TypeError, "no shape")
    arguments = {name: argument.meaning for name, argument in zip(names, geometry, strict=True)}
    objections = _judge_geometry(arguments)
    values = [argument.value for argument in geometry]

    def right(result: Any) -> bool:
        a = arguments
        pair = [(v[0], v[-1]) if v else None for v in (a["kernel_size"], a["stride"], a["padding"])]
        return bool(result == max_pool.mask_shape(tuple(a["input_shape"]), *pair, a["ceil_mode"]))

    return lambda: aclnn_bw.mask_shape(*values), objections, right


def _judge_geometry(a: dict[str, Any]) -> list[Refusal]:
    """The forward's rules, for a shape alone."""
    shape = a["input_shape"]
    view: Any = shape
    if isinstance(shape, Ints):
        if any(size < 0 for size in shape[: rules.MOST_RANK]):
            view = Bad(INVALID, "negative size")
        else:
            strides = tuple(0 for _ in shape)
            view = rules.View("float32", tuple(shape), strides, 0, 1, calls.format_of(len(shape)), 0)
    meanings = {"self": view, **{name: value for name, value in a.items() if name != "input_shape"}}
    found = rules.Call(mask_shape, "one-call", "Host", "bitmask", meanings).judge()
    return [Refusal(o.rule, o.error, "input_shape" if o.argument == "self" else o.argument) for o in found]
