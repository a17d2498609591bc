"""Everything that AvgPool2dBackward refuses: status, message, and that nothing has been written."""

import itertools
import re
import threading

import ml_dtypes
import numpy as np
import pytest
from engine_helpers import (
    NUMPY_DTYPE,
    ORDER,
    PRIVATE_FORMATS,
    PRODUCTS,
    Spec,
    gradient,
    label,
    phase1,
    plan,
    refusal,
    sentinel_array,
    sentinels,
    specs,
    untouched,
)
from operators import TAKEN

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
TENSORS = ("gradOutput", "self", "gradInput")
ASCEND = ("Ascend910", "Ascend310P", "Ascend910B")
ONE_CALL = {
    "gradOutput": "grad_output",
    "kernelSize": "kernel_size",
    "ceilMode": "ceil_mode",
    "countIncludePad": "count_include_pad",
    "divisorOverride": "divisor_override",
    "gradInput": "out",
}


@pytest.fixture(params=PRODUCTS)
def product(request):
    with a.soc(request.param):
        yield request.param


def refused(product, status, *patterns, **changes):
    """Phase 1 with the changes refuses so, with every tensor bound to memory that stays as it was."""
    arguments = specs(product)
    arguments.update(changes)
    memory = {}
    for name in TENSORS:
        if isinstance(arguments[name], Spec):
            arguments[name], memory[name] = bound(arguments[name])
    with refusal(status, *patterns):
        phase1(arguments)
    for name, data in memory.items():
        assert untouched(data), name


def bound(spec):
    nbytes = int(np.prod(spec.shape)) * NUMPY_DTYPE[spec.dtype].itemsize
    data = sentinels(nbytes)
    tensor = a.aclCreateTensor(
        spec.shape, spec.dtype, spec.strides, spec.offset, spec.acl_format, spec.storage or spec.shape, data
    )
    return tensor, data


def test_base_call_is_legal(product):
    size, executor = phase1(specs(product))
    assert size >= 0
    assert isinstance(executor, a.aclOpExecutor)


@pytest.mark.parametrize("name", ["gradOutput", "self", "kernelSize", "padding", "gradInput"])
def test_null(product, name):
    refused(product, NULL, rf"^{name} = None: must not be null", **{name: None})


def test_null_stride_is_legal(product):
    size, executor = phase1(specs(product, stride=None))
    assert isinstance(executor, a.aclOpExecutor)
    assert size >= 0


def test_null_reports_the_first_argument(product):
    refused(product, NULL, "^self = None", self=None, padding=None, gradInput=None)


# dtypes


@pytest.mark.parametrize("dtype", list(NUMPY_DTYPE), ids=lambda dtype: dtype.name)
def test_dtype_of_all_tensors(product, dtype):
    arguments = specs(product)
    changes = {name: arguments[name].but(dtype=dtype) for name in TENSORS}
    if dtype in TAKEN["AvgPool2dBackward"][product]:
        phase1(specs(product, **changes))
    else:
        # A person has to learn what would be accepted, and on which product.
        refused(product, INVALID, rf"^gradOutput\.dtype = {dtype.name}: must be .*ACL_FLOAT", product, **changes)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("dtype", list(NUMPY_DTYPE), ids=lambda dtype: dtype.name)
def test_dtype_of_one_tensor(product, name, dtype):
    changes = {name: specs(product)[name].but(dtype=dtype)}
    if dtype == a.ACL_FLOAT:
        phase1(specs(product, **changes))
    else:
        refused(product, INVALID, r"^(gradOutput|self|gradInput)\.dtype = ACL_\w+: must ", dtype.name, **changes)


def test_undefined_dtype(product):
    shape = (2, 3, 4, 4)
    with refusal(INVALID, "ACL_DT_UNDEFINED"):
        tensor = a.aclCreateTensor(shape, a.ACL_DT_UNDEFINED, None, 0, a.ACL_FORMAT_NCHW, shape, None)
        phase1(specs(product, gradOutput=tensor))


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.complex64, np.uint8], ids=lambda dtype: dtype.__name__)
def test_dtype_of_a_bare_array(product, dtype):
    with refusal(INVALID, r"^gradOutput\.dtype = ACL_"):
        phase1(specs(product, gradOutput=np.zeros((2, 3, 4, 4), dtype)))


@pytest.mark.parametrize("dtype", ["O", "S4", "U4", "M8[s]", "V8", "longdouble"])
def test_dtype_that_has_no_name_here(product, dtype):
    array = np.zeros((2, 3, 4, 4), dtype)
    with pytest.raises((TypeError, a.AclnnError), match="gradOutput"):
        phase1(specs(product, gradOutput=array))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.int4], ids=lambda dtype: dtype.__name__)
