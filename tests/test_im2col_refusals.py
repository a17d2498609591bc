"""Everything that Im2colBackward refuses: status, message, the order of the checks, and that nothing was written."""

import itertools
import re

import numpy as np
import pytest
from engine_helpers import NUMPY_DTYPE, PRIVATE_FORMATS, Spec, label, refusal, sentinel_array, sentinels, untouched
from operators import TAKEN

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
PRODUCTS = ("Ascend910", "Ascend910B", "Host")  # those that have the operator
TENSORS = ("gradOutput", "out")
ARRAYS = ("inputSize", "kernelSize", "dilation", "padding", "stride")
ORDER = ("gradOutput", *ARRAYS, "out")


@pytest.fixture(params=PRODUCTS)
def product(request):
    with a.soc(request.param):
        yield request.param


def arguments(**changes):
    """A legal call on every product that has the operator."""
    legal = {"gradOutput": Spec((2, 12, 9)), "inputSize": (4, 4), "kernelSize": (2, 2), "dilation": (1, 1)}
    legal |= {"padding": (0, 0), "stride": (1, 1), "out": Spec((2, 3, 4, 4))}
    assert set(changes) <= set(legal)
    return {**legal, **changes}


def phase1(**changes):
    built = arguments(**changes)
    built = {name: value.build() if isinstance(value, Spec) else value for name, value in built.items()}
    return a.aclnnIm2colBackwardGetWorkspaceSize(*(built[name] for name in ORDER))


def refused(status, *patterns, **changes):
    """Phase 1 refuses so, and `out`, if it is bound, stays as it was."""
    out = arguments(**changes)["out"]
    data = None
    if isinstance(out, Spec):
        data = sentinels(int(np.prod(out.shape)) * NUMPY_DTYPE[out.dtype].itemsize)
        storage = out.storage or out.shape
        changes["out"] = a.aclCreateTensor(
            out.shape, out.dtype, out.strides, out.offset, out.acl_format, storage, data
        )  # fmt: skip
    with refusal(status, *patterns):
        phase1(**changes)
    assert data is None or untouched(data)


def test_base_calls_are_legal(product):
    phase1()
    phase1(gradOutput=Spec((12, 9)), out=Spec((3, 4, 4)))
    phase1(gradOutput=Spec((0, 12, 9)), out=Spec((0, 3, 4, 4)))
    assert a.im2col_backward(np.zeros((12, 9), np.float32), (4, 4), 2).shape == (3, 4, 4)


@pytest.mark.parametrize("name", ORDER)
def test_null(product, name):
    refused(NULL, rf"^{name} = None: must not be null$", **{name: None})


@pytest.mark.parametrize("pair", list(itertools.combinations(ORDER, 2)), ids="-".join)
def test_nulls_speak_in_argument_order(pair):
    refused(NULL, rf"^{pair[0]} = None: must not be null$", **dict.fromkeys(pair))


def test_ascend310p_lacks_the_operator():
    with a.soc("Ascend310P"):
        refused(INVALID, r"^Ascend310P does not have \w+$")
        refused(INVALID, r"^Ascend310P does not have \w+$", gradOutput=Spec((1,), a.ACL_INT8), stride=(0,))
        refused(NULL, "^stride = None", stride=None)
        assert a.im2col_backward(np.zeros((12, 9)), (4, 4), 2).shape == (3, 4, 4)


# ---- dtypes, formats, ranks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("dtype", NUMPY_DTYPE, ids=lambda dtype: dtype.name)
def test_dtype(product, name, dtype):
    """The two are chosen independently of each other."""
    changes = {name: arguments()[name].but(dtype=dtype)}
    if dtype in TAKEN["AvgPool2dBackward"][product]:
        phase1(**changes)
    else:
        listed = "ACL_FLOAT, ACL_FLOAT16" + ", ACL_DOUBLE" * (product == "Host")
        listed += ", ACL_BF16" * (product != "Ascend910")
        refused(INVALID, rf"^{name}\.dtype = {dtype.name}: must be one of {listed} on {product}$", **changes)


