"""Everything that ReplicationPad2dBackward refuses: status, message, and that nothing has been written."""

import itertools
import math
import re

import numpy as np
import pytest
from engine_helpers import (
    NUMPY_DTYPE,
    PRIVATE_FORMATS,
    PRODUCTS,
    Spec,
    build,
    label,
    refusal,
    sentinel_array,
    untouched,
)
from operators import TAKEN

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
LARGEST = 2**63 - 1
TENSORS = ("gradOutput", "self", "gradInput")
every_product = pytest.mark.parametrize("product", PRODUCTS)
every_dtype = pytest.mark.parametrize("dtype", list(NUMPY_DTYPE), ids=lambda dtype: dtype.name)


def specs(**changes):
    """The arguments of a legal call on every product, in their order, tensors as Spec."""
    arguments = {
        "gradOutput": Spec((2, 3, 9, 11)),
        "self": Spec((2, 3, 6, 8)),
        "padding": (1, 2, 0, 3),
        "gradInput": Spec((2, 3, 6, 8)),
    }
    assert set(changes) <= set(arguments)
    return {**arguments, **changes}


def padded(image, padding, **properties):
    """The changes that make it an image of this shape with these pads."""
    left, right, top, bottom = padding
    *leading, height, width = image
    grad = (*leading, height + top + bottom, width + left + right)
    tensors = dict(zip(TENSORS, (Spec(shape, **properties) for shape in (grad, image, image)), strict=True))
    return {**tensors, "padding": padding}


def phase1(product="Ascend910B", **changes):
    with a.soc(product):
        return a.aclnnReplicationPad2dBackwardGetWorkspaceSize(*build(specs(**changes)).values())


def refused(product, status, pattern, **changes):
    """Phase 1 with the changes refuses so, and the output stays as it was."""
    arguments = specs(**changes)
    memory, out = None, arguments["gradInput"]
    if isinstance(out, Spec) and out.bound:
        memory = sentinel_array(out.shape, NUMPY_DTYPE[out.dtype])
        arguments["gradInput"] = a.aclCreateTensor(out.shape, out.dtype, None, 0, out.acl_format, out.shape, memory)
    with refusal(status, pattern):
        phase1(product, **arguments)
    assert memory is None or untouched(memory)


def exactly(message):
    return f"^{re.escape(message)}$"


@every_product
def test_base_call_is_legal(product):
    size, executor = phase1(product)
    assert size >= 0
    assert isinstance(executor, a.aclOpExecutor)


# ---- null pointers and dtypes ----------------------------------------------------------------------------------------


@every_product
@pytest.mark.parametrize("name", list(specs()))
def test_null(product, name):
    refused(product, NULL, exactly(f"{name} = None: must not be null"), **{name: None})


@pytest.mark.parametrize("pair", list(itertools.combinations(specs(), 2)), ids=str)
def test_the_first_null_speaks(pair):
    refused("Host", NULL, rf"^{pair[0]} = None", **dict.fromkeys(pair))


@every_product
@every_dtype
def test_dtype_of_all_tensors(product, dtype):
    changes = {name: specs()[name].but(dtype=dtype) for name in TENSORS}
    taken = TAKEN["ReplicationPad2dBackward"][product]
    if dtype in taken:
        phase1(product, **changes)
    else:
        names = ", ".join(dtype.name for dtype in sorted(taken))
        message = f"gradOutput.dtype = {dtype.name}: must be one of {names} on {product}"
        refused(product, INVALID, exactly(message), **changes)


@every_product
@every_dtype
@pytest.mark.parametrize("name", TENSORS)
def test_dtype_of_one_tensor(product, name, dtype):
    if dtype != a.ACL_FLOAT:
        pattern = rf"^({name}\.dtype = {dtype.name}: must be one of|\w+\.dtype = ACL_\w+: must equal \w+\.dtype = ACL_)"
        refused(product, INVALID, pattern, **{name: specs()[name].but(dtype=dtype)})


# ---- formats and ranks -----------------------------------------------------------------------------------------------


