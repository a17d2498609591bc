"""Everything that UpsampleNearestExact1dBackward refuses: status, message, and that nothing has been written."""

import itertools
import math
import re

import numpy as np
import pytest
from engine_helpers import NUMPY_DTYPE, PRIVATE_FORMATS, Spec, build, label, refusal, sentinel_array, untouched
from operators import TAKEN

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
LARGEST = 2**63 - 1
every_dtype = pytest.mark.parametrize("dtype", list(NUMPY_DTYPE), ids=lambda dtype: dtype.name)
on_910b_and_host = pytest.mark.parametrize("product", ["Ascend910B", "Host"])


def specs(**changes):
    """The arguments of a legal call on Ascend910B and Host, in their order, tensors as Spec."""
    arguments = {
        "gradOutput": Spec((2, 3, 8)),
        "outputSize": (8,),
        "inputSize": (2, 3, 4),
        "scales": 0.0,
        "out": Spec((2, 3, 4)),
    }
    assert set(changes) <= set(arguments)
    return {**arguments, **changes}


def lengths(before, after, **changes):
    """The changes that make it rows of `before` elements, resized to `after`."""
    return {
        "gradOutput": Spec((2, 3, after)),
        "outputSize": (after,),
        "inputSize": (2, 3, before),
        "out": Spec((2, 3, before)),
        **changes,
    }


def phase1(product="Ascend910B", **changes):
    with a.soc(product):
        return a.aclnnUpsampleNearestExact1dBackwardGetWorkspaceSize(*build(specs(**changes)).values())


def refused(product, status, pattern, **changes):
    """Phase 1 with the changes refuses so, and the output stays as it was."""
    arguments = specs(**changes)
    memory = None
    out = arguments["out"]
    if isinstance(out, Spec) and out.bound:
        memory = sentinel_array(out.shape, NUMPY_DTYPE[out.dtype])
        arguments["out"] = a.aclCreateTensor(out.shape, out.dtype, None, 0, out.acl_format, out.shape, memory)
    with refusal(status, pattern):
        phase1(product, **arguments)
    assert memory is None or untouched(memory)


def exactly(message):
    return f"^{re.escape(message)}$"


def test_base_call_is_legal():
    for product in ("Ascend910B", "Host"):
        size, executor = phase1(product)
        assert size >= 0
        assert isinstance(executor, a.aclOpExecutor)


# ---- null pointers, products, dtypes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("product", ["Ascend910", "Ascend310P", "Ascend910B", "Host"])
@pytest.mark.parametrize("name", ["gradOutput", "outputSize", "inputSize", "out"])
def test_null(product, name):
    refused(product, NULL, exactly(f"{name} = None: must not be null"), **{name: None})


@pytest.mark.parametrize(
    "pair", list(itertools.combinations(["gradOutput", "outputSize", "inputSize", "out"], 2)), ids=str
)
def test_the_first_null_speaks(pair):
    refused("Host", NULL, rf"^{pair[0]} = None", **dict.fromkeys(pair))


def test_empty_array_is_not_null():
    refused("Host", INVALID, exactly("len(outputSize) = 0: must be 1"), outputSize=())


@pytest.mark.parametrize("product", ["Ascend910", "Ascend310P"])
@pytest.mark.parametrize("dtype", [a.ACL_FLOAT, a.ACL_FLOAT16, a.ACL_INT32], ids=lambda dtype: dtype.name)
def test_products_without_the_operator(product, dtype):
    changes = {"gradOutput": Spec((2, 3, 8), dtype), "out": Spec((2, 3, 4), dtype)}
    refused(product, INVALID, exactly(f"{product} does not have UpsampleNearestExact1dBackward"), **changes)
    refused(product, INVALID, exactly(f"{product} does not have UpsampleNearestExact1dBackward"), outputSize=(9,))


