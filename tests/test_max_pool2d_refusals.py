"""Everything that MaxPool2dWithMaskBackward and MaxPool2dWithMask refuse: status, message, the order of the checks, and
that nothing was written."""

import itertools
import re

import numpy as np
import pytest
from engine_helpers import NUMPY_DTYPE, PRIVATE_FORMATS, Spec, label, refusal, sentinels, untouched
from operators import TAKEN

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
PAIRS = ("kernelSize", "stride", "padding", "dilation")
ORDER = {
    "Backward": ("gradOutput", "self", "indices", *PAIRS, "ceilMode", "gradInput"),
    "": ("self", *PAIRS, "ceilMode", "out", "indices"),
}
REALS = {"Backward": ("gradOutput", "self", "gradInput"), "": ("self", "out")}
WRITTEN = {"Backward": ("gradInput",), "": ("out", "indices")}
READ = {"Backward": ("gradOutput", "indices"), "": ("self",)}
PRODUCTS = {"Backward": ("Ascend910", "Ascend910B", "Host"), "": ("Ascend910", "Ascend310P", "Ascend910B", "Host")}
PLAIN_FORMATS = (a.ACL_FORMAT_NCHW, a.ACL_FORMAT_NCL, a.ACL_FORMAT_ND)
SELF, OUT, INDICES = Spec((2, 3, 8, 8)), Spec((2, 3, 4, 4)), Spec((2, 3, 4, 64), a.ACL_INT8)


@pytest.fixture(
    params=[(op, name, layout) for op in ORDER for name in PRODUCTS[op] for layout in ("bitmask", "argmax")],
    ids=lambda param: "-".join(("Forward" if not param[0] else param[0], *param[1:])),
)
def op(request):
    """Each operator on each product that has it, in both mask layouts."""
    name, product, layout = request.param
    with a.soc(product, mask_layout=layout):
        yield name


@pytest.fixture(params=ORDER, ids=["Backward", "Forward"])
def host_op(request):
    with a.soc("Host"):
        yield request.param


def arguments(op, **changes):
    legal = {"self": SELF, "indices": INDICES, "kernelSize": (2, 2), "stride": (2, 2), "padding": (0, 0)}
    legal |= {"dilation": (1, 1), "ceilMode": False, "gradOutput": OUT, "gradInput": SELF, "out": OUT}
    assert set(changes) <= set(ORDER[op])
    return {**{name: legal[name] for name in ORDER[op]}, **changes}


def phase1(op, **changes):
    built = [value.build() if isinstance(value, Spec) else value for value in arguments(op, **changes).values()]
    return getattr(a, f"aclnnMaxPool2dWithMask{op}GetWorkspaceSize")(*built)


def refused(op, status, *patterns, **changes):
    """Phase 1 refuses so, and the outputs that are bound by a Spec stay as they were."""
    memory = []
    for name in WRITTEN[op]:
        spec = arguments(op, **changes)[name]
        if isinstance(spec, Spec) and spec.bound and spec.writable and spec.aligned:
            storage = spec.storage or spec.shape
            memory.append(sentinels(int(np.prod(storage)) * NUMPY_DTYPE[spec.dtype].itemsize))
            tensor = spec.shape, spec.dtype, spec.strides, spec.offset, spec.acl_format, storage, memory[-1]
            changes[name] = a.aclCreateTensor(*tensor)
    with refusal(status, *patterns):
        phase1(op, **changes)
    assert all(map(untouched, memory))


def every_real(op, **changes):
    return {name: arguments(op)[name].but(**changes) for name in REALS[op]}


def resized(op, small, large, mask):
    """The tensors with other shapes: of the pooled ones, of the images, of the mask."""
    shapes = {"self": large, "gradInput": large, "gradOutput": small, "out": small, "indices": mask}
    return {name: arguments(op)[name].but(shape=shapes[name]) for name in ORDER[op] if name in shapes}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices_given_as_a_mask_name_what_takes_them(dtype):
    g, x, indices = np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 1, 4, 4), np.float32), np.zeros((1, 1, 2, 2), dtype)
    name = np.dtype(dtype).name
    remedy = "max_pool2d_with_indices_backward takes indices, and indices_to_mask makes a mask of them$"
    with refusal(INVALID, f"^mask.dtype = {name}: must be int8; {remedy}"):
        a.max_pool2d_with_mask_backward(g, x, indices, 2)
    remedy = "aclnnMaxPool2dWithIndicesBackward takes indices, and indices_to_mask makes a mask of them$"
    with refusal(INVALID, f"^indices.dtype = ACL_{name.upper()}: must be ACL_INT8; {remedy}"):
        a.aclnnMaxPool2dWithMaskBackwardGetWorkspaceSize(g, x, indices, [2], [2], [0], [1], False, x.copy())
    with refusal(INVALID, f"^mask_out.dtype = {name}: must be int8; max_pool2d_with_indices writes indices$"):
        a.max_pool2d_with_mask(x, 2, mask_out=indices)