@every_product
@pytest.mark.parametrize("fmt", list(a.aclFormat), ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("rank", [3, 4])
def test_format_of_all_tensors(product, rank, fmt):
    changes = {name: specs()[name].but(shape=specs()[name].shape[-rank:], format=fmt) for name in TENSORS}
    if fmt in PRIVATE_FORMATS or fmt == a.aclFormat.ACL_FORMAT_UNDEFINED:
        refused(product, INVALID, rf"^gradOutput\.format = {fmt.name}: must ", **changes)
    else:
        phase1(product, **changes)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("fmt", [a.ACL_FORMAT_ND, a.ACL_FORMAT_NHWC, *PRIVATE_FORMATS], ids=lambda fmt: fmt.name)
def test_formats_differ(name, fmt):
    pattern = rf"^({name}\.format = {fmt.name}: must |\w+\.format = ACL_FORMAT_NCHW: must equal gradOutput\.format)"
    refused("Host", INVALID, pattern, **{name: specs()[name].but(format=fmt)})


@every_product
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("shape", [(), (8,), (6, 8), (1, 2, 3, 6, 8), (3, 6, 8)], ids=str)
def test_rank(product, name, shape):
    pattern = r"^\w+\.rank = \d: must (be 3 \(C, H, W\) or 4 \(N, C, H, W\)|equal \w+\.rank = \d)$"
    refused(product, INVALID, pattern, **{name: Spec(shape, format=a.ACL_FORMAT_NCHW)})
    if len(shape) == 2:
        refused(product, INVALID, r"^\w+\.(format|rank) = .*: must ", **{name: np.zeros(shape, np.float32)})


@every_product
@pytest.mark.parametrize("rank", [2, 5])
def test_rank_of_all_tensors(product, rank):
    changes = {name: specs()[name].but(shape=(1, 2, 3, 6, 8)[-rank:], format=a.ACL_FORMAT_ND) for name in TENSORS}
    refused(product, INVALID, rf"^gradOutput\.rank = {rank}: must be 3 \(C, H, W\) or 4", **changes)


# ---- attributes ------------------------------------------------------------------------------------------------------


@every_product
@pytest.mark.parametrize("value", [(), (0,), (1, 2), (0, 0, 0), (1, 2, 0, 3, 0), (0,) * 20], ids=str)
def test_padding_length(product, value):
    message = exactly(f"len(padding) = {len(value)}: must be 4")
    refused(product, INVALID, message, padding=value)
    refused(product, INVALID, message, padding=a.aclCreateIntArray(value, len(value)))


@pytest.mark.parametrize("product", PRODUCTS[:3])
@pytest.mark.parametrize("value", [-1, -2, -(2**31), -(2**63)])
@pytest.mark.parametrize("side", range(4))
def test_negative_pads_are_for_host_alone(product, side, value):
    padding = [1, 1, 1, 1]
    padding[side] = value
    refused(product, INVALID, rf"^padding\[{side}\] = {value}: must be >= 0", padding=padding)
    if value > -3:
        refused(product, INVALID, rf"^padding\[{side}\] = {value}: must be >= 0", **padded((2, 3, 6, 8), padding))
        phase1("Host", **padded((2, 3, 6, 8), padding))


@pytest.mark.parametrize("product", PRODUCTS[:3])
@pytest.mark.parametrize("side", range(4))
def test_pads_are_smaller_than_the_image(product, side):
    size, axis = (8, "W") if side < 2 else (6, "H")
    for value, legal in ((size - 1, True), (size, False), (size + 1, False), (5 * size, False)):
        padding = [0, 0, 0, 0]
        padding[side] = value
        changes = padded((2, 3, 6, 8), padding)
        phase1("Host", **changes)
        if legal:
            phase1(product, **changes)
        else:
            message = f"padding[{side}] = {value}: must be < {axis} = {size} of self on {product}"
            refused(product, INVALID, exactly(message), **changes)
    padding[side] = LARGEST
    refused(product, INVALID, rf"^padding\[{side}\] = {LARGEST}: must be < ", padding=padding)


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize(
    ("padding", "legal"),
    [
        ((7, 7, 7, 7), True),
        ((8, 0, 0, 0), True),
        ((0, 11, 0, 0), True),
        ((11, 11, 0, 0), True),
        ((0, 0, 7, 0), True),
        ((8, 0, 1, 0), False),
        ((0, 8, 0, 1), False),
        ((0, 0, 8, 0), False),
        ((0, 0, 0, 8), False),
        ((7, 7, 8, 7), False),
        ((9, 9, 9, 9), False),
    ],
    ids=str,
)
def test_large_pads_in_bfloat16(padding, legal, rank):
    """Ascend910B takes bfloat16 with top == bottom == 0 or no pad above 7; every other dtype takes what fits."""
    changes = padded((2, 3, 12, 12)[-rank:], padding, dtype=a.ACL_BF16)
    phase1("Host", **changes)
    if legal:
        phase1("Ascend910B", **changes)
    else:
        side = next(side for side, pad in enumerate(padding) if pad > 7)
        refused("Ascend910B", INVALID, rf"^padding\[{side}\] = {padding[side]}: must be <= 7.*Ascend910B", **changes)
    for dtype in TAKEN["ReplicationPad2dBackward"]["Ascend910B"]:
        if dtype != a.ACL_BF16:
            phase1("Ascend910B", **padded((2, 3, 12, 12)[-rank:], padding, dtype=dtype))


# ---- shapes ----------------------------------------------------------------------------------------------------------


@every_product
@pytest.mark.parametrize(
    "shape",
    [(2, 3, 9, 10), (2, 3, 9, 12), (2, 3, 8, 11), (2, 4, 9, 11), (1, 3, 9, 11), (2, 3, 11, 9), (2, 3, 9, 0)],
    ids=str,
)
def test_grad_output_shape(product, shape):
    message = f"gradOutput.shape = {shape}: expected (2, 3, 9, 11), padded from self (2, 3, 6, 8)"
    refused(product, INVALID, exactly(message), gradOutput=Spec(shape))


@every_product
@pytest.mark.parametrize(
    "shape", [(2, 3, 6, 9), (2, 3, 7, 8), (2, 4, 6, 8), (1, 3, 6, 8), (2, 3, 8, 6), (2, 3, 0, 8)], ids=str
)
@pytest.mark.parametrize("name", ["self", "gradInput"])
def test_self_and_grad_input_differ(product, name, shape):
    pattern = rf"^(gradInput|self|gradOutput)\.shape = .*{re.escape(str(shape))}|^{name}\.shape = .*: .* must be > 0"
    refused(product, INVALID, pattern, **{name: Spec(shape)})


@every_product
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_zero_sizes(product, rank, axis):
    image = [2, 3, 6, 8]
    image[axis] = 0
    for padding in ((0, 0, 0, 0), (1, 2, 1, 0)):
        shape = tuple(image[-rank:])
        refused(product, INVALID, exactly(f"self.shape = {shape}: C, H and W must be > 0"), **padded(shape, padding))


@every_product
def test_empty_batch_is_legal(product):
    size, executor = phase1(product, **padded((0, 3, 6, 8), (1, 2, 0, 3)))
    assert size == 0
    a.aclnnReplicationPad2dBackward(None, 0, executor, None)


@pytest.mark.parametrize(
    ("padding", "axis"),
    [
        ((-8, 0, 0, 0), "W"),
        ((-3, -5, 0, 0), "W"),
        ((0, -9, 0, 0), "W"),
        ((0, 0, -6, 0), "H"),
        ((0, 0, 2, -8), "H"),
        ((-(2**63), 0, 0, 0), "W"),
        ((-(2**63), -(2**63), 0, 0), "W"),
        ((0, 0, -(2**63), -1), "H"),
        ((0, 0, -(2**63), LARGEST - 5), "H"),
    ],
    ids=str,
)
def test_host_needs_an_output(padding, axis):
    """Also where the sum of the pads wraps around in 64 bits."""
    assert {"W": 8 + sum(padding[:2]), "H": 6 + sum(padding[2:])}[axis] < 1
    for shape in ((2, 3, 6, 8), (2, 3, 6, 0), (2, 3, 0, 8)):
        side = "width" if axis == "W" else "height"
        pattern = rf"^padding = {re.escape(str(padding))}: must leave a padded {side} >= 1 "
        refused("Host", INVALID, pattern, padding=padding, gradOutput=Spec(shape))


@pytest.mark.parametrize("padding", [(LARGEST, LARGEST, 0, 0), (LARGEST, 0, 0, 0), (0, 0, LARGEST, LARGEST)], ids=str)
def test_host_sums_of_pads_do_not_wrap(padding):
    """(W + left + right) modulo 2**64 would be 6 or a negative number."""
    left, right, top, bottom = padding
    shape = [2, 3, 6 + top + bottom, 8 + left + right]
    wrapped = tuple((size + 2**63) % 2**64 - 2**63 for size in shape)
    for seen in ((2, 3, 6, 8), wrapped):
        if min(seen) > 0:
            refused("Host", INVALID, r"^(padding|self|gradOutput)\b.* = .*: ", padding=padding, gradOutput=Spec(seen))


def test_more_bytes_than_a_machine_addresses():
    for image, padding in (((2**20, 2**20, 6, 8), (1, 2, 0, 3)), ((1, 1, 6, 8), (2**60, 0, 0, 0))):
        changes = padded(image, padding, bound=False, strides=(0, 0, 0, 0), storage=(1,))
        refused("Host", INVALID, r"^(gradOutput|self|gradInput)\.shape = .*machine addresses", **changes)


# ---- the memory that the tensors lie in ------------------------------------------------------------------------------


@every_product
def test_memory(product):
    tensors = {name: specs()[name] for name in TENSORS}
    with refusal(INVALID, r"^gradInput\b.*(writ|read-only)"):
        phase1(product, gradInput=tensors["gradInput"].but(writable=False))
    phase1(product, **{name: tensors[name].but(writable=False) for name in ("gradOutput", "self")})
    for name, tensor in tensors.items():
        elements = math.prod(tensor.shape)
        phase1(product, **{name: tensor.but(storage=(elements,))})
        for wrong in (tensor.but(storage=(elements - 1,)), tensor.but(offset=1), tensor.but(offset=-1)):
            with refusal(INVALID, rf"^{name}\b.*stor"):
                phase1(product, **{name: wrong})
    for name in ("gradOutput", "gradInput"):
        with refusal(INVALID, rf"^{name}\b.*align"):
            phase1(product, **{name: tensors[name].but(aligned=False)})
    with refusal(INVALID, r"^gradInput\b.*overlap"):
        phase1(product, gradInput=tensors["gradInput"].but(strides=(144, 48, 0, 1)))


@pytest.mark.parametrize("dtype", [a.ACL_FLOAT, a.ACL_COMPLEX128], ids=lambda dtype: dtype.name)
def test_overlap_of_input_and_output(dtype):
    memory = sentinel_array((288 + 594,), NUMPY_DTYPE[dtype])

    def tensor(shape, offset):
        return a.aclCreateTensor(shape, dtype, None, offset, a.ACL_FORMAT_NCHW, memory.shape, memory)

    image = tensor((2, 3, 6, 8), 0)
    with refusal(INVALID, r"^(gradInput|gradOutput)\b.*overlap"):
        phase1(gradOutput=tensor((2, 3, 9, 11), 287), self=image, gradInput=image)
    assert untouched(memory)
    phase1(gradOutput=tensor((2, 3, 9, 11), 288), self=image, gradInput=image)


# ---- conversions and the order of checks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [1, True, 1.0, "1203", (1.0, 2, 0, 3), (True, 2, 0, 3), (None,) * 4, np.array([1.0] * 4), object()],
    ids=label,
)
def test_padding_of_another_type(value):
    with pytest.raises(TypeError, match="padding"):
        phase1(padding=value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_padding_beyond_int64(value):
    with pytest.raises(OverflowError, match="padding"):
        phase1(padding=(0, 0, 0, value))


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(specs(), 2)))
def test_conversions_go_in_argument_order(first, second):
    with pytest.raises(TypeError, match=first):
        phase1(**{first: object(), second: object()})


