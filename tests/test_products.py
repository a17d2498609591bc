"""Which product's rules hold: the process default, the environment, and the context."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest
from engine_helpers import PRODUCTS, label, phase1, refusal, run_python, specs

import aclnn_bw as a

INVALID = a.AclnnStatus.ACLNN_ERR_PARAM_INVALID


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


@pytest.mark.parametrize("name", ["", "ascend910b", "Ascend", "Ascend910B1 ", "host", "Ascend950", "Host\0", "é"])
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
    code = "import aclnn_bw as a; print(a.aclrtGetSocName())"
    assert run_python(code, environment={"ACLNN_BW_MASK_LAYOUT": layout}).stdout.split() == ["Ascend910B"]


@pytest.mark.parametrize(("variable", "value"), [("ACLNN_BW_SOC", "Ascend911"), ("ACLNN_BW_MASK_LAYOUT", "bits")])
def test_environment_that_makes_no_sense(variable, value):
    # Whoever reads the output learns which variable is wrong and what it held.
    done = run_python(
        "import aclnn_bw as a; a.aclrtGetSocName()", environment={variable: value}, check=False, warnings="default"
    )
    assert variable in done.stderr
    assert value in done.stderr