@on_910b_and_host
@every_dtype
def test_dtype_of_both_tensors(product, dtype):
    changes = {"gradOutput": Spec((2, 3, 8), dtype), "out": Spec((2, 3, 4), dtype)}
    if dtype in TAKEN["UpsampleNearestExact1dBackward"][product]:
        phase1(product, **changes)
    else:
        double = "ACL_DOUBLE, " if product == "Host" else ""
        names = f"ACL_FLOAT, ACL_FLOAT16, {double}ACL_BF16"
        message = f"gradOutput.dtype = {dtype.name}: must be one of {names} on {product}"
        refused(product, INVALID, exactly(message), **changes)


@on_910b_and_host
@every_dtype
def test_dtype_of_one_tensor(product, dtype):
    if dtype != a.ACL_FLOAT:
        taken = dtype in TAKEN["UpsampleNearestExact1dBackward"][product]
        rule = rf"must equal gradOutput\.dtype = {dtype.name}$" if taken else "must be one of "
        name = r"out\.dtype = ACL_FLOAT" if taken else rf"gradOutput\.dtype = {dtype.name}"
        refused(product, INVALID, f"^{name}: {rule}", gradOutput=Spec((2, 3, 8), dtype))
        rule = r"must equal gradOutput\.dtype = ACL_FLOAT$" if taken else "must be one of "
        refused(product, INVALID, rf"^out\.dtype = {dtype.name}: {rule}", out=Spec((2, 3, 4), dtype))


def test_swapped_byte_order():
    swapped = np.zeros((2, 3, 8), np.dtype(np.float32).newbyteorder())
    refused("Host", INVALID, r"^gradOutput\.dtype = ACL_FLOAT.*byte order", gradOutput=swapped)


# ---- formats and ranks -----------------------------------------------------------------------------------------------


@on_910b_and_host
@pytest.mark.parametrize("fmt", list(a.aclFormat), ids=lambda fmt: fmt.name)
def test_format_of_both_tensors(product, fmt):
    changes = {"gradOutput": Spec((2, 3, 8), format=fmt), "out": Spec((2, 3, 4), format=fmt)}
    if fmt in (a.ACL_FORMAT_NCL, a.ACL_FORMAT_ND):
        phase1(product, **changes)
    else:
        pattern = rf"^gradOutput\.format = {fmt.name}: must be ACL_FORMAT_NCL or ACL_FORMAT_ND$"
        refused(product, INVALID, pattern, **changes)


@pytest.mark.parametrize("fmt", [a.ACL_FORMAT_ND, a.ACL_FORMAT_NCHW, *PRIVATE_FORMATS], ids=lambda fmt: fmt.name)
def test_formats_differ(fmt):
    refused("Host", INVALID, rf"^(gradOutput|out)\.format = .*{fmt.name}", gradOutput=Spec((2, 3, 8), format=fmt))
    refused("Host", INVALID, rf"^out\.format = {fmt.name}: must ", out=Spec((2, 3, 4), format=fmt))


@on_910b_and_host
@pytest.mark.parametrize("shape", [(), (8,), (6, 8), (1, 2, 3, 8)], ids=str)
def test_rank(product, shape):
    for name in ("gradOutput", "out"):
        tensor = Spec(shape, format=a.ACL_FORMAT_NCL)
        refused(product, INVALID, rf"^{name}\.rank = {len(shape)}: must be 3\b", **{name: tensor})
        bare = np.zeros(shape, np.float32)
        refused(product, INVALID, rf"^({name}\.(rank|format)|out\.format) = .*: must ", **{name: bare})


# ---- attributes ------------------------------------------------------------------------------------------------------


@on_910b_and_host
@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("outputSize", (), 1),
        ("outputSize", (8, 8), 1),
        ("outputSize", (2, 3, 8), 1),
        ("inputSize", (), 3),
        ("inputSize", (4,), 3),
        ("inputSize", (3, 4), 3),
        ("inputSize", (2, 3, 4, 4), 3),
    ],
    ids=str,
)
def test_attribute_length(product, name, value, rule):
    message = exactly(f"len({name}) = {len(value)}: must be {rule}")
    refused(product, INVALID, message, **{name: value})
    refused(product, INVALID, message, **{name: a.aclCreateIntArray(value, len(value))})