FAULTS = {
    "conversion": ({"padding": (1, 2, 0, "3")}, TypeError, "padding"),
    "null": ({"gradOutput": None}, NULL, r"^gradOutput = None"),
    "dtype": ({"self.dtype": a.ACL_INT32}, INVALID, r"^self\.dtype = "),
    "format": ({"gradInput.format": a.ACL_FORMAT_NHWC}, INVALID, r"^gradInput\.format = "),
    "length": ({"padding": (1, 2, 0)}, INVALID, r"^len\(padding\) = 3: must"),
    "value": ({"padding": (1, -(2**63), 0, 3)}, INVALID, r"^(padding(\[1\])?|self\.shape|gradOutput\.shape) = "),
    "shape": ({"gradInput.shape": (2, 3, 6, 9)}, INVALID, r"^gradInput\.shape = "),
    "writability": ({"gradInput.writable": False}, INVALID, "^gradInput.*(read-only|writ)"),
    "alignment": ({"gradInput.aligned": False}, INVALID, "^gradInput.*align"),
    "bounds": ({"self.storage": (5,)}, INVALID, "^self.*stor"),
    "overlap": ({"gradInput.strides": (144, 48, 0, 1)}, INVALID, "^gradInput.*overlap"),
}


def faulty(*faults):
    arguments = specs()
    for fault in faults:
        for place, value in FAULTS[fault][0].items():
            name, _, attribute = place.partition(".")
            if attribute and arguments[name] is not None:
                value = arguments[name].but(**{attribute: value})
            arguments[name] = value
    return arguments