def test_small_dtypes_are_not_taken_for_bfloat16(product, dtype):
    arrays = {name: np.zeros(specs(product)[name].shape, dtype) for name in TENSORS}
    with pytest.raises((TypeError, a.AclnnError), match="gradOutput"):
        phase1(specs(product, **arrays))


# formats and ranks


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("fmt", list(a.aclFormat), ids=lambda fmt: fmt.name)
def test_format_of_all_tensors(product, rank, fmt):
    arguments = specs(product)
    changes = {name: arguments[name].but(shape=arguments[name].shape[-rank:], format=fmt) for name in TENSORS}
    allowed = {3: (a.ACL_FORMAT_NCL, a.ACL_FORMAT_NCHW), 4: (a.ACL_FORMAT_NCHW,)}
    if fmt in allowed[rank]:
        phase1(specs(product, **changes))
    else:
        refused(product, INVALID, rf"^(gradOutput|self|gradInput)\.format = {fmt.name}: must", **changes)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("fmt", [a.ACL_FORMAT_ND, a.ACL_FORMAT_NCL, *PRIVATE_FORMATS], ids=lambda fmt: fmt.name)
def test_format_of_one_tensor(product, name, fmt):
    changes = {name: specs(product)[name].but(format=fmt)}
    refused(product, INVALID, r"^(gradOutput|self|gradInput)\.format = ", fmt.name, **changes)


def test_formats_of_self_and_grad_input_differ(product):
    arguments = specs(product)
    changes = {name: arguments[name].but(shape=arguments[name].shape[1:]) for name in TENSORS}
    changes["self"] = changes["self"].but(format=a.ACL_FORMAT_NCHW)
    refused(product, INVALID, r"^(self|gradInput)\.format = ACL_FORMAT_NC", **changes)


def test_format_of_grad_output_may_differ(product):
    arguments = specs(product)
    changes = {name: arguments[name].but(shape=arguments[name].shape[1:]) for name in TENSORS}
    changes["gradOutput"] = changes["gradOutput"].but(format=a.ACL_FORMAT_NCHW)
    phase1(specs(product, **changes))


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("shape", [(), (8,), (8, 8), (1, 2, 3, 8, 8)], ids=str)
def test_rank(product, name, shape):
    tensor = specs(product)[name].but(shape=shape, format=a.ACL_FORMAT_NCHW)
    refused(product, INVALID, r"^(gradOutput|self|gradInput)\.(shape|rank) = .*: must", **{name: tensor})


@pytest.mark.parametrize("name", TENSORS)
def test_ranks_differ(product, name):
    tensor = specs(product)[name]
    tensor = tensor.but(shape=tensor.shape[1:], format=a.ACL_FORMAT_NCHW)
    refused(product, INVALID, r"^(gradOutput|self|gradInput)\.(shape|rank) = .*: must", **{name: tensor})


@pytest.mark.parametrize("name", TENSORS)
def test_bare_array_of_another_rank(product, name):
    refused(
        product,
        INVALID,
        r"^(gradOutput|self|gradInput)\.(format|shape|rank) = ",
        **{name: np.zeros((8, 8), np.float32)},
    )


# attributes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernelSize", ()),
        ("kernelSize", (2, 2, 2)),
        ("stride", (2, 2, 2)),
        ("padding", ()),
        ("padding", (0, 0, 0)),
        ("padding", (0, 0, 0, 0)),
    ],
    ids=str,
)
def test_attribute_length(product, name, value):
    refused(product, INVALID, rf"\b{name}\b.* = {len(value)}: must be ", **{name: value})
    refused(
        product, INVALID, rf"\b{name}\b.* = {len(value)}: must be ", **{name: a.aclCreateIntArray(value, len(value))}
    )


def test_empty_stride_means_the_kernel(product):
    assert phase1(specs(product, stride=()))[0] == phase1(specs(product))[0]