@on_910b_and_host
@pytest.mark.parametrize("value", [0, -1, -(2**63), 7, 9, 2**32 + 8, LARGEST])
def test_output_size_is_the_length_of_grad_output(product, value):
    message = f"outputSize[0] = {value}: must be > 0"
    if value > 0:
        message = f"gradOutput.shape = (2, 3, 8): must be inputSize[:2] + outputSize = (2, 3, {value})"
    refused(product, INVALID, exactly(message), outputSize=(value,))


@on_910b_and_host
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("value", [0, -1, -(2**63), 5, 2**32, LARGEST])
def test_input_size_is_the_shape_of_out(product, axis, value):
    values = [2, 3, 4]
    values[axis] = value
    message = f"inputSize[{axis}] = {value}: must be > 0"
    if value > 0:
        message = f"out.shape = (2, 3, 4): must be inputSize = {tuple(values)}"
    refused(product, INVALID, exactly(message), inputSize=values)


@on_910b_and_host
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, -5e-324, -1e300])
def test_scales_that_no_product_takes(product, value):
    with refusal(INVALID, r"^scales = \S+: must be finite and >= 0$") as info:
        phase1(product, scales=value)
    assert repr(float(re.match(r"scales = (\S+):", str(info.value))[1])) == repr(value)  # a NaN too


@pytest.mark.parametrize("value", [50.0, 0.02, 1 / 50, 1.0, 0.0, -0.0, 49.99999, 0.020001])
def test_scales_that_all_take(value):
    for product in ("Ascend910B", "Host"):
        phase1(product, scales=value)


@pytest.mark.parametrize(
    "value", [math.nextafter(50, 51), 51.0, 1e300, math.nextafter(0.02, 0), 0.0199, 1e-40, 5e-324], ids=str
)
def test_scales_that_only_host_takes(value):
    phase1("Host", scales=value)
    pattern = r"^scales = (\d\S+): must be 0 or in \[1/50, 50\] on Ascend910B;"
    with refusal(INVALID, pattern) as info:
        phase1("Ascend910B", scales=value)
    assert float(re.match(pattern, str(info.value))[1]) == value


@pytest.mark.parametrize(("before", "after"), [(1, 50), (50, 1), (3, 150), (150, 3), (1, 1), (49, 1)])
def test_lengths_that_all_take(before, after):
    for product in ("Ascend910B", "Host"):
        phase1(product, **lengths(before, after))


@pytest.mark.parametrize(("before", "after"), [(1, 51), (51, 1), (3, 151), (151, 3), (1, 2**40), (2**40, 1)])
def test_lengths_that_only_host_takes(before, after):
    changes = lengths(before, after)
    for name in ("gradOutput", "out"):
        changes[name] = changes[name].but(bound=False)
    if before * after < 10**6:
        phase1("Host", **changes)
    long, short = f"inputSize[2] = {before}", f"outputSize[0] = {after}"
    if after > before:
        long, short = short, long
    message = exactly(f"{long}: must be <= 50 times {short} on Ascend910B")
    refused("Ascend910B", INVALID, message, **changes)
    refused("Ascend910B", INVALID, message, **changes, scales=1.0)


# ---- shapes ----------------------------------------------------------------------------------------------------------


@on_910b_and_host
@pytest.mark.parametrize(
    "shape", [(2, 3, 7), (2, 3, 9), (2, 4, 8), (1, 3, 8), (3, 2, 8), (2, 3, 0), (0, 3, 8)], ids=str
)
def test_grad_output_shape(product, shape):
    message = f"gradOutput.shape = {shape}: must be inputSize[:2] + outputSize = (2, 3, 8)"
    refused(product, INVALID, exactly(message), gradOutput=Spec(shape))