@every_product
@pytest.mark.parametrize(
    "faults", [*((fault,) for fault in FAULTS), *itertools.combinations(FAULTS, 2), tuple(FAULTS)[1:]], ids=str
)
def test_the_first_fault_speaks(product, faults):
    _, status, pattern = FAULTS[faults[0]]
    with pytest.raises(TypeError, match=pattern) if status is TypeError else refusal(status, pattern):
        phase1(product, **faulty(*reversed(faults)))


# ---- the one-call function -------------------------------------------------------------------------------------------


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def one_call(out=None, **changes):
    arguments = {"grad_output": zeros(2, 3, 9, 11), "self": (2, 3, 6, 8), "padding": (1, 2, 0, 3), **changes}
    assert len(arguments) == 3
    return a.replication_pad2d_backward(*arguments.values(), out=out)


ONE_CALL_REFUSALS = [
    ({"grad_output": None}, NULL, "^grad_output = None: must not be null$"),
    ({"self": None}, NULL, "^self = None: must not be null$"),
    ({"padding": None}, NULL, "^padding = None: must not be null$"),
    ({"grad_output": zeros(2, 3, 9, 11, dtype="i8")}, INVALID, r"^grad_output\.dtype = int64: must be one of "),
    ({"self": zeros(2, 3, 6, 8, dtype="d")}, INVALID, r"^self\.dtype = float64: must equal grad_output\.dtype = "),
    ({"out": zeros(2, 3, 6, 8, dtype="F")}, INVALID, r"^out\.dtype = complex64: must equal \w+\.dtype = "),
    ({"grad_output": zeros(9, 11)}, INVALID, r"^(grad_output|self)\.(rank|format) = .*: must"),
    ({"self": (6, 8)}, INVALID, r"^self\.(rank|format) = .*: must"),
    ({"out": zeros(3, 6, 8)}, INVALID, r"^out\.(rank|format) = .*: must"),
    ({"padding": (1, 2)}, INVALID, r"^len\(padding\) = 2: must be 4$"),
    ({"padding": (1,)}, INVALID, r"^len\(padding\) = 1: must be 4$"),
    ({"padding": ()}, INVALID, r"^len\(padding\) = 0: must be 4$"),
    ({"padding": -4}, INVALID, r"^padding = .*-4.*: must leave a padded height >= 1 "),
    ({"padding": (-9, 1, 0, 0)}, INVALID, r"^padding = \(-9, 1, 0, 0\): must leave a padded width >= 1 "),
    ({"padding": (0, 0, -3, -3)}, INVALID, r"^padding = \(0, 0, -3, -3\): must leave a padded height >= 1 "),
    ({"padding": 1}, INVALID, r"^grad_output\.shape = \(2, 3, 9, 11\): expected \(2, 3, 8, 10\), padded from self \("),
    ({"self": (2, 4, 6, 8)}, INVALID, r"^grad_output\.shape = .*: expected \(2, 4, 9, 11\), padded from self \(2, 4, "),
    ({"self": (2, 0, 6, 8), "grad_output": zeros(2, 0, 9, 11)}, INVALID, r"^self\.shape = .*: C, H and W must be > 0$"),
    ({"self": (2, 3, -6, 8)}, INVALID, r"^self\b"),
    ({"out": zeros(2, 3, 8, 6)}, INVALID, r"^out\.shape = \(2, 3, 8, 6\): must be self\.shape = \(2, 3, 6, 8\)$"),
]