def test_base_calls_are_legal(op):
    phase1(op)
    phase1(op, stride=())
    phase1(op, kernelSize=[2], stride=a.aclCreateIntArray([2], 1), padding=[0], dilation=[1])
    phase1(op, **resized(op, (3, 4, 4), (3, 8, 8), (3, 4, 64)))
    phase1(op, **resized(op, (0, 3, 4, 4), (0, 3, 8, 8), (0, 3, 4, 64)))


def test_null(op):
    """Not even the stride may be null; of several the first argument speaks."""
    names = [name for name in ORDER[op] if name != "ceilMode"]
    for name in names:
        refused(op, NULL, rf"^{name} = None: must not be null$", **{name: None})
    for first, second in itertools.combinations(names, 2):
        refused(op, NULL, rf"^{first} = None: must not be null$", **{first: None, second: None})


def test_ascend310p():
    with a.soc("Ascend310P"):
        refused("Backward", INVALID, r"^Ascend310P does not have \w+$", self=SELF.but(dtype=a.ACL_INT8))
        refused("Backward", NULL, "^stride = None", stride=None)
        phase1("")
        for dtype in (a.ACL_FLOAT16, a.ACL_BF16, a.ACL_DOUBLE):
            pattern = rf"^self\.dtype = {dtype.name}: must be one of ACL_FLOAT on Ascend310P$"
            refused("", INVALID, pattern, **every_real("", dtype=dtype))


# ---- dtypes, formats, ranks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMPY_DTYPE, ids=lambda dtype: dtype.name)
def test_dtype(op, dtype):
    product = a.aclrtGetSocName()
    taken = TAKEN["AvgPool2dBackward"][product] if product != "Ascend310P" else (a.ACL_FLOAT,)
    if dtype in taken:
        phase1(op, **every_real(op, dtype=dtype))
    else:
        pattern = rf"^{REALS[op][0]}\.dtype = {dtype.name}: must be one of ACL_FLOAT\b.* on {product}$"
        refused(op, INVALID, pattern, **every_real(op, dtype=dtype))
    for name in REALS[op]:
        if dtype != a.ACL_FLOAT:
            changes = {name: arguments(op)[name].but(dtype=dtype)}
            refused(op, INVALID, rf"^({'|'.join(REALS[op])})\.dtype = ACL_\w+: must ", dtype.name, **changes)
    if dtype != a.ACL_INT8:
        pattern = rf"^indices\.dtype = {dtype.name}: must be .*ACL_INT8"
        refused(op, INVALID, pattern, indices=INDICES.but(dtype=dtype))


@pytest.mark.parametrize("fmt", a.aclFormat, ids=lambda fmt: fmt.name)
def test_format(op, fmt):
    names = "|".join(REALS[op])
    if fmt in PLAIN_FORMATS:
        phase1(op, **every_real(op, format=fmt))
    else:
        refused(op, INVALID, rf"^({names})\.format = {fmt.name}: must ", **every_real(op, format=fmt))
    for name in REALS[op]:
        if fmt != a.ACL_FORMAT_NCHW:
            changes = {name: arguments(op)[name].but(format=fmt)}
            refused(op, INVALID, rf"^({names})\.format = ACL_\w+: must ", fmt.name, **changes)
    if fmt in PRIVATE_FORMATS:
        pattern = rf"^indices\.format = {fmt.name}: must not be a private format$"
        refused(op, INVALID, pattern, indices=INDICES.but(format=fmt))
    else:
        phase1(op, indices=INDICES.but(format=fmt))