@on_910b_and_host
@pytest.mark.parametrize(
    "shape", [(2, 3, 5), (2, 3, 3), (2, 4, 4), (1, 3, 4), (3, 2, 4), (2, 3, 0), (0, 3, 4)], ids=str
)
def test_out_shape(product, shape):
    message = f"out.shape = {shape}: must be inputSize = (2, 3, 4)"
    refused(product, INVALID, exactly(message), out=Spec(shape))


@on_910b_and_host
@pytest.mark.parametrize(("before", "after"), [((2, 3, 4), (3, 3, 8)), ((2, 3, 4), (2, 6, 8)), ((1, 6, 4), (2, 3, 8))])
def test_n_and_c_of_both_tensors(product, before, after):
    changes = {"gradOutput": Spec(after), "outputSize": after[2:], "inputSize": before, "out": Spec(before)}
    refused(product, INVALID, rf"^gradOutput\.shape = {re.escape(str(after))}: must be .* = ", **changes)


@on_910b_and_host
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_zero_sizes(product, axis):
    """An empty batch too is refused here."""
    before, after = [2, 3, 4], [2, 3, 8]
    before[axis] = after[axis] = 0
    tensors = {"gradOutput": Spec(tuple(after)), "out": Spec(tuple(before))}
    message = exactly("outputSize[0] = 0: must be > 0" if axis == 2 else f"inputSize[{axis}] = 0: must be > 0")
    refused(product, INVALID, message, outputSize=after[2:], inputSize=before, **tensors)


def test_more_bytes_than_a_machine_addresses():
    for before, after in (((2**20, 2**20, 4), (2**20, 2**20, 2**9)), ((1, 1, 2**49), (1, 1, 2**48))):
        tensors = [Spec(shape, bound=False) for shape in (after, before)]
        changes = {"gradOutput": tensors[0], "outputSize": after[2:], "inputSize": before, "out": tensors[1]}
        refused("Host", INVALID, r"^(gradOutput|out)\.shape = .*machine addresses", **changes)


# ---- the memory that the tensors lie in ------------------------------------------------------------------------------


@on_910b_and_host
def test_memory(product):
    with refusal(INVALID, r"^out\b.*(writ|read-only)"):
        phase1(product, out=Spec((2, 3, 4), writable=False))
    phase1(product, gradOutput=Spec((2, 3, 8), writable=False))
    for name in ("gradOutput", "out"):
        tensor = specs()[name]
        elements = math.prod(tensor.shape)
        with refusal(INVALID, rf"^{name}\b.*align"):
            phase1(product, **{name: tensor.but(aligned=False)})
        phase1(product, **{name: tensor.but(storage=(elements,))})
        for wrong in (tensor.but(storage=(elements - 1,)), tensor.but(offset=1), tensor.but(offset=-1)):
            with refusal(INVALID, rf"^{name}\b.*stor"):
                phase1(product, **{name: wrong})
    with refusal(INVALID, r"^out\b.*overlap"):
        phase1(product, out=Spec((2, 3, 4), strides=(12, 4, 0)))


def test_overlap_of_input_and_output():
    memory = sentinel_array((72,))
    tensors = {
        "gradOutput": a.aclCreateTensor((2, 3, 8), a.ACL_FLOAT, None, 23, a.ACL_FORMAT_NCL, (72,), memory),
        "out": a.aclCreateTensor((2, 3, 4), a.ACL_FLOAT, None, 0, a.ACL_FORMAT_NCL, (72,), memory),
    }
    with refusal(INVALID, r"^(out|gradOutput)\b.*overlap"):
        phase1(**tensors)
    assert untouched(memory)
    tensors["gradOutput"] = a.aclCreateTensor((2, 3, 8), a.ACL_FLOAT, None, 24, a.ACL_FORMAT_NCL, (72,), memory)
    phase1(**tensors)