@pytest.mark.parametrize(("changes", "status", "pattern"), ONE_CALL_REFUSALS)
@pytest.mark.parametrize("product", ["Ascend910", "Host"])
def test_one_call_refuses(product, changes, status, pattern):
    with a.soc(product), refusal(status, pattern) as info:
        one_call(**changes)
    assert "gradOutput" not in str(info.value)
    assert "gradInput" not in str(info.value)
    assert a.aclGetRecentErrMsg() == str(info.value)
    assert not np.any(changes.get("out", 0))


def test_one_call_refuses_memory():
    out = zeros(2, 3, 6, 8)
    out.flags.writeable = False
    with refusal(INVALID, r"^out\b.*(writ|read-only)"):
        one_call(out=out)
    memory = sentinel_array((2, 3, 9, 11))
    with refusal(INVALID, r"^out\b.*overlap"):
        one_call(grad_output=memory, out=memory[..., 3:, ::-1][..., 1:9])
    assert untouched(memory)


@pytest.mark.parametrize("height", [2**31, 2**62, LARGEST])
def test_one_call_with_an_absurd_shape(height):
    grad = np.broadcast_to(np.float32(1), (2**10, 2**10, 2, 2))
    for shape in ((2**10, 2**10, height, 2), (2**10, 2**10, 2, height)):
        with pytest.raises((a.AclnnError, MemoryError), match=r"^(self|out|grad_output)\b"):
            one_call(grad_output=grad, self=shape, padding=(0, 2 - shape[3], 0, 2 - shape[2]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grad_output", [[[1.0]]]), ("grad_output", 1.0), ("self", 1.0), ("self", "2368"), ("self", (2, 3, 6.0, 8)),
        ("self", (2, 3, True, 8)), ("padding", 1.0), ("padding", True), ("padding", "1203"), ("padding", (1.0,) * 4),
        ("out", [[[1.0]]]), ("out", (2, 3, 6, 8)),
    ],
    ids=str,
)  # fmt: skip
def test_one_call_of_another_type(name, value):
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        one_call(**{name: value})


def test_one_call_beyond_int64():
    for value in (2**63, -(2**63) - 1, (0, 0, 0, 2**63)):
        with pytest.raises(OverflowError, match=r"\bpadding\b"):
            one_call(padding=value)


def test_one_call_keeps_to_the_host_rules():
    with a.soc("Ascend910"):
        result = one_call(grad_output=np.ones((1, 1, 4, 60)), self=(1, 1, 6, 1), padding=(50, 9, -1, -1))
    assert result.dtype == np.float64
    assert result.ravel().tolist() == [0, 60, 60, 60, 60, 0]