@pytest.mark.parametrize("shape", [(), (8,), (8, 8), (1, 2, 3, 8, 8)], ids=str)
def test_rank(op, shape):
    fmt = a.ACL_FORMAT_NCHW
    names = "|".join((*REALS[op], "indices"))
    refused(op, INVALID, rf"^({names})\.rank = {len(shape)}: must ", **every_real(op, shape=shape, format=fmt))
    for name in (*REALS[op], "indices"):
        spec = arguments(op)[name]
        for other in (shape, spec.shape[1:]):
            changes = {name: spec.but(shape=other, format=fmt)}
            refused(op, INVALID, rf"^({names})\.rank = \d: must ", **changes)


# ---- attributes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("value", [(), (1, 1, 1), (1,) * 20], ids=str)
def test_attribute_length(op, name, value):
    if name == "stride" and not value:
        phase1(op, stride=value)
        return
    message = rf"^len\({name}\) = {len(value)}: must be {0 if name == 'stride' else 1} to 2$"
    refused(op, INVALID, message, **{name: value})
    refused(op, INVALID, message, **{name: a.aclCreateIntArray(value, len(value))})


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("kernelSize", (0, -1, -(2**63)), r"(>= 1|> 0)"),
        ("stride", (0, -2, -(2**63)), r"(>= 1|> 0)"),
        ("padding", (-1, -(2**63)), r">= 0"),
        ("padding", (2, 2**63 - 1), r"<= kernelSize\[{axis}\] / 2 = 1"),
        ("dilation", (2, 3, 2**63 - 1), r"1"),
        ("dilation", (0, -1, -(2**63)), r"(1|>= 1|> 0)"),
    ],
)
def test_attribute_value(op, name, values, rule, axis):
    for value in values:
        pair = list(arguments(op)[name])
        pair[axis] = value
        message = rf"^{name}\[{axis}\] = {value}: must be {rule.format(axis=axis)}$"
        refused(op, INVALID, message, **{name: pair})
    refused(op, INVALID, rf"^{name}\[0\] = {values[0]}: ", **{name: (values[0],)})


def test_padding_beyond_half_of_an_odd_kernel(op):
    refused(op, INVALID, r"^padding\[1\] = 2: must be <= kernelSize\[1\] / 2 = 1$", kernelSize=(3, 3), padding=(1, 2))


@pytest.mark.parametrize("name", PAIRS)
def test_attribute_of_another_type(host_op, name):
    for value in (2, True, 2.0, "22", (2.0, 2), (True, 2), (None, 2), np.array([2.0, 2.0]), object()):
        with pytest.raises(TypeError, match=name):
            phase1(host_op, **{name: value})
    for value in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError, match=name):
            phase1(host_op, **{name: (2, value)})


def test_other_arguments_of_another_type(host_op):
    for value in (None, "no", 0.5, ()):
        with pytest.raises(TypeError, match="ceilMode"):
            phase1(host_op, ceilMode=value)
    for name in (*REALS[host_op], "indices"):
        for value in ([[[1.0]]], 1.0, "tensor", (2, 3, 8, 8), object()):
            with pytest.raises(TypeError, match=name):
                phase1(host_op, **{name: value})
    for first, second in itertools.combinations(ORDER[host_op], 2):
        with pytest.raises(TypeError, match=rf"^{first}\b"):
            phase1(host_op, **{first: object(), second: object()})


# ---- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 5, 4), (2, 3, 3, 4), (2, 4, 4, 4), (1, 3, 4, 4), (2, 3, 0, 4)])
def test_pooled_shape(op, shape):
    name = "gradOutput" if op else "out"
    pattern = rf"^{name}\.shape = {re.escape(str(shape))}: expected \(2, 3, 4, 4\), pooled from self \("
    refused(op, INVALID, pattern, **{name: OUT.but(shape=shape)})