def test_one_value_serves_both_axes(product):
    assert phase1(specs(product, kernelSize=[2], stride=[2], padding=[0]))[0] == phase1(specs(product))[0]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("kernelSize", 0, r"must be > 0|must be >= 1"),
        ("kernelSize", -1, r"must be > 0|must be >= 1"),
        ("kernelSize", -(2**63), r"must be > 0|must be >= 1"),
        ("stride", 0, r"must be > 0|must be >= 1"),
        ("stride", -2, r"must be > 0|must be >= 1"),
        ("stride", -(2**63), r"must be > 0|must be >= 1"),
        ("padding", -1, r"must be >= 0"),
        ("padding", -(2**63), r"must be >= 0"),
        ("padding", 2, r"must be <= kernelSize\[{axis}\] / 2 = 1"),
        ("padding", 2**63 - 1, r"must be <= kernelSize\[{axis}\] / 2 = 1"),
    ],
)
def test_attribute_value(product, name, value, rule, axis):
    values = list(specs(product)[name])
    values[axis] = value
    refused(product, INVALID, rf"^{name}\[{axis}\] = {value}: ", rule.format(axis=axis), **{name: values})
    handle = a.aclCreateIntArray(values, 2)
    refused(product, INVALID, rf"^{name}\[{axis}\] = {value}: ", rule.format(axis=axis), **{name: handle})


@pytest.mark.parametrize("name", ["kernelSize", "stride"])
def test_single_attribute_value(product, name):
    refused(product, INVALID, rf"^{name}\[0\] = 0: must be", **{name: (0,)})


def test_padding_beyond_half_of_an_odd_kernel(product):
    refused(
        product, INVALID, r"^padding\[1\] = 2: must be <= kernelSize\[1\] / 2 = 1", kernelSize=(3, 3), padding=(1, 2)
    )


@pytest.mark.parametrize("value", [-(2**63), -256, -255, -1, 0, 1, 255, 256, 2**63 - 1])
def test_divisor_override_range(product, value):
    if product == "Host" or -255 <= value <= 255:
        phase1(specs(product, divisorOverride=value))
    else:
        pattern = rf"^divisorOverride = {value}: must be in \[-255, 255\] on {product}"
        refused(product, INVALID, pattern, divisorOverride=value)


@pytest.mark.parametrize("value", [-(2**63), -129, -128, -1, 4, 127, 128, 256, 257, 2**32, 2**63 - 1])
@pytest.mark.parametrize("dtype", [a.ACL_FLOAT, a.ACL_FLOAT16], ids=lambda dtype: dtype.name)
def test_cube_math_type_unknown(product, dtype, value):
    arguments = specs(product)
    changes = {name: arguments[name].but(dtype=dtype) for name in TENSORS}
    refused(product, INVALID, rf"^cubeMathType = {value}: must be ", cubeMathType=value, **changes)


@pytest.mark.parametrize("value", list(a.CubeMathType), ids=lambda value: value.name)
@pytest.mark.parametrize("dtype", [a.ACL_FLOAT, a.ACL_FLOAT16, a.ACL_BF16, a.ACL_DOUBLE], ids=lambda dtype: dtype.name)
def test_cube_math_type_table(product, dtype, value):
    if dtype not in TAKEN["AvgPool2dBackward"][product]:
        pytest.skip(f"{product} lacks {dtype.name}")
    arguments = specs(product)
    changes = {name: arguments[name].but(dtype=dtype) for name in TENSORS}
    changes["cubeMathType"] = value
    down_only = product in ("Ascend910", "Ascend310P") and dtype == a.ACL_FLOAT
    if down_only and value in (a.KEEP_DTYPE, a.CubeMathType.USE_HF32):
        refused(product, INVALID, rf"^cubeMathType = {int(value)}\b.*: must be .*{product}", **changes)
    else:
        phase1(specs(product, **changes))


# shapes


@pytest.mark.parametrize(
    "shape", [(2, 3, 4, 5), (2, 3, 5, 4), (2, 3, 3, 4), (2, 4, 4, 4), (1, 3, 4, 4), (2, 3, 0, 4), (0, 3, 4, 4)], ids=str
)
def test_grad_output_shape(product, shape):
    pattern = rf"^gradOutput\.shape = {re.escape(str(shape))}: expected \(2, 3, 4, 4\)"
    refused(product, INVALID, pattern, gradOutput=Spec(shape))


@pytest.mark.parametrize("shape", [(2, 3, 8, 9), (2, 3, 9, 8), (2, 4, 8, 8), (1, 3, 8, 8), (2, 3, 8, 0)], ids=str)
@pytest.mark.parametrize("name", ["self", "gradInput"])
def test_self_and_grad_input_shapes_differ(product, name, shape):
    pattern = rf"\.shape = .*{re.escape(str(shape))}|{re.escape(str(shape))}.*must"
    refused(product, INVALID, r"^(gradOutput|self|gradInput)\.shape", pattern, **{name: Spec(shape)})


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_ceil_mode_decides_the_shape(product, ceil_mode):
    wide = Spec((2, 3, 9, 9))
    right = Spec((2, 3, 5, 5) if ceil_mode else (2, 3, 4, 4))
    wrong = Spec((2, 3, 4, 4) if ceil_mode else (2, 3, 5, 5))
    changes = {"self": wide, "gradInput": wide, "ceilMode": ceil_mode}
    phase1(specs(product, gradOutput=right, **changes))
    refused(product, INVALID, r"^gradOutput\.shape", gradOutput=wrong, **changes)