# ---- conversions and the order of checks -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["outputSize", "inputSize"])
@pytest.mark.parametrize("value", [8, True, 8.0, "8", (8.0,), (True,), ("8",), (None,), np.array([8.0])], ids=label)
def test_int_array_of_another_type(name, value):
    with pytest.raises(TypeError, match=name):
        phase1(**{name: value})


@pytest.mark.parametrize("name", ["outputSize", "inputSize"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_int_array_beyond_int64(name, value):
    with pytest.raises(OverflowError, match=name):
        phase1(**{name: (2, 3, value)})


@pytest.mark.parametrize("value", [None, True, "1.0", (1.0,), np.bool_(True), 1j, object()], ids=label)
def test_scales_of_another_type(value):
    with pytest.raises(TypeError, match="scales"):
        phase1(scales=value)


def test_scales_of_other_numbers():
    with pytest.raises(OverflowError, match="scales"):
        phase1(scales=10**400)
    for value in (0, 2, np.float32(0.5), np.float64(2), np.int8(1), np.longdouble(2), np.float16(3)):
        phase1(scales=value)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(specs(), 2)))
def test_conversions_go_in_argument_order(first, second):
    with pytest.raises(TypeError, match=first):
        phase1(**{first: object(), second: object()})


FAULTS = {
    "conversion": ({"scales": "yes"}, TypeError, "scales"),
    "null": ({"inputSize": None}, NULL, r"^inputSize = None"),
    "dtype": ({"out.dtype": a.ACL_INT32}, INVALID, r"^out\.dtype = "),
    "format": ({"gradOutput.format": a.ACL_FORMAT_NCHW}, INVALID, r"^gradOutput\.format = "),
    "length": ({"outputSize": (8, 8)}, INVALID, r"^len\(outputSize\) = 2: must"),
    "value": ({"scales": -1.0}, INVALID, r"^scales = -1"),
    "shape": ({"gradOutput.shape": (2, 4, 8)}, INVALID, r"^gradOutput\.shape = "),
    "writability": ({"out.writable": False}, INVALID, "^out.*(read-only|writ)"),
    "alignment": ({"gradOutput.aligned": False}, INVALID, "^gradOutput.*align"),
    "bounds": ({"gradOutput.storage": (5,)}, INVALID, "^gradOutput.*stor"),
    "overlap": ({"out.strides": (12, 4, 0)}, INVALID, "^out.*overlap"),
}


def faulty(*faults):
    arguments = specs()
    for fault in faults:
        for place, value in FAULTS[fault][0].items():
            name, _, attribute = place.partition(".")
            arguments[name] = arguments[name].but(**{attribute: value}) if attribute else value
    return arguments


@on_910b_and_host
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
    arguments = {"grad_output": zeros(2, 3, 8), "output_size": 8, "input_size": (2, 3, 4), "scales": None, **changes}
    assert len(arguments) == 4
    return a.upsample_nearest_exact1d_backward(*arguments.values(), out=out)