@pytest.mark.parametrize("shape", [(2, 3, 8, 10), (2, 3, 10, 8), (2, 4, 8, 8), (1, 3, 8, 8), (2, 3, 8, 7)])
def test_image_shapes(op, shape):
    for name in ("self", "gradInput") if op else ("self",):
        refused(op, INVALID, r"^\w+\.shape = \(.*: (must be .*|expected )\(", **{name: SELF.but(shape=shape)})


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3, 4, 63), (2, 3, 4, 65), (2, 3, 4, 32), (2, 3, 4, 96), (2, 3, 64, 4), (2, 3, 3, 64), (2, 1, 4, 64),
        (1, 3, 4, 64), (3, 2, 4, 64), (2, 3, 4, 0), (2, 3, 2, 128),
    ],
)  # fmt: skip
def test_mask_shape(op, shape):
    pattern = rf"^indices\.shape = {re.escape(str(shape))}: (must be .*|expected )\(2, 3, 4, 64\)$"
    refused(op, INVALID, pattern, indices=INDICES.but(shape=shape))


def test_mask_shape_of_rank_3(op):
    changes = resized(op, (3, 4, 4), (3, 8, 8), (3, 4, 64))
    for shape in ((3, 4, 32), (1, 4, 64), (3, 1, 64)):
        changes["indices"] = INDICES.but(shape=shape)
        refused(op, INVALID, rf"^indices\.shape = {re.escape(str(shape))}: must be .*\(3, 4, 64\)$", **changes)


def test_mask_is_c_contiguous(op):
    size = int(np.prod(INDICES.shape))
    for strides in ((1, 128, 32, 2), (768, 256, 64, -1), (768, 256, 1, 4), (256, 512, 64, 1), (768, 256, 64, 0)):
        offset = 63 if strides[3] < 0 else 0
        wrong = INDICES.but(strides=strides, storage=(2 * size,), offset=offset)
        refused(op, INVALID, r"^indices\b.*contiguous", indices=wrong)
    # The stride of an axis of one element says nothing.
    changes = resized(op, (1, 3, 4, 4), (1, 3, 8, 8), (1, 3, 4, 64))
    phase1(op, **{**changes, "indices": changes["indices"].but(strides=(5, 256, 64, 1))})


def test_ceil_mode_decides_the_shape(op):
    for ceil_mode, right, wrong in ((False, 4, 5), (True, 5, 4)):
        masks = {4: (2, 3, 4, 64), 5: (2, 3, 4, 96)}
        pooled = {size: (2, 3, size, size) for size in masks}
        phase1(op, **resized(op, pooled[right], (2, 3, 9, 9), masks[right]), ceilMode=ceil_mode)
        changes = resized(op, pooled[wrong], (2, 3, 9, 9), masks[wrong])
        refused(op, INVALID, r"^(gradOutput|out)\.shape = ", **changes, ceilMode=ceil_mode)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("rank", [3, 4])
def test_zero_sizes(op, rank, axis):
    for batch in {2, 0} if rank == 4 else {2}:
        shapes = [[batch, 3, 4, 4], [batch, 3, 8, 8], [batch, 3, 4, 64]]
        for shape in shapes[: 3 if axis == 1 else 2]:
            shape[axis] = 0
        changes = resized(op, *(tuple(shape[-rank:]) for shape in shapes))
        refused(op, INVALID, r"^(gradOutput|self|gradInput|out)\.shape = \(.*0.*: .*must ", **changes)


def test_no_window_fits(op):
    changes = resized(op, (2, 3, 1, 1), (2, 3, 8, 8), (2, 3, 81, 64))
    refused(op, INVALID, r"^(self|gradOutput|out|kernelSize)\b.* = .*: ", kernelSize=(9, 9), **changes)