def test_last_window_must_start_inside(product):
    # Ceil mode would add a window that starts in the right padding: 5 wide, pad 1, stride 3 -> 2 windows, not 3.
    wide = Spec((1, 1, 5, 5))
    changes = {"self": wide, "gradInput": wide, "kernelSize": (2,), "stride": (3,), "padding": (1,), "ceilMode": True}
    phase1(specs(product, gradOutput=Spec((1, 1, 2, 2)), **changes))
    refused(product, INVALID, r"^gradOutput\.shape", gradOutput=Spec((1, 1, 3, 3)), **changes)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("rank", [3, 4])
def test_zero_sizes(product, rank, axis):
    shapes = {"gradOutput": [2, 3, 4, 4], "self": [2, 3, 8, 8], "gradInput": [2, 3, 8, 8]}
    for shape in shapes.values():
        shape[axis] = 0
    changes = {name: Spec(tuple(shape[-rank:])) for name, shape in shapes.items()}
    refused(product, INVALID, r"^(gradOutput|self|gradInput)\.shape = \(.*0", **changes)


def test_empty_batch_is_legal(product):
    changes = {"gradOutput": Spec((0, 3, 4, 4)), "self": Spec((0, 3, 8, 8)), "gradInput": Spec((0, 3, 8, 8))}
    size, executor = phase1(specs(product, **changes))
    assert size == 0
    a.aclnnAvgPool2dBackward(None, 0, executor, None)


@pytest.mark.parametrize("axis", [0, 1])
def test_no_output_position(product, axis):
    kernel = [2, 2]
    kernel[axis] = 9
    refused(
        product,
        INVALID,
        r"^(gradOutput|self|gradInput|kernelSize)\b.* = .*: ",
        kernelSize=kernel,
        gradOutput=Spec((2, 3, 1, 4) if axis == 0 else (2, 3, 4, 1)),
    )


@pytest.mark.parametrize("channels", [65535, 65536])
@pytest.mark.parametrize("rank", [3, 4])
def test_channels(product, channels, rank):
    shape = (1, channels, 1, 1)[-rank:]
    changes = {name: Spec(shape) for name in TENSORS}
    changes.update(kernelSize=(1,), stride=(1,))
    if product == "Host" or channels <= 65535:
        phase1(specs(product, **changes))
    else:
        refused(product, INVALID, r"^(gradOutput|self|gradInput)\b.*65536", "65535", product, **changes)


