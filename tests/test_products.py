"""Which product's rules hold: the process default, the environment, and the context; and what the products take."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest
from engine_helpers import NUMPY_DTYPE, PRODUCTS, Spec, handle_of, label, phase1, refusal, run_python, specs
from operators import OPERATORS, TAKEN, each_operator
from operators.base import REAL

import aclnn_bw as a

NULL, INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_NULLPTR, a.AclnnStatus.ACLNN_ERR_PARAM_INVALID
each_product = pytest.mark.parametrize("product", PRODUCTS)


@pytest.fixture(autouse=True)
def restored():
    before = a.aclrtGetSocName()
    yield
    a.aclrtSetSocName(before)


def takes_float64():
    """Whether the rules in force are those of the Host, as phase 1 sees them."""
    arrays = np.ones((1, 1, 2, 2)), np.zeros((1, 1, 4, 4))
    try:
        a.aclnnAvgPool2dBackwardGetWorkspaceSize(arrays[0], arrays[1], [2], [2], [0], False, True, 0, 0, arrays[1])
    except a.AclnnError:
        return False
    return True


def test_the_default():
    assert run_python("import aclnn_bw; print(aclnn_bw.aclrtGetSocName())").stdout.strip() == "Ascend910B"


@pytest.mark.parametrize("name", PRODUCTS)
def test_set_and_get(name):
    a.aclrtSetSocName(name)
    assert a.aclrtGetSocName() == name
    assert takes_float64() == (name == "Host")
    seen = []
    thread = threading.Thread(target=lambda: seen.append((a.aclrtGetSocName(), takes_float64())))
    thread.start()
    thread.join()
    assert seen == [(name, name == "Host")]


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("Ascend910B3", "Ascend910B"), ("ascend910b4-1", "Ascend910B"), ("ASCEND910B2C", "Ascend910B"),
        ("Ascend910A", "Ascend910"), ("Ascend910ProB", "Ascend910"), ("ascend910premiuma", "Ascend910"),
        ("Ascend310P3", "Ascend310P"), ("ascend310p", "Ascend310P"), ("host", "Host"),
    ],
)  # fmt: skip
def test_a_chip_stands_for_its_series_in_any_case(name, series):
    a.aclrtSetSocName(name)
    assert a.aclrtGetSocName() == series
    with a.soc(name):
        assert a.aclrtGetSocName() == series
    code = "import aclnn_bw; print(aclnn_bw.aclrtGetSocName())"
    assert run_python(code, environment={"ACLNN_BW_SOC": name}).stdout.strip() == series


@pytest.mark.parametrize(
    "name",
    ["", "Ascend", "Ascend910B1 ", "Host1", "Ascend950", "Host\0", "é", "Ascend910_9391", "Ascend910Bé", "Ascend310"],
)
def test_unknown_names(name):
    before = a.aclrtGetSocName()
    with refusal(INVALID, *PRODUCTS) as info:
        a.aclrtSetSocName(name)
    if name:
        assert name.split("\0")[0] in str(info.value)
    with refusal(INVALID, *PRODUCTS), a.soc(name):
        pass
    assert a.aclrtGetSocName() == before


@pytest.mark.parametrize("name", [None, 5, b"Host", ["Host"]], ids=label)
def test_names_of_another_type(name):
    with pytest.raises(TypeError):
        a.aclrtSetSocName(name)
    with pytest.raises(TypeError), a.soc(name):
        pass


def test_the_context_wins_and_ends():
    a.aclrtSetSocName("Ascend910B")
    with a.soc("Host"):
        assert a.aclrtGetSocName() == "Host"
        assert takes_float64()
        with a.soc("Ascend310P"):
            assert a.aclrtGetSocName() == "Ascend310P"
            assert not takes_float64()
        assert takes_float64()
        a.aclrtSetSocName("Ascend910")
        assert a.aclrtGetSocName() == "Host"
    assert a.aclrtGetSocName() == "Ascend910"
    with pytest.raises(KeyError), a.soc("Host"):
        raise KeyError
    assert a.aclrtGetSocName() == "Ascend910"


def test_a_context_manager_serves_again_and_within_itself():
    host = a.soc("Host")
    for _ in range(2):
        with host:
            assert a.aclrtGetSocName() == "Host"
        assert a.aclrtGetSocName() != "Host"


def test_the_context_is_of_this_context_only():
    a.aclrtSetSocName("Ascend910B")
    seen = []
    with a.soc("Host"):
        thread = threading.Thread(target=lambda: seen.append((a.aclrtGetSocName(), takes_float64())))
        thread.start()
        thread.join()
        kept = contextvars.copy_context()
    assert seen == [("Ascend910B", False)]
    assert kept.run(a.aclrtGetSocName) == "Host"
    assert kept.run(takes_float64)
    assert not takes_float64()


def test_the_context_in_coroutines():
    async def one(name):
        seen = []
        with a.soc(name):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append((a.aclrtGetSocName() == name, takes_float64() == (name == "Host")))
        return seen

    async def main():
        return await asyncio.gather(*map(one, PRODUCTS))

    assert asyncio.run(main()) == [[(True, True)] * 3] * 4


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_mask_layouts_are_known(layout):
    with a.soc("Ascend910B", mask_layout=layout):
        assert a.aclrtGetSocName() == "Ascend910B"
        assert phase1(specs())[0] >= 0


def test_mask_layout_is_a_keyword():
    with pytest.raises(TypeError):
        a.soc("Host", "bitmask")


@pytest.mark.parametrize("layout", ["", "Bitmask", "indices"])
def test_unknown_mask_layouts(layout):
    with refusal(INVALID, "mask_layout", "bitmask", "argmax"), a.soc("Host", mask_layout=layout):
        pass


@pytest.mark.parametrize("layout", [None, 5], ids=label)
def test_mask_layouts_of_another_type(layout):
    with pytest.raises(TypeError, match="mask_layout"), a.soc("Host", mask_layout=layout):
        pass


@pytest.mark.parametrize("name", PRODUCTS)
def test_environment(name):
    code = "import aclnn_bw as a; print(a.aclrtGetSocName()); a.aclrtSetSocName('Host'); print(a.aclrtGetSocName())"
    assert run_python(code, environment={"ACLNN_BW_SOC": name}).stdout.split() == [name, "Host"]


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
def test_environment_of_the_mask_layout(layout):
    code = """
        import numpy as np
        import aclnn_bw as a

        def layout():
            # The maximum is at index 2 of the plane, which is kernel position 2 as well.
            x, out = np.array([[[1, 1], [2, 1]]], np.float32), np.empty((1, 1, 1), np.float32)
            mask = np.empty((1, 4, 64), np.int8)
            phases = a.aclnnMaxPool2dWithMaskGetWorkspaceSize(x, [2], [], [0], [1], False, out, mask)
            a.aclnnMaxPool2dWithMask(bytearray(phases[0]), *phases)
            return {(0, 2): "argmax", (128, 1): "bitmask"}[int(np.flatnonzero(mask)[0]), int(mask.max())]

        print(a.aclrtGetSocName(), layout())
        a.aclrtSetSocName("Ascend910")
        print(layout())
        for wanted in ("bitmask", "argmax"):
            with a.soc("Host", mask_layout=wanted):
                print(layout())
        with a.soc("Host"):  # a context says both
            print(layout())
    """
    printed = run_python(code, environment={"ACLNN_BW_MASK_LAYOUT": layout}).stdout.split()
    assert printed == ["Ascend910B", layout, layout, "bitmask", "argmax", "bitmask"]


@pytest.mark.parametrize(("variable", "value"), [("ACLNN_BW_SOC", "Ascend911"), ("ACLNN_BW_MASK_LAYOUT", "bits")])
def test_environment_that_makes_no_sense(variable, value):
    # Whoever reads the output learns which variable is wrong and what it held.
    done = run_python(
        "import aclnn_bw as a; a.aclrtGetSocName()", environment={variable: value}, check=False, warnings="default"
    )
    assert variable in done.stderr
    assert value in done.stderr


# dtype x product x operator


def unbound(array, dtype):
    return handle_of(array, dtype, bound=False)


def tiny(operator, **options):
    """(a call over one 4x4 plane, its real tensors: those whose dtype is the operator's; first what speaks first)"""
    call = operator((1, 1, 4, 4), **options)
    return call, sorted((name for name in call.roles if name != "indices"), key=lambda name: name != operator.leads)


@each_product
@each_operator
def test_every_dtype_on_every_product(operator, product):
    call, names = tiny(operator)
    taken = TAKEN[operator.__name__][product]
    with a.soc(product):
        for dtype in NUMPY_DTYPE:
            tensors = {name: unbound(call[name], dtype) for name in names}
            if dtype in taken:
                size, executor = call.phase1(**tensors)
                assert size >= 0
                a.aclDestroyAclOpExecutor(executor)
            elif taken:
                allowed = ", ".join(known.name for known in sorted(taken))
                rule = rf"^{names[0]}\.dtype = {dtype.name}: must be one of {allowed} on {product}$"
                with refusal(INVALID, rule):
                    call.phase1(**tensors)
            else:
                with refusal(INVALID, rf"^{product} does not have {operator.__name__}$"):
                    call.phase1(**tensors)


@each_product
@each_operator
def test_every_dtype_gives_right_results_on_every_product(operator, product):
    # Small integers are exact in whatever a product rounds to.
    for dtype in TAKEN[operator.__name__][product]:
        for layout in ("bitmask", "argmax"):
            call = operator(dtype=NUMPY_DTYPE[dtype], layout=layout)
            with a.soc(product, mask_layout=layout):
                call.run()
            call.check()


@each_product
@each_operator
def test_mixed_dtypes(operator, product):
    call, names = tiny(operator)
    taken = TAKEN[operator.__name__][product]
    real = {one for one in taken if NUMPY_DTYPE[one].name in REAL} if "Im2col" in operator.__name__ else set()
    with a.soc(product):
        for dtype in taken:
            for other in NUMPY_DTYPE:
                for name in names[1:]:
                    tensors = {n: unbound(call[n], other if n == name else dtype) for n in names}
                    if other == dtype or {other, dtype} <= real:
                        call.phase1(**tensors)
                    else:
                        with refusal(INVALID, rf"^{name}\.dtype = {other.name}: must "):
                            call.phase1(**tensors)


@pytest.mark.parametrize(
    ("operator", "product"),
    [
        (operator, product)
        for operator in ("MaxPool2dWithMaskBackward", "MaxPool2dWithMask")
        for product, taken in TAKEN[operator].items()
        if taken
    ],
)
def test_a_mask_is_of_int8(operator, product):
    call, _ = tiny(OPERATORS[operator])
    with a.soc(product):
        for dtype in NUMPY_DTYPE:
            if dtype == a.ACL_INT8:
                call.phase1(indices=unbound(call["indices"], dtype))
            else:
                with refusal(INVALID, rf"^indices\.dtype = {dtype.name}: must be ACL_INT8$"):
                    call.phase1(indices=unbound(call["indices"], dtype))


@each_product
@each_operator
def test_the_missing_operator_speaks_after_null_and_before_all_else(operator, product):
    call, names = tiny(operator)
    wrong = {name: Spec((2,) * 6, a.ACL_BOOL, a.aclFormat.ACL_FORMAT_FRACTAL_Z, bound=False).build() for name in names}
    wrong |= {name: () for name, value in call.arguments.items() if isinstance(value, tuple)}
    missing = not TAKEN[operator.__name__][product]
    with a.soc(product):
        with refusal(INVALID, rf"does not have {operator.__name__}" if missing else rf"^{names[0]}\.(dtype|format)"):
            call.phase1(**wrong)
        for name, value in call.arguments.items():
            if (name in call.roles or isinstance(value, tuple)) and name not in operator.nullable:
                with refusal(NULL, f"^{name} = None: must not be null$"):
                    call.phase1(**{**wrong, name: None})


@each_operator
def test_one_call_functions_follow_the_host(operator):
    for dtype in TAKEN[operator.__name__]["Host"]:
        for layout in ("bitmask", "argmax"):
            call = operator(dtype=NUMPY_DTYPE[dtype], layout=layout)
            for product in PRODUCTS:
                # Neither the product nor the mask layout of the two phases matters.
                with a.soc(product, mask_layout="argmax"):
                    results = call.one_call()
                assert [r.tobytes() for r in results] == [value.tobytes() for value in call.wanted.values()]


def test_host_has_no_reduced_precision():
    fine = np.float32(1 + 2.0**-20)
    for operator in ("MaxPool2dWithMaskBackward", "MaxPool2dWithMask", "AvgPool2dBackward"):
        call = OPERATORS[operator]((1, 1, 2, 2), kernel=(1, 1), stride=(1, 1), padding=(0, 0))
        first = call.named("read")[0]
        call[first][...] = fine
        if operator == "MaxPool2dWithMaskBackward":
            call["indices"].view("<u2")[..., :4] = 1
        with a.soc("Host"):
            call.run()
        assert np.all(next(iter(call.outputs.values())) == fine), operator


def test_bfloat16_pads_of_the_ascend910b():
    # Up to 7 on each side, or any width where no row is added.
    for padding, good in (
        ((7, 7, 7, 7), True),
        ((8, 9, 0, 0), True),
        ((8, 0, 1, 0), False),
        ((0, 0, 0, 8), False),
        ((0, 8, 0, 1), False),
    ):
        for dtype in (a.ACL_FLOAT, a.ACL_FLOAT16, a.ACL_BF16):
            call = OPERATORS["ReplicationPad2dBackward"]((1, 1, 10, 10), NUMPY_DTYPE[dtype], padding=padding)
            for product in ("Ascend910B", "Host"):
                with a.soc(product):
                    if good or dtype != a.ACL_BF16 or product == "Host":
                        call.run()
                        call.check()
                    else:
                        with refusal(INVALID, "^padding"):
                            call.run()