@pytest.mark.parametrize("value", [2**31, 2**40, 2**61, 2**62, 2**63 - 1])
def test_absurd_geometry_does_not_overflow(op, value):
    for changes in (
        {"kernelSize": (value, value)},
        {"kernelSize": (value,), "padding": (value // 2,)},
        {"kernelSize": (value, 2), "padding": (value // 2, 0), "stride": (1, 1)},
        {"kernelSize": (value,), "padding": (value // 2,), "stride": (value,), "ceilMode": True},
        {"stride": (value,)},
        {"stride": (value, 2), "ceilMode": True},
    ):
        refused(op, INVALID, r"^(self|gradOutput|out|kernelSize|indices)\b", **changes)


@pytest.mark.parametrize("size", [2**31, 2**47, 2**62])
def test_sizes_that_no_machine_has(host_op, size):
    """Unbound tensors, so that nothing is allocated."""
    for large in ((1, 1, size, 2), (1, size, 2, 2), (size, 3, 2, 2), (1, size, size, size)):
        changes = resized(host_op, (1, 1, 1, 1), large, (1, 1, 4, 64))
        changes = {name: spec.but(bound=False) for name, spec in changes.items()}
        with pytest.raises((a.AclnnError, OverflowError, MemoryError)):
            phase1(host_op, **changes)
    for shape in ((1, 1, size, size), (size, size, 2, 2)):
        with pytest.raises((a.AclnnError, MemoryError)):
            a.max_pool2d_with_mask_backward(np.zeros((1, 1, 1, 1)), shape, np.zeros((1, 1, 4, 64), np.int8), 2)


def test_argmax_indices_fit_32_bits(host_op):
    """Planes of more than 2**31 - 1 elements are refused where the index is stored, and only there."""
    unbound = resized(host_op, (1, 1, 1, 1), (1, 1, 2**16, 2**15), (1, 1, 4, 64))
    unbound = {name: spec.but(bound=False) for name, spec in unbound.items()}
    unbound["stride"] = (2**31, 2**31)
    phase1(host_op, **unbound)
    with a.soc("Host", mask_layout="argmax"):
        refused(
            host_op, INVALID, r"^(self|gradInput)\.shape = \(1, 1, 65536, 32768\): .*(2147483647|2\*\*31)", **unbound
        )
        changes = resized(host_op, (1, 1, 1, 1), (1, 1, 2**31 - 1, 1), (1, 1, 2, 64))
        changes = {name: spec.but(bound=False) for name, spec in changes.items()}
        phase1(host_op, **changes, kernelSize=(2, 1), stride=(2**31, 1))
        # A 1x1 kernel has no room for the index: its mask is a bitmask in either layout.
        phase1(host_op, **{**unbound, "indices": INDICES.but(shape=(1, 1, 1, 64), bound=False), "kernelSize": (1, 1)})


def test_argmax_indices_fit_32_bits_in_one_call():
    small, mask, shape = np.zeros((1, 1, 1, 1), np.float32), np.zeros((1, 1, 4, 64), np.int8), (1, 1, 2**16, 2**15)
    with refusal(INVALID, r"^self\.shape = \(1, 1, 65536, 32768\): .*(2147483647|2\*\*31)"):
        a.max_pool2d_with_mask_backward(small, shape, mask, 2, 2**31, mask_layout="argmax")
    with refusal(INVALID, r"^self\.shape = \(1, 1, 65536, 32768\): .*(2147483647|2\*\*31)"):
        a.max_pool2d_with_mask(np.broadcast_to(small, shape), 2, 2**31, mask_layout="argmax")


# ---- the memory that the tensors lie in ------------------------------------------------------------------------------


def test_memory(op):
    for name in WRITTEN[op]:
        spec = arguments(op)[name].but(writable=False)
        refused(op, INVALID, rf"^{name} is read-only: must be writable$", **{name: spec})
    for name in READ[op]:
        phase1(op, **{name: arguments(op)[name].but(writable=False)})
    for name in (*REALS[op], "indices"):
        spec = arguments(op)[name]
        if name in ("indices", "self") and (name == "indices" or op):
            phase1(op, indices=INDICES.but(aligned=False))  # a byte lies anywhere
        else:
            pattern = rf"^{name} is misaligned: its address must be a multiple"
            refused(op, INVALID, pattern, **{name: spec.but(aligned=False)})
        size = int(np.prod(spec.shape))
        phase1(op, **{name: spec.but(storage=(size,))})
        for wrong in (spec.but(storage=(size - 1,)), spec.but(offset=1), spec.but(offset=-1)):
            refused(op, INVALID, rf"^{name}\.strides = .* leaves its storage", **{name: wrong})
    name = "gradInput" if op else "out"
    strides = (192, 64, 0, 1) if op else (48, 16, 0, 1)
    pattern = rf"^{name}\.strides = .* must not overlap$"
    refused(op, INVALID, pattern, **{name: arguments(op)[name].but(strides=strides)})


def placed(spec, memory, first):
    """The tensor at byte `first` of the memory, and how many bytes it has."""
    size = int(np.prod(spec.shape)) * NUMPY_DTYPE[spec.dtype].itemsize
    part = memory[first : first + size]
    return a.aclCreateTensor(spec.shape, spec.dtype, None, 0, spec.acl_format, spec.shape, part)


def test_overlap(op):
    """By one element at either end; side by side is fine."""
    for written in WRITTEN[op]:
        others = [name for name in (*READ[op], *WRITTEN[op]) if name != written]
        for other in others:
            specs = arguments(op)[written], arguments(op)[other]
            sizes = [int(np.prod(spec.shape)) * NUMPY_DTYPE[spec.dtype].itemsize for spec in specs]
            for shift in (sizes[0] - 4, 4 - sizes[1]):
                memory, start = sentinels(2**15), 2**13
                tensors = {written: placed(specs[0], memory, start), other: placed(specs[1], memory, start + shift)}
                with refusal(INVALID, rf"^({written} overlaps {other}|{other} overlaps {written}): "):
                    phase1(op, **tensors)
                assert untouched(memory)
                tensors[other] = placed(specs[1], memory, start + shift + (4 if shift > 0 else -4))
                phase1(op, **tensors)
    if op:
        memory = sentinels(2**15)
        tensor = placed(SELF, memory, 0)
        phase1(op, self=tensor, gradInput=tensor)  # self gives its shape alone
        phase1(op, self=placed(SELF, memory, 64), gradInput=tensor)


# ---- the order of the checks -----------------------------------------------------------------------------------------


def faults(op):
    written, read, image = WRITTEN[op][0], READ[op][0], REALS[op][0]
    fmt = a.aclFormat.ACL_FORMAT_NC1HWC0
    overlapping = {"strides": (192, 64, 1, 1) if op else (48, 16, 1, 1)}
    return {
        "conversion": ({"ceilMode": "yes"}, TypeError, "ceilMode"),
        "null": ({"dilation": None}, NULL, r"^dilation = None"),
        "dtype": ({"indices": {"dtype": a.ACL_UINT8}}, INVALID, r"^indices\.dtype = ACL_UINT8"),
        "format": ({image: {"format": fmt}}, INVALID, rf"^{image}\.format = {fmt.name}"),
        "length": ({"stride": (1, 2, 3)}, INVALID, r"^len\(stride\) = 3"),
        "value": ({"kernelSize": (0, 2)}, INVALID, r"^kernelSize\[0\] = 0"),
        "shape": ({"indices": {"shape": (2, 3, 4, 32)}}, INVALID, r"^indices\.shape = "),
        "writability": ({written: {"writable": False}}, INVALID, f"^{written} is read-only"),
        "alignment": ({read: {"aligned": False}}, INVALID, f"^{read} is misaligned"),
        "bounds": ({read: {"storage": (5,)}}, INVALID, rf"^{read}\.strides.*storage"),
        "overlap": ({written: overlapping}, INVALID, rf"^{written}\.strides.*overlap"),
    }


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations_with_replacement(faults(""), 2)), ids=str)
def test_the_earlier_fault_speaks(op, first, second):
    both = arguments(op)
    for changes, _, _ in (faults(op)[second], faults(op)[first]):
        for name, value in changes.items():
            both[name] = both[name].but(**value) if isinstance(value, dict) else value
    _, status, pattern = faults(op)[first]
    if status is TypeError:
        with pytest.raises(TypeError, match=pattern):
            phase1(op, **both)
    else:
        refused(op, status, pattern, **both)


# ---- the one-call functions ------------------------------------------------------------------------------------------


def backward(out=None, mask_layout="bitmask", **changes):
    legal = {"grad_output": zeros(2, 3, 4, 4), "self": (2, 3, 8, 8), "mask": mask(2, 3, 4, 64), "kernel_size": 2}
    legal |= {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False}
    assert set(changes) <= set(legal)
    return a.max_pool2d_with_mask_backward(*{**legal, **changes}.values(), mask_layout=mask_layout, out=out)


def forward(mask_layout="bitmask", **changes):
    legal = {"self": zeros(2, 3, 8, 8), "kernel_size": 2, "stride": None, "padding": 0, "dilation": 1}
    assert set(changes) <= {*legal, "ceil_mode"}
    return a.max_pool2d_with_mask(**{**legal, **changes}, mask_layout=mask_layout)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def mask(*shape):
    return np.zeros(shape, np.int8)


BOTH = {
    "null self": ({"self": None}, NULL, "^self = None: must not be null$"),
    "null kernel_size": ({"kernel_size": None}, NULL, "^kernel_size = None: must not be null$"),
    "null padding": ({"padding": None}, NULL, "^padding = None: must not be null$"),
    "null dilation": ({"dilation": None}, NULL, "^dilation = None: must not be null$"),
    "rank of self": ({"self": zeros(8, 8)}, INVALID, r"^(grad_output|self|out)\.(rank|format) = .*: must "),
    "length": ({"kernel_size": (2, 2, 2)}, INVALID, r"^len\(kernel_size\) = 3: must be 1 to 2$"),
    "no padding": ({"padding": ()}, INVALID, r"^len\(padding\) = 0: must be 1 to 2$"),
    "kernel_size": ({"kernel_size": (2, 0)}, INVALID, r"^kernel_size\[1\] = 0: must be (>= 1|> 0)$"),
    "bare kernel_size": ({"kernel_size": 0}, INVALID, r"^kernel_size = 0: must be (>= 1|> 0)$"),
    "stride": ({"stride": (2, -1)}, INVALID, r"^stride\[1\] = -1: must be (>= 1|> 0)$"),
    "padding": ({"padding": -1}, INVALID, r"^padding = -1: must be >= 0$"),
    "padding too big": ({"padding": (0, 2)}, INVALID, r"^padding\[1\] = 2: must be <= kernel_size / 2 = 1$"),
    "dilation": ({"dilation": 2}, INVALID, r"^dilation = 2: must be 1$"),
    "dilation pair": ({"dilation": (1, 3)}, INVALID, r"^dilation\[1\] = 3: must be 1$"),
    "layout": ({"mask_layout": "words"}, INVALID, r"^mask_layout = 'words': must be one of 'bitmask', 'argmax'$"),
    "zero channels": ({"self": zeros(2, 0, 8, 8)}, INVALID, r"^(self|grad_output)\.shape = "),
    "window": ({"kernel_size": 9}, INVALID, r"^(self|grad_output|kernel_size)\b.* = .*: "),
}
BACKWARD = {
    "null grad_output": ({"grad_output": None}, NULL, "^grad_output = None: must not be null$"),
    "null mask": ({"mask": None}, NULL, "^mask = None: must not be null$"),
    "dtype": (
        {"grad_output": zeros(2, 3, 4, 4, dtype="i4")},
        INVALID,
        r"^grad_output\.dtype = int32: must be one of",
    ),
    "dtype of self": ({"self": zeros(2, 3, 8, 8, dtype="d")}, INVALID, r"^(grad_output|self)\.dtype = \w+: must "),
    "dtype of out": ({"out": zeros(2, 3, 8, 8, dtype="d")}, INVALID, r"^(grad_output|out)\.dtype = \w+: must "),
    "dtype of mask": ({"mask": mask(2, 3, 4, 64).view("u1")}, INVALID, r"^mask\.dtype = uint8: must be .*int8"),
    "rank of mask": ({"mask": mask(3, 4, 64)}, INVALID, r"^(mask|self|grad_output)\.rank = \d: must "),
    "rank of out": ({"out": zeros(3, 8, 8)}, INVALID, r"^(grad_output|self|out)\.(rank|format) = .*: must "),
    "shape": (
        {"grad_output": zeros(2, 3, 4, 5)},
        INVALID,
        r"^grad_output\.shape = \(2, 3, 4, 5\): expected \(2, 3, 4, 4\), pooled from self \(",
    ),
    "shape of mask": (
        {"mask": mask(2, 3, 4, 32)},
        INVALID,
        r"^mask\.shape = \(2, 3, 4, 32\): must be .*\(2, 3, 4, 64\)$",
    ),
    "shape of out": ({"out": zeros(2, 3, 8, 9)}, INVALID, r"^(out|self)\.shape = .*: must "),
    "strides of mask": ({"mask": mask(2, 3, 4, 128)[..., ::2]}, INVALID, r"^mask\b.*contiguous"),
    "negative shape": ({"self": (2, 3, -8, 8)}, INVALID, r"^self\b.*-8"),
    "ceil mode": (
        {"self": (2, 3, 9, 9), "ceil_mode": True},
        INVALID,
        r"^grad_output\.shape = .*expected \(2, 3, 5, 5\), pooled from self \(",
    ),
}
FORWARD = {"dtype": ({"self": zeros(2, 3, 8, 8, dtype="i4")}, INVALID, r"^self\.dtype = int32: must be one of")}


@pytest.mark.parametrize(
    ("function", "case"),
    [(backward, case) for case in (BOTH | BACKWARD).items()] + [(forward, case) for case in (BOTH | FORWARD).items()],
    ids=lambda value: value[0] if isinstance(value, tuple) else value.__name__,
)
def test_one_call_refuses(function, case):
    changes, status, pattern = case[1]
    out = changes.get("out")
    if out is not None:
        out[...] = 7
    with refusal(status, pattern) as info:
        function(**changes)
    message = str(info.value)
    assert not re.search(r"gradOutput|kernelSize|indices|gradInput", message), f"a two-phase name in {message!r}"
    assert a.aclGetRecentErrMsg() == message
    assert out is None or np.all(out == 7)


def test_one_call_refuses_memory():
    out = zeros(2, 3, 8, 8)
    out.flags.writeable = False
    with refusal(INVALID, "^out is read-only: must be writable$"):
        backward(out=out)
    memory = sentinels(2**13).view(np.float32)
    with refusal(INVALID, "^out overlaps grad_output: "):
        backward(grad_output=memory[300:396].reshape(2, 3, 4, 4), out=memory[:384].reshape(2, 3, 8, 8))
    with refusal(INVALID, "^out overlaps mask: "):
        backward(mask=memory[383:767].view(np.int8).reshape(2, 3, 4, 64), out=memory[:384].reshape(2, 3, 8, 8))
    assert untouched(memory)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("self", 1.0), ("self", "8888"), ("kernel_size", 2.0), ("kernel_size", True), ("stride", "2"),
        ("padding", False), ("padding", (0, None)), ("dilation", 1.0), ("dilation", {1: 1}), ("mask_layout", None),
        ("mask_layout", 0), ("mask_layout", b"argmax"),
    ],
    ids=label,
)  # fmt: skip
def test_one_call_of_another_type(name, value):
    for function in (backward, forward):
        with pytest.raises(TypeError, match=rf"\b{name}\b"):
            function(**{name: value})
    for name, value in (("grad_output", 1.0), ("mask", [[1]]), ("mask", 1), ("ceil_mode", "no"), ("out", (2, 3, 8, 8))):
        with pytest.raises(TypeError, match=rf"\b{name}\b"):
            backward(**{name: value})
    for value in ((2, 3, 8, 8), None, 2**63):
        with pytest.raises((TypeError, a.AclnnError), match=r"\bself\b"):
            forward(self=value)  # a shape has no values


@pytest.mark.parametrize("name", ["kernel_size", "stride", "padding", "dilation"])
def test_one_call_beyond_int64(name):
    for function, value in itertools.product((backward, forward), (2**63, -(2**63) - 1)):
        with pytest.raises(OverflowError, match=rf"\b{name}\b"):
            function(**{name: value})


def test_one_call_keeps_to_the_host_rules():
    with a.soc("Ascend310P", mask_layout="argmax"):
        out, words = a.max_pool2d_with_mask(np.arange(16.0).reshape(1, 4, 4), 2)
        assert out.dtype == np.float64
        assert np.flatnonzero(words.reshape(-1).view("<u2")).tolist() == [96, 97, 98, 99]  # bitmask is the default
        assert a.max_pool2d_with_mask_backward(out, (1, 4, 4), words, 2).sum() == out.sum()


@pytest.mark.parametrize("fmt", [a.ACL_FORMAT_ND, a.ACL_FORMAT_NCHW, a.ACL_FORMAT_NCL], ids=lambda fmt: fmt.name)
def test_a_shape_has_no_format_of_its_own(fmt):
    """It takes that of grad_output."""
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    out, mask = a.max_pool2d_with_mask(x, 2)
    grad = a.aclCreateTensor(out.shape, a.ACL_FLOAT, None, 0, fmt, out.shape, out)
    result = a.max_pool2d_with_mask_backward(grad, x.shape, mask, 2)
    assert np.array_equal(result, a.max_pool2d_with_mask_backward(out, x, mask, 2))
    assert np.array_equal(a.replication_pad2d_backward(grad, (1, 2, 2), 0), out)