def test_swapped_bytes(product):
    swapped = np.zeros((2, 12, 9), np.dtype(np.float32).newbyteorder())
    refused(INVALID, r"^gradOutput\.dtype = ACL_FLOAT in swapped byte order: must be", gradOutput=swapped)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("fmt", a.aclFormat, ids=lambda fmt: fmt.name)
def test_format(product, name, fmt):
    changes = {name: arguments()[name].but(format=fmt)}
    if fmt in PRIVATE_FORMATS:
        refused(INVALID, rf"^{name}\.format = {fmt.name}: must not be a private format$", **changes)
    else:
        phase1(**changes)


@pytest.mark.parametrize(
    ("grad_output", "out", "name"),
    [
        ((108,), (2, 3, 4, 4), "gradOutput"),
        ((2, 3, 4, 9), (2, 3, 4, 4), "gradOutput"),
        ((), (2, 3, 4, 4), "gradOutput"),
        ((2, 12, 9), (4, 4), "out"),
        ((2, 12, 9), (1, 2, 3, 4, 4), "out"),
        ((12, 9), (2, 3, 4, 4), "out|gradOutput"),
        ((2, 12, 9), (3, 4, 4), "out|gradOutput"),
    ],
    ids=str,
)
def test_rank(product, grad_output, out, name):
    refused(INVALID, rf"^({name})\.rank = \d: must ", gradOutput=Spec(grad_output), out=Spec(out))


# ---- attributes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("value", [(), (2,), (1, 1, 1), (1,) * 20], ids=str)
def test_attribute_length(product, name, value):
    message = rf"^len\({name}\) = {len(value)}: must be 2$"
    refused(INVALID, message, **{name: value})
    refused(INVALID, message, **{name: a.aclCreateIntArray(value, len(value))})


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("value", [-(2**63), -(2**62), -1, 0])
def test_attribute_value(product, name, axis, value):
    values = list(arguments()[name])
    values[axis] = value
    if name == "padding" and value == 0:
        phase1(padding=values)
    else:
        rule = ">= 0" if name == "padding" else "(>= 1|> 0)"
        refused(INVALID, rf"^{name}\[{axis}\] = {value}: must be {rule}$", **{name: values})


@pytest.mark.parametrize("name", ARRAYS)
def test_first_axis_speaks_first(name):
    refused(INVALID, rf"^{name}\[0\] = -3: ", **{name: (-3, -4)})


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("value", [2, True, 2.0, "22", (2.0, 2), (True, 2), (None, 2), np.array([2.0, 2.0])], ids=label)
def test_attribute_of_another_type(name, value):
    with pytest.raises(TypeError, match=name):
        phase1(**{name: value})


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_attribute_beyond_int64(name, value):
    with pytest.raises(OverflowError, match=name):
        phase1(**{name: (2, value)})


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("value", [[[1.0]], 1.0, "tensor", (2, 12, 9), object()], ids=label)
def test_tensor_of_another_type(name, value):
    with pytest.raises(TypeError, match=name):
        phase1(**{name: value})


# ---- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(4, 5), (5, 4), (2**62, 4), (1, 1)])
def test_input_size_is_that_of_out(product, size):
    refused(
        INVALID, rf"^(inputSize = {re.escape(str(size))}|inputSize\[\d\] = \d+|out\.shape = .*): must ", inputSize=size
    )


@pytest.mark.parametrize(
    "shape",
    [(2, 11, 9), (2, 13, 9), (2, 8, 9), (2, 16, 9), (1, 12, 9), (0, 12, 9), (2, 12, 8), (2, 12, 10), (2, 12, 0)],
)
def test_grad_output_shape(product, shape):
    refused(INVALID, r"^(gradOutput|out)\.shape = \(.*\): .*must ", gradOutput=Spec(shape))
    if shape[0] == 2:
        refused(INVALID, r"^(gradOutput|out)\.shape = \(.*\): .*must ", gradOutput=Spec(shape[1:]), out=Spec((3, 4, 4)))


@pytest.mark.parametrize("shape", [(2, 2, 4, 4), (2, 4, 4, 4), (1, 3, 4, 4), (0, 3, 4, 4), (2, 3, 4, 5), (2, 3, 5, 4)])
def test_out_shape(product, shape):
    refused(INVALID, r"^(gradOutput\.shape|out\.shape|inputSize.*) = .*: must ", out=Spec(shape))