ONE_CALL_REFUSALS = [
    ({"grad_output": None}, NULL, "^grad_output = None: must not be null$"),
    ({"output_size": None}, NULL, "^output_size = None: must not be null$"),
    ({"input_size": None}, NULL, "^input_size = None: must not be null$"),
    ({"input_size": None, "out": zeros(2, 3, 4)}, NULL, "^input_size = None: must not be null$"),
    ({"grad_output": zeros(2, 3, 8, dtype="F")}, INVALID, r"^grad_output\.dtype = complex64: must be one of "),
    ({"out": zeros(2, 3, 4, dtype="d")}, INVALID, r"^out\.dtype = float64: must equal grad_output\.dtype = "),
    ({"grad_output": zeros(6, 8)}, INVALID, r"^grad_output\.(rank|format) = .*: must"),
    ({"out": zeros(2, 3, 4, 1)}, INVALID, r"^out\.(rank|format) = .*: must"),
    ({"output_size": (8, 8)}, INVALID, r"^len\(output_size\) = 2: must be 1$"),
    ({"input_size": (3, 4)}, INVALID, r"^len\(input_size\) = 2: must be 3$"),
    ({"input_size": ()}, INVALID, r"^len\(input_size\) = 0: must be 3$"),
    ({"output_size": 9}, INVALID, r"^grad_output\.shape = \(2, 3, 8\): must be .* = \(2, 3, 9\)$"),
    ({"output_size": 0}, INVALID, r"^output_size = 0: must be > 0$"),
    ({"output_size": [0]}, INVALID, r"^output_size\[0\] = 0: must be > 0$"),
    ({"input_size": (2, 3, 0)}, INVALID, r"^input_size\[2\] = 0: must be > 0$"),
    ({"input_size": (2, -3, 4)}, INVALID, r"^input_size\[1\] = -3: must be > 0$"),
    ({"input_size": (2, 4, 4)}, INVALID, r"^grad_output\.shape = \(2, 3, 8\): must be .* = \(2, 4, 8\)$"),
    ({"input_size": (0, 3, 4), "grad_output": zeros(0, 3, 8)}, INVALID, r"^input_size\[0\] = 0: must be > 0$"),
    ({"scales": -2.0}, INVALID, "^scales = -2: must be finite and >= 0$"),
    ({"scales": math.nan}, INVALID, "^scales = nan: must be finite and >= 0$"),
    ({"out": zeros(2, 3, 5)}, INVALID, r"^out\.shape = \(2, 3, 5\): must be input_size = \(2, 3, 4\)$"),
]


@pytest.mark.parametrize(("changes", "status", "pattern"), ONE_CALL_REFUSALS)
@pytest.mark.parametrize("product", ["Ascend910", "Host"])
def test_one_call_refuses(product, changes, status, pattern):
    with a.soc(product), refusal(status, pattern) as info:
        one_call(**changes)
    for name in ("gradOutput", "outputSize", "inputSize"):
        assert name not in str(info.value)
    assert a.aclGetRecentErrMsg() == str(info.value)
    assert not np.any(changes.get("out", 0))


def test_one_call_refuses_memory():
    out = zeros(2, 3, 4)
    out.flags.writeable = False
    with refusal(INVALID, r"^out\b.*(writ|read-only)"):
        one_call(out=out)
    memory = sentinel_array((2, 3, 8))
    with refusal(INVALID, r"^out\b.*overlap"):
        one_call(grad_output=memory, out=memory[..., 1::2])
    assert untouched(memory)


@pytest.mark.parametrize("length", [2**31, 2**62, LARGEST])
def test_one_call_with_an_absurd_shape(length):
    grad = np.broadcast_to(np.float32(1), (2**10, 2**10, 1))
    with pytest.raises((a.AclnnError, MemoryError), match=r"^(input_size|out|grad_output)\b"):
        one_call(grad_output=grad, output_size=1, input_size=(2**10, 2**10, length))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grad_output", [[[1.0]]]), ("grad_output", 1.0), ("output_size", 8.0), ("output_size", "8"),
        ("output_size", True), ("output_size", (8.0,)), ("input_size", 4), ("input_size", "234"),
        ("input_size", (2, 3, 4.0)), ("input_size", (2, True, 4)), ("scales", "2"), ("scales", True),
        ("scales", (2.0,)), ("out", [[[1.0]]]), ("out", (2, 3, 4)),
    ],
    ids=str,
)  # fmt: skip
def test_one_call_of_another_type(name, value):
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        one_call(**{name: value})


def test_one_call_beyond_int64():
    beyond = {"output_size": 2**63, "input_size": (2, 3, -(2**63) - 1), "scales": 10**400}
    for name, value in beyond.items():
        with pytest.raises(OverflowError, match=rf"\b{name}\b"):
            one_call(**{name: value})


def test_one_call_keeps_to_the_host_rules():
    with a.soc("Ascend910"):
        result = one_call(grad_output=np.ones((1, 1, 60)), output_size=60, input_size=(1, 1, 1), scales=1e3)
    assert result.dtype == np.float64
    assert result.tolist() == [[[60]]]