def test_absurd_geometry_does_not_overflow(product):
    huge = 2**62
    refused(
        product, INVALID, r"^(gradOutput|self|gradInput|kernelSize|padding)\b", kernelSize=(huge,), padding=(huge // 2,)
    )
    refused(product, INVALID, r"^(gradOutput|self|gradInput|kernelSize)\b", kernelSize=(2**63 - 1,))
    refused(product, INVALID, r"^gradOutput\.shape", stride=(2**63 - 1,), ceilMode=True)
    refused(
        product, INVALID, r"^\w+\b", kernelSize=(2**63 - 1,), padding=(2**62 - 1,), stride=(2**63 - 1,), ceilMode=True
    )
    refused(product, INVALID, r"^\w+\b", kernelSize=(2**63 - 1,), padding=(2**62 - 1,), stride=(1,))


# the memory that the tensors lie in


def test_read_only_output(product):
    arguments = specs(product, gradInput=Spec(writable=False))
    with refusal(INVALID, r"^gradInput\b", "writ|read-only"):
        phase1(arguments)


def test_read_only_inputs_are_legal(product):
    phase1(specs(product, gradOutput=Spec((2, 3, 4, 4), writable=False), self=Spec(writable=False)))


@pytest.mark.parametrize("name", ["gradOutput", "gradInput"])
def test_misaligned(product, name):
    with refusal(INVALID, rf"^{name}\b", "align"):
        phase1(specs(product, **{name: specs(product)[name].but(aligned=False)}))


@pytest.mark.parametrize("name", TENSORS)
def test_view_leaves_its_storage(product, name):
    spec = specs(product)[name]
    elements = int(np.prod(spec.shape))
    exact = spec.but(storage=(elements,))
    phase1(specs(product, **{name: exact}))
    for wrong in (exact.but(storage=(elements - 1,)), exact.but(offset=1), exact.but(offset=-1)):
        with refusal(INVALID, rf"^{name}\b", "stor"):
            phase1(specs(product, **{name: wrong}))


def test_output_overlaps_itself(product):
    tensor = Spec(strides=(192, 64, 0, 1))
    with refusal(INVALID, r"^gradInput\b", "overlap"):
        phase1(specs(product, gradInput=tensor))


def test_output_overlaps_grad_output(product):
    memory = sentinel_array((1024,))
    dtype = a.ACL_FLOAT
    changes = {
        "gradOutput": a.aclCreateTensor((2, 3, 4, 4), dtype, None, 383, a.ACL_FORMAT_NCHW, (1024,), memory),
        "gradInput": a.aclCreateTensor((2, 3, 8, 8), dtype, None, 0, a.ACL_FORMAT_NCHW, (1024,), memory),
    }
    with refusal(INVALID, r"^gradInput\b|^gradOutput\b", "overlap"):
        phase1(specs(product, **changes))
    assert untouched(memory)
    changes["gradOutput"] = a.aclCreateTensor((2, 3, 4, 4), dtype, None, 384, a.ACL_FORMAT_NCHW, (1024,), memory)
    phase1(specs(product, **changes))


# conversions


@pytest.mark.parametrize("name", ["kernelSize", "stride", "padding"])
@pytest.mark.parametrize(
    "value",
    [
        2,
        True,
        2.0,
        "22",
        (2.0, 2),
        (True, 2),
        ("2", "2"),
        (None, 2),
        (np.bool_(True), 2),
        np.array([2.0, 2.0]),
        object(),
    ],
    ids=label,
)
def test_int_array_of_another_type(product, name, value):
    with pytest.raises(TypeError, match=name):
        phase1(specs(product, **{name: value}))


@pytest.mark.parametrize("name", ["kernelSize", "stride", "padding"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_int_array_beyond_int64(product, name, value):
    with pytest.raises(OverflowError, match=name):
        phase1(specs(product, **{name: (2, value)}))


def test_int_arrays_that_are_fine(product):
    for pair in ([2, 2], (np.int64(2), np.int8(2)), np.array([2, 2]), np.array([2, 2], np.uint16), range(2, 3)):
        phase1(specs(product, kernelSize=pair))


@pytest.mark.parametrize("name", ["divisorOverride", "cubeMathType"])
@pytest.mark.parametrize("value", [1.0, True, "1", None, (1,), np.float32(1), np.bool_(True)], ids=label)
def test_int_of_another_type(product, name, value):
    with pytest.raises(TypeError, match=name):
        phase1(specs(product, **{name: value}))


@pytest.mark.parametrize("name", ["divisorOverride", "cubeMathType"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_int_beyond_int64(product, name, value):
    with pytest.raises(OverflowError, match=name):
        phase1(specs(product, **{name: value}))


@pytest.mark.parametrize("name", ["ceilMode", "countIncludePad"])
@pytest.mark.parametrize("value", [None, "no", 0.5, (), [True]], ids=label)
def test_bool_of_another_type(product, name, value):
    with pytest.raises(TypeError, match=name):
        phase1(specs(product, **{name: value}))


@pytest.mark.parametrize("name", ["ceilMode", "countIncludePad"])
def test_bool_of_numpy(product, name):
    phase1(specs(product, **{name: np.bool_(True)}))


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("value", [[[1.0]], 1.0, 3, "tensor", (2, 3, 8, 8), object(), b"abc", np.float32(1)], ids=label)
def test_tensor_of_another_type(product, name, value):
    with pytest.raises(TypeError, match=name):
        phase1(specs(product, **{name: value}))


@pytest.mark.parametrize("count", [0, 9, 11])
def test_argument_count(count):
    with pytest.raises(TypeError):
        a.aclnnAvgPool2dBackwardGetWorkspaceSize(*[None] * count)


def test_arguments_by_name():
    arguments = specs("Host")
    arrays = {"gradOutput": gradient(), "self": np.zeros((2, 3, 8, 8), np.float32)}
    arrays["gradInput"] = np.zeros((2, 3, 8, 8), np.float32)
    size, executor = a.aclnnAvgPool2dBackwardGetWorkspaceSize(**{**arguments, **arrays})
    a.aclnnAvgPool2dBackward(
        workspace=np.empty(size, np.uint8) if size else None, workspaceSize=size, executor=executor, stream=None
    )
    assert arrays["gradInput"].any()


# the order of the checks

FAULTS = {
    "conversion": (lambda s: s.update(ceilMode="yes"), TypeError, "ceilMode"),
    "null": (lambda s: s.update(padding=None), NULL, r"^padding = None"),
    "dtype": (lambda s: s.update(self=s["self"].but(dtype=a.ACL_INT32)), INVALID, r"^\w+\.dtype = "),
    "format": (
        lambda s: s.update(gradOutput=s["gradOutput"].but(format=a.ACL_FORMAT_ND)),
        INVALID,
        r"^gradOutput\.format = ",
    ),
    "length": (lambda s: s.update(stride=(1, 2, 3)), INVALID, r"\bstride\b.* = 3: must"),
    "value": (lambda s: s.update(kernelSize=(0, 2)), INVALID, r"^kernelSize\[0\] = 0"),
    "shape": (lambda s: s.update(gradInput=s["gradInput"].but(shape=(2, 3, 8, 9))), INVALID, r"^\w+\.shape = "),
    "writability": (lambda s: s.update(gradInput=s["gradInput"].but(writable=False)), INVALID, "read-only|writ"),
    "alignment": (lambda s: s.update(gradOutput=s["gradOutput"].but(aligned=False)), INVALID, "^gradOutput.*align"),
    "bounds": (lambda s: s.update(self=s["self"].but(storage=(5,))), INVALID, "^self.*stor"),
    "overlap": (
        lambda s: s.update(gradInput=s["gradInput"].but(strides=(192, 64, 1, 1), storage=(384 * 2,))),
        INVALID,
        "overlap",
    ),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(FAULTS, 2)), ids=str)
def test_the_earlier_fault_speaks(product, first, second):
    arguments = specs(product)
    for fault in (second, first):
        FAULTS[fault][0](arguments)
    _, status, pattern = FAULTS[first]
    if status is TypeError:
        with pytest.raises(TypeError, match=pattern):
            phase1(arguments)
    else:
        with refusal(status, pattern):
            phase1(arguments)


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_alone(product, fault):
    arguments = specs(product)
    FAULTS[fault][0](arguments)
    _, status, pattern = FAULTS[fault]
    if status is TypeError:
        with pytest.raises(TypeError, match=pattern):
            phase1(arguments)
    else:
        with refusal(status, pattern):
            phase1(arguments)


@pytest.mark.parametrize(
    ("first", "second"),
    list(itertools.combinations([n for n in ORDER if n != "stride"], 2)),
    ids=str,
)
def test_conversions_go_in_argument_order(first, second):
    with pytest.raises(TypeError) as info:
        phase1(specs("Ascend910B", **{first: object(), second: object()}))
    assert first in str(info.value)


@pytest.mark.parametrize(
    "pair", list(itertools.combinations(["gradOutput", "self", "kernelSize", "padding"], 2)), ids=str
)
def test_nulls_go_in_argument_order(pair):
    with refusal(NULL, rf"^{pair[0]} = None"):
        phase1(specs("Ascend910B", **dict.fromkeys(pair)))


@pytest.mark.parametrize("name", ["kernelSize", "stride", "padding"])
def test_first_axis_speaks_first(name):
    with refusal(INVALID, rf"^{name}\[0\] = -3"):
        phase1(specs("Ascend910B", **{name: (-3, -4)}))


# the message of the thread


def test_recent_message_is_returned_once(product):
    with pytest.raises(a.AclnnError) as info:
        phase1(specs(product, padding=(-1, 0)))
    assert a.aclGetRecentErrMsg() == str(info.value)
    assert a.aclGetRecentErrMsg() is None


def test_recent_message_is_the_last_one():
    for padding in ((-1, 0), (-2, 0)):
        with pytest.raises(a.AclnnError):
            phase1(specs(padding=padding))
    assert "-2" in a.aclGetRecentErrMsg()
    assert a.aclGetRecentErrMsg() is None


def test_recent_message_belongs_to_its_thread():
    with pytest.raises(a.AclnnError):
        phase1(specs(padding=(-1, 0)))
    seen = []

    def other():
        seen.append(a.aclGetRecentErrMsg())
        with pytest.raises(a.AclnnError):
            phase1(specs(kernelSize=(-7, 2)))
        seen.append(a.aclGetRecentErrMsg())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] is None
    assert "kernelSize[0] = -7" in seen[1]
    assert "padding[0] = -1" in a.aclGetRecentErrMsg()


def test_messages_of_many_threads_do_not_mix():
    wrong = []

    def work(value):
        for _ in range(2000):
            try:
                phase1(specs(padding=(-value, 0)))
            except a.AclnnError as error:
                if f"padding[0] = -{value}:" not in str(error) or a.aclGetRecentErrMsg() != str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(value,)) for value in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# the one-call function


def one_call(**changes):
    arguments = {
        "grad_output": gradient(),
        "self": np.zeros((2, 3, 8, 8), np.float32),
        "kernel_size": 2,
        "stride": None,
        "padding": 0,
        "ceil_mode": False,
        "count_include_pad": True,
        "divisor_override": None,
        "out": None,
    }
    assert set(changes) <= set(arguments)
    arguments.update(changes)
    out = arguments.pop("out")
    return a.avg_pool2d_backward(*arguments.values(), out=out)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


ONE_CALL_REFUSALS = {
    "null grad_output": ({"grad_output": None}, NULL, "^grad_output = None: must not be null"),
    "null self": ({"self": None}, NULL, "^self = None: must not be null"),
    "null kernel_size": ({"kernel_size": None}, NULL, "^kernel_size = None: must not be null"),
    "null padding": ({"padding": None}, NULL, "^padding = None: must not be null"),
    "int dtype": ({"grad_output": zeros(2, 3, 4, 4, dtype=np.int32)}, INVALID, r"^grad_output\.dtype = int32"),
    "complex dtype": (
        {"grad_output": zeros(2, 3, 4, 4, dtype="F"), "self": zeros(2, 3, 8, 8, dtype="F")},
        INVALID,
        r"^grad_output\.dtype = complex64",
    ),
    "other dtype of self": ({"self": zeros(2, 3, 8, 8, dtype="d")}, INVALID, r"^(grad_output|self)\.dtype = float"),
    "other dtype of out": ({"out": zeros(2, 3, 8, 8, dtype="d")}, INVALID, r"^(grad_output|out)\.dtype = float"),
    "rank of grad_output": ({"grad_output": zeros(4, 4)}, INVALID, r"^(grad_output|self|out)\.(shape|format|rank) = "),
    "rank of self": ({"self": zeros(8, 8)}, INVALID, r"^(grad_output|self|out)\.(shape|format|rank) = "),
    "rank of a shape": ({"self": (8, 8)}, INVALID, r"^self\b"),
    "rank of a long shape": ({"self": (1,) * 20}, INVALID, r"^(grad_output|self)\b"),
    "rank of an empty shape": ({"self": ()}, INVALID, r"^(grad_output|self)\b"),
    "other rank": ({"self": (3, 8, 8)}, INVALID, r"^(grad_output|self)\b"),
    "rank of out": ({"out": zeros(3, 8, 8)}, INVALID, r"^(grad_output|self|out)\.(shape|format|rank) = "),
    "kernel_size length": ({"kernel_size": (2, 2, 2)}, INVALID, r"\bkernel_size\b.* = 3: must"),
    "kernel_size empty": ({"kernel_size": ()}, INVALID, r"\bkernel_size\b.* = 0: must"),
    "stride length": ({"stride": (2, 2, 2)}, INVALID, r"\bstride\b.* = 3: must"),
    "padding length": ({"padding": (0, 0, 0)}, INVALID, r"\bpadding\b.* = 3: must"),
    "kernel_size value": ({"kernel_size": (2, 0)}, INVALID, r"^kernel_size\[1\] = 0: must be"),
    "stride value": ({"stride": (2, -1)}, INVALID, r"^stride\[1\] = -1: must be"),
    "padding value": ({"padding": (0, -1)}, INVALID, r"^padding\[1\] = -1: must be >= 0"),
    "padding too big": ({"padding": (0, 3)}, INVALID, r"^padding\[1\] = 3: must be <= kernel_size / 2 = 1"),
    "divisor 0": ({"divisor_override": 0}, INVALID, r"^divisor_override = 0: must"),
    "grad_output shape": (
        {"grad_output": zeros(2, 3, 4, 5)},
        INVALID,
        r"^grad_output\.shape = \(2, 3, 4, 5\): expected \(",
    ),
    "grad_output shape by ceil_mode": (
        {"self": (2, 3, 9, 9), "ceil_mode": True},
        INVALID,
        r"^grad_output\.shape = \(2, 3, 4, 4\): expected \(2, 3, 5, 5\)",
    ),
    "out shape": ({"out": zeros(2, 3, 8, 9)}, INVALID, r"^(out|self)\.shape = "),
    "zero channels": ({"grad_output": zeros(2, 0, 4, 4), "self": (2, 0, 8, 8)}, INVALID, r"\.shape = |^self\b"),
    "negative shape": ({"self": (2, 3, -8, 8)}, INVALID, r"^self\b"),
    "kernel beyond the image": (
        {"kernel_size": 9, "grad_output": zeros(2, 3, 1, 1)},
        INVALID,
        r"^(self|grad_output|kernel_size)\b.* = .*: ",
    ),
}


@pytest.mark.parametrize("case", list(ONE_CALL_REFUSALS))
@pytest.mark.parametrize("product", PRODUCTS)
def test_one_call_refuses(case, product):
    changes, status, pattern = ONE_CALL_REFUSALS[case]
    out = changes.get("out")
    before = None if out is None else out.tobytes()
    with a.soc(product), refusal(status, pattern) as info:
        one_call(**changes)
    message = str(info.value)
    for name, other in ONE_CALL.items():
        assert not re.search(rf"\b{name}\b", message), f"the two-phase name of {other} in {message!r}"
    assert a.aclGetRecentErrMsg() == message
    if out is not None:
        assert out.tobytes() == before


def test_one_call_with_an_absurd_shape():
    for size in (2**31, 2**62, 2**63 - 1):
        for shape in ((size, size, size, size), (1, 1, size, size), (2, 3, 8, size), (0, 3, size, size)):
            with pytest.raises((a.AclnnError, MemoryError), match=r"self|grad_output"):
                one_call(self=shape)


def test_one_call_refuses_read_only_out():
    out = zeros(2, 3, 8, 8)
    out.flags.writeable = False
    with refusal(INVALID, "^out\\b", "writ|read-only"):
        one_call(out=out)


def test_one_call_refuses_overlap():
    memory = sentinel_array((2, 3, 12, 8))
    with refusal(INVALID, r"^(out|grad_output)\b", "overlap"):
        one_call(grad_output=memory[:, :, 6:10, :4], out=memory[:, :, :8])
    assert untouched(memory)


def test_one_call_refuses_self_overlapping_out():
    out = np.lib.stride_tricks.as_strided(zeros(2, 3, 8, 8), strides=(768, 256, 0, 4))
    with refusal(INVALID, r"^out\b", "overlap"):
        one_call(out=out)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("grad_output", [[[1.0]]]),
        ("grad_output", 1.0),
        ("self", 1.0),
        ("self", "8888"),
        ("self", (2, 3, 8.0, 8)),
        ("self", (2, 3, True, 8)),
        ("kernel_size", 2.0),
        ("kernel_size", True),
        ("kernel_size", "2"),
        ("kernel_size", (2, 2.0)),
        ("stride", 2.0),
        ("stride", True),
        ("padding", 0.0),
        ("padding", "0"),
        ("padding", False),
        ("ceil_mode", None),
        ("ceil_mode", "no"),
        ("count_include_pad", None),
        ("count_include_pad", "no"),
        ("divisor_override", 2.0),
        ("divisor_override", True),
        ("divisor_override", "2"),
        ("out", [[[1.0]]]),
        ("out", 1.0),
        ("out", (2, 3, 8, 8)),
    ],
    ids=str,
)
def test_one_call_of_another_type(name, value):
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        one_call(**{name: value})


@pytest.mark.parametrize("name", ["kernel_size", "stride", "padding", "divisor_override"])
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_one_call_beyond_int64(name, value):
    with pytest.raises(OverflowError, match=rf"\b{name}\b"):
        one_call(**{name: value})


def test_one_call_keeps_to_the_host_rules():
    with a.soc("Ascend910"):
        result = one_call(
            grad_output=gradient(dtype=np.float64), self=(2, 3, 8, 8), divisor_override=1000, kernel_size=np.int64(2)
        )
    assert result.dtype == np.float64
    channels = np.ones((1, 65536, 1, 1), np.float32)
    with a.soc("Ascend910B"):
        assert np.array_equal(a.avg_pool2d_backward(channels, channels, 1), channels)


def test_plan_helper_gives_the_known_result():
    grad_output, grad_input = gradient(), sentinel_array((2, 3, 8, 8))
    with a.soc("Host"):
        size, executor = plan(grad_output, grad_input)
    a.aclnnAvgPool2dBackward(np.empty(size, np.uint8) if size else None, size, executor)
    assert np.array_equal(grad_input, np.repeat(np.repeat(grad_output, 2, 2), 2, 3) / 4)