@pytest.mark.parametrize("rank", [3, 4])
def test_zero_sizes(product, rank):
    for grad_output, out, size in (
        ((2, 0, 9), (2, 0, 4, 4), (4, 4)),
        ((2, 12, 0), (2, 3, 0, 4), (0, 4)),
        ((2, 12, 0), (2, 3, 4, 0), (4, 0)),
        ((2, 12, 0), (2, 3, 4, 4), (4, 4)),
        ((0, 0, 9), (0, 0, 4, 4), (4, 4)),
    ):
        changes = {"gradOutput": Spec(grad_output[4 - rank :]), "out": Spec(out[4 - rank :]), "inputSize": size}
        refused(INVALID, r"^(gradOutput\.shape|out\.shape|inputSize\[\d\]) = .*: .*must ", **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernelSize": (5, 1), "gradOutput": Spec((2, 15, 4))},
        {"kernelSize": (1, 5), "gradOutput": Spec((2, 15, 4))},
        {"dilation": (4, 1), "gradOutput": Spec((2, 12, 3))},
        {"dilation": (1, 5), "gradOutput": Spec((2, 12, 3))},
        {"dilation": (2**62, 1), "gradOutput": Spec((2, 12, 3))},
        {"dilation": (4, 1), "gradOutput": Spec((2, 12, 0))},
    ],
    ids=str,
)
def test_no_window_fits(product, changes):
    refused(INVALID, r"^(gradOutput|out|kernelSize|dilation|inputSize)\b.* = .*: ", **changes)


@pytest.mark.parametrize("value", [2**31, 2**40, 2**61, 2**62, 2**63 - 1])
def test_absurd_geometry_does_not_overflow(product, value):
    """None of these has 9 windows, nor can their sizes be told by wrapping around."""
    for name in ("inputSize", "kernelSize", "dilation", "padding", "stride"):
        for pair in ((value, value), (value, 1), (1, value)):
            refused(INVALID, r"^(gradOutput|out|inputSize|kernelSize|dilation|padding|stride)\b", **{name: pair})
    refused(INVALID, r"^\w+\b", kernelSize=(value, 1), padding=(value // 2, 0))
    refused(INVALID, r"^\w+\b", kernelSize=(3, 1), dilation=(value, 1), padding=(value, 0))
    refused(
        INVALID, r"^\w+\b", kernelSize=(value, value), dilation=(value, value), padding=(value, value), stride=(1, 1)
    )


@pytest.mark.parametrize("size", [2**31, 2**47, 2**62, 2**63 - 1])
def test_sizes_that_no_machine_has(size):
    for shape in ((1, 3, size, 4), (1, size, size, size)):
        with pytest.raises((a.AclnnError, OverflowError, MemoryError)):
            phase1(out=Spec(shape, bound=False), inputSize=shape[2:])
        with pytest.raises((a.AclnnError, MemoryError), match=r"input_size|grad_output|out"):
            a.im2col_backward(np.zeros((1, 12, 9), np.float32), shape[2:], 2)
    wide = np.broadcast_to(np.float32(0), (1, 2**46, 4))
    with refusal(INVALID, r"^(grad_output|out|input_size)\b.*"):  # 2**62 bytes
        a.im2col_backward(wide, (2**16, 2**16), (2**16 - 1, 2**16 - 1))


# ---- the memory that the tensors lie in ------------------------------------------------------------------------------


def test_memory(product):
    refused(INVALID, "^out is read-only: must be writable$", out=Spec((2, 3, 4, 4), writable=False).build())
    for name in TENSORS:
        spec = arguments()[name]
        refused(
            INVALID,
            rf"^{name} is misaligned: its address must be a multiple",
            **{name: spec.but(aligned=False).build()},
        )
        elements = int(np.prod(spec.shape))
        phase1(**{name: spec.but(storage=(elements,))})
        for wrong in (spec.but(storage=(elements - 1,)), spec.but(offset=1), spec.but(offset=-1)):
            refused(INVALID, rf"^{name}\.strides = .* leaves its storage", **{name: wrong.build()})
    refused(INVALID, r"^out\.strides = .* must not overlap$", out=Spec((2, 3, 4, 4), strides=(48, 16, 0, 1)))
    phase1(gradOutput=Spec((2, 12, 9), writable=False))
    phase1(gradOutput=Spec((2, 12, 9), strides=(0, 0, 0)))


def test_overlap_is_decided_element_by_element(product):
    memory = sentinel_array((2, 9, 4, 4))
    phase1(gradOutput=np.broadcast_to(memory[:, 3:4, 0, :1], (2, 12, 9)), out=memory[:, :3])
    refused(
        INVALID,
        "^out overlaps gradOutput: ",
        gradOutput=np.broadcast_to(memory[:, 2:3, 3, 3:], (2, 12, 9)),
        out=memory[:, :3],
    )
    assert untouched(memory)


# ---- the order of the checks -----------------------------------------------------------------------------------------

FAULTS = {
    "null": ({"stride": None}, NULL, r"^stride = None"),
    "dtype": ({"out": {"dtype": a.ACL_INT32}}, INVALID, r"^out\.dtype = "),
    "format": ({"gradOutput": {"format": a.aclFormat.ACL_FORMAT_NC1HWC0}}, INVALID, r"^gradOutput\.format = "),
    "length": ({"padding": (1, 2, 3)}, INVALID, r"^len\(padding\) = 3"),
    "value": ({"kernelSize": (0, 2)}, INVALID, r"^kernelSize\[0\] = 0"),
    "shape": ({"inputSize": (5, 4)}, INVALID, r"^(out|inputSize)\b"),
    "writability": ({"out": {"writable": False}}, INVALID, "read-only"),
    "alignment": ({"gradOutput": {"aligned": False}}, INVALID, "^gradOutput is misaligned"),
    "bounds": ({"gradOutput": {"storage": (5,)}}, INVALID, "^gradOutput.*storage"),
    "overlap": ({"out": {"strides": (48, 16, 1, 1)}}, INVALID, "^out.*overlap"),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations_with_replacement(FAULTS, 2)), ids=str)
def test_the_earlier_fault_speaks(product, first, second):
    both = arguments()
    for changes, _, _ in (FAULTS[second], FAULTS[first]):
        for name, value in changes.items():
            both[name] = both[name].but(**value) if isinstance(value, dict) else value
    with refusal(*FAULTS[first][1:]):
        phase1(**both)


# ---- the one-call function -------------------------------------------------------------------------------------------


def one_call(out=None, **changes):
    legal = {"grad_output": np.zeros((2, 12, 9), np.float32), "input_size": (4, 4), "kernel_size": 2, "dilation": 1}
    legal |= {"padding": 0, "stride": 1}
    assert set(changes) <= set(legal)
    return a.im2col_backward(*{**legal, **changes}.values(), out=out)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


ONE_CALL = {
    "null grad_output": ({"grad_output": None}, NULL, "^grad_output = None: must not be null$"),
    "null input_size": ({"input_size": None}, NULL, "^input_size = None: must not be null$"),
    "null kernel_size": ({"kernel_size": None}, NULL, "^kernel_size = None: must not be null$"),
    "null dilation": ({"dilation": None}, NULL, "^dilation = None: must not be null$"),
    "null padding": ({"padding": None}, NULL, "^padding = None: must not be null$"),
    "null stride": ({"stride": None}, NULL, "^stride = None: must not be null$"),
    "dtype": (
        {"grad_output": zeros(2, 12, 9, dtype="i4")},
        INVALID,
        r"^grad_output\.dtype = int32: must be one of",
    ),
    "dtype of out": ({"out": zeros(2, 3, 4, 4, dtype="F")}, INVALID, r"^out\.dtype = complex64: must be one of"),
    "rank": ({"grad_output": zeros(9)}, INVALID, r"^grad_output\.rank = 1: must "),
    "rank of out": ({"out": zeros(3, 4, 4)}, INVALID, r"^(grad_output|out)\.rank = \d: must "),
    "length": ({"kernel_size": (2, 2, 2)}, INVALID, r"^len\(kernel_size\) = 3: must be .*2$"),
    "empty": ({"input_size": ()}, INVALID, r"^len\(input_size\) = 0: must be .*2$"),
    "bare value": ({"kernel_size": 0}, INVALID, r"^kernel_size = 0: must be (>= 1|> 0)$"),
    "value": ({"stride": (1, 0)}, INVALID, r"^stride\[1\] = 0: must be (>= 1|> 0)$"),
    "dilation": ({"dilation": (-1, 1)}, INVALID, r"^dilation\[0\] = -1: must be (>= 1|> 0)$"),
    "padding": ({"padding": -1}, INVALID, r"^padding = -1: must be >= 0$"),
    "input_size": ({"input_size": (4, -4)}, INVALID, r"^input_size\[1\] = -4: must be (>= 1|> 0)$"),
    "rows": ({"grad_output": zeros(2, 11, 9)}, INVALID, r"^grad_output\.shape = \(2, 11, 9\): .*must "),
    "columns": ({"grad_output": zeros(2, 12, 8)}, INVALID, r"^grad_output\.shape = \(2, 12, 8\): .*must "),
    "no window": (
        {"kernel_size": 5, "grad_output": zeros(2, 75, 1)},
        INVALID,
        r"^(grad_output|input_size|out|kernel_size)\b",
    ),
    "shape of out": ({"out": zeros(2, 3, 4, 5)}, INVALID, r"^(out|input_size)\b.*: must "),
    "channels of out": ({"out": zeros(2, 2, 4, 4)}, INVALID, r"^(out|grad_output)\.shape = .*: must "),
    "zero rows": ({"grad_output": zeros(2, 0, 9)}, INVALID, r"^(grad_output|out)\.shape = "),
}


@pytest.mark.parametrize("case", ONE_CALL)
def test_one_call_refuses(case):
    changes, status, pattern = ONE_CALL[case]
    out = changes.get("out")
    if out is not None:
        out[...] = 7
    with refusal(status, pattern) as info:
        one_call(**changes)
    message = str(info.value)
    assert not re.search(r"gradOutput|inputSize|kernelSize", message), f"a two-phase name in {message!r}"
    assert a.aclGetRecentErrMsg() == message
    assert out is None or np.all(out == 7)


def test_one_call_refuses_memory():
    out = zeros(2, 3, 4, 4)
    out.flags.writeable = False
    with refusal(INVALID, "^out is read-only: must be writable$"):
        one_call(out=out)
    memory = sentinel_array((2, 12, 9))
    with refusal(INVALID, "^out overlaps grad_output: "):
        one_call(grad_output=memory, out=memory.reshape(-1)[:96].reshape(2, 3, 4, 4))
    assert untouched(memory)
    with refusal(INVALID, r"^out\.strides = .* must not overlap$"):
        one_call(out=np.lib.stride_tricks.as_strided(zeros(2, 3, 4, 4), strides=(192, 64, 0, 4)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grad_output", [[[1.0]]]), ("grad_output", (2, 12, 9)), ("input_size", 4.0), ("input_size", (4, 4.0)),
        ("kernel_size", True), ("kernel_size", "2"), ("dilation", 1.0), ("dilation", False), ("padding", "0"),
        ("padding", (0, None)), ("stride", 1.5), ("stride", {1: 1}), ("out", (2, 3, 4, 4)), ("out", 1.0),
    ],
    ids=str,
)  # fmt: skip
def test_one_call_of_another_type(name, value):
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        one_call(**{name: value})


@pytest.mark.parametrize("name", ["input_size", "kernel_size", "dilation", "padding", "stride"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_one_call_beyond_int64(name, value):
    with pytest.raises(OverflowError, match=rf"\b{name}\b"):
        one_call(**{name: value})


def test_a_result_that_cannot_be_counted_is_refused_before_other_arguments():
    """What says the result's shape speaks first, whatever else is null."""
    with pytest.raises(MemoryError, match=r"^input_size: has more bytes than a 64-bit integer counts"):
        a.im2col_backward(np.ones((1, 4, 1), np.float32), (2**40, 2**40), 2, None)
    with pytest.raises(a.AclnnError, match=r"^dilation = None"):
        a.im2col_backward(np.ones((1, 4, 1), np.float32), (2, 2), 2, None)
    with pytest.raises(a.AclnnError, match=r"^kernel_size = None"):
        a.im2col_backward(np.ones((1, 4, 1), np.float32), (2**40, 2**40), None)
