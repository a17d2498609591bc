"""The package as a whole: its names, its import, its documentation, its command line."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest
import stubs
from engine_helpers import run_python
from operators import OPERATORS, TAKEN

import aclnn_bw as a
from aclnn_bw._records import OPERATORS as RECORDS

POOL_DEFAULTS = "stride=None, padding=0, dilation=1, ceil_mode=False"

PHASE_1 = {name: " ".join(re.findall(r"\w+(?=,|$)", operator.declaration)) for name, operator in OPERATORS.items()}
ONE_CALL = {operator.record().one_call: operator.signature for operator in OPERATORS.values()}

MASK_HELPERS = {
    "mask_shape": f"input_shape, kernel_size, {POOL_DEFAULTS}",
    "mask_to_indices": f"mask, input_shape, kernel_size, {POOL_DEFAULTS}, *, mask_layout='bitmask'",
    "indices_to_mask": f"indices, input_shape, kernel_size, {POOL_DEFAULTS}, *, mask_layout='bitmask'",
}

NAMES = [
    *(f"aclnn{operator}{phase}" for operator in OPERATORS for phase in ("GetWorkspaceSize", "")),
    *ONE_CALL,
    *MASK_HELPERS,
    "AclnnError",
    "AclnnStatus",
    "CubeMathType",
    "aclDataType",
    "aclFormat",
    "aclIntArray",
    "aclOpExecutor",
    "aclTensor",
    "aclrtStream",
    "aclCreateIntArray",
    "aclCreateTensor",
    "aclDestroyAclOpExecutor",
    "aclDestroyIntArray",
    "aclDestroyTensor",
    "aclFinalize",
    "aclGetRecentErrMsg",
    "aclInit",
    "aclSetAclOpExecutorRepeatable",
    "aclSetInputTensorAddr",
    "aclSetOutputTensorAddr",
    "aclSetTensorAddr",
    "aclrtCreateStream",
    "aclrtDestroyStream",
    "aclrtFree",
    "aclrtGetSocName",
    "aclrtMalloc",
    "aclrtMemcpy",
    "aclrtResetDevice",
    "aclrtSetDevice",
    "aclrtSetSocName",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeStream",
    "get_num_threads",
    "num_threads",
    "set_num_threads",
    "show_config",
    "soc",
]


def modules():
    """The package and its modules, but the one whose import runs the command line."""
    yield a
    for info in pkgutil.iter_modules(a.__path__, "aclnn_bw."):
        if info.name != "aclnn_bw.__main__" and not info.ispkg:
            yield importlib.import_module(info.name)


def test_all_is_complete():
    assert len(set(a.__all__)) == len(a.__all__)
    assert set(NAMES) <= set(a.__all__), set(NAMES) - set(a.__all__)
    for name in a.__all__:
        assert getattr(a, name) is not None
    public = {
        name for name, value in vars(a).items() if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public <= set(a.__all__), public - set(a.__all__)


def test_star_import():
    namespace = {}
    exec("from aclnn_bw import *", namespace)
    assert set(a.__all__) <= set(namespace)


def test_dir_lists_what_there_is():
    assert set(a.__all__) <= set(dir(a))
    # Tab completion offers what is public, and no module.
    assert {name for name in dir(a) if not name.startswith("__")} == set(a.__all__) - {"__version__"}
    assert all(hasattr(a, name) for name in dir(a))
    for handle in (a.aclOpExecutor, a.aclrtStream, a.aclTensor, a.aclIntArray):
        assert {name for name in vars(handle) if not name.startswith("_")} <= {"explain"}


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_documented(name):
    thing = getattr(a, name)
    assert inspect.getdoc(thing), name
    if inspect.isroutine(thing):
        inspect.signature(thing)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((f"aclnn{operator}GetWorkspaceSize", arguments) for operator, arguments in PHASE_1.items()),
        *((f"aclnn{operator}", "workspace workspaceSize executor stream") for operator in PHASE_1),
        ("aclCreateTensor", "viewDims dataType strides offset format storageDims tensorData"),
        ("aclSetInputTensorAddr", "executor index tensor data"),
        ("aclSetOutputTensorAddr", "executor index tensor data"),
        ("aclSetTensorAddr", "executor index tensor data"),
    ],
)
def test_signatures(name, parameters):
    assert " ".join(inspect.signature(getattr(a, name)).parameters) == parameters


@pytest.mark.parametrize("operator", RECORDS.values(), ids=RECORDS)
def test_the_functions_have_the_parameters_of_their_record(operator):
    """What a function gives to the reader of arguments is counted by the record alone."""
    phase_1 = inspect.signature(getattr(a, f"aclnn{operator.name}GetWorkspaceSize"))
    assert [*phase_1.parameters] == [parameter.name for parameter in operator.two_phase]
    wanted = [p.one_call for p in operator.parameters if not p.two_phase_only]
    found = [*inspect.signature(operator.function).parameters]
    if operator.name == "MaxPool2dWithIndicesBackward":  # as PyTorch's operator
        wanted.insert(-1, wanted.pop(wanted.index("indices")))
    assert found == wanted


def test_the_type_stubs_are_those_of_the_records():
    assert stubs.STUB.read_text(encoding="utf-8") == stubs.stub(), "python tests/stubs.py --write makes them"


def test_only_the_stream_has_a_default_in_the_two_phases():
    for operator in OPERATORS:
        phase_1 = inspect.signature(getattr(a, f"aclnn{operator}GetWorkspaceSize")).parameters.values()
        phase_2 = inspect.signature(getattr(a, f"aclnn{operator}")).parameters.values()
        assert all(p.default is p.empty for p in phase_1)
        assert [(p.name, p.default) for p in phase_2 if p.default is not p.empty] == [("stream", None)]


@pytest.mark.parametrize(("name", "parameters"), [*ONE_CALL.items(), *MASK_HELPERS.items()])
def test_signatures_with_defaults(name, parameters):
    signature = inspect.signature(getattr(a, name))
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    assert str(signature.replace(parameters=plain, return_annotation=signature.empty)) == f"({parameters})"


def test_every_operator_has_both_faces():
    phases = {name for name in a.__all__ if name.startswith("aclnn")}
    assert phases == {f"aclnn{operator}{phase}" for operator in PHASE_1 for phase in ("GetWorkspaceSize", "")}
    others = {"get_num_threads", "num_threads", "set_num_threads", "show_config", "soc", "__version__"}
    assert {name for name in a.__all__ if name.islower()} - others == {*ONE_CALL, *MASK_HELPERS}


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+([.\w+-]*)", a.__version__)
    from importlib.metadata import version

    assert version("aclnn_bw") == a.__version__


def test_typing_files_are_installed():
    folder = Path(a.__file__).parent
    assert (folder / "py.typed").exists()
    stub = ast.parse((folder / "_native.pyi").read_text(encoding="utf-8"))
    assert stub.body


def test_doctests():
    attempted = 0
    for module in modules():
        failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert failed == 0, module.__name__
        attempted += tried
    assert attempted > 10


@pytest.mark.parametrize("name", [*(f"aclnn{operator}GetWorkspaceSize" for operator in OPERATORS), *ONE_CALL])
def test_doctests_of_compiled_functions(name):
    found = doctest.DocTestFinder().find(getattr(a, name), name, globs={})
    assert any(test.examples for test in found), f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in found:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", MASK_HELPERS)
def test_mask_helpers_have_examples(name):
    assert ">>>" in getattr(a, name).__doc__


@pytest.mark.parametrize("name", [*(f"aclnn{operator}GetWorkspaceSize" for operator in OPERATORS), *ONE_CALL])
def test_docstrings_say_what_goes_in_and_what_is_raised(name):
    # Shapes, dtypes, errors, and whose formula it is.
    text = " ".join(inspect.getdoc(getattr(a, name)).split())
    for word in ("(N, C, ", "AclnnError", "PyTorch|torch", "ACL_FLOAT|float32|product takes"):
        assert re.search(re.escape(word) if word.startswith("(") else word, text), f"{name}: {word}"


# import


def test_import_has_no_side_effects():
    code = """
        import os, signal, sys, threading, warnings
        import numpy, ml_dtypes
        filters = list(warnings.filters)
        before = dict(os.environ), sorted(os.listdir(".")), threading.active_count(), numpy.geterr(), os.getcwd()
        handlers = [signal.getsignal(n) for n in signal.valid_signals()]
        switch, hooks, path = sys.getswitchinterval(), (sys.excepthook, sys.displayhook), list(sys.path)
        modules = set(sys.modules)
        tasks = os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else []
        import aclnn_bw
        after = dict(os.environ), sorted(os.listdir(".")), threading.active_count(), numpy.geterr(), os.getcwd()
        assert after == before
        assert handlers == [signal.getsignal(n) for n in signal.valid_signals()]
        assert (switch, hooks, path) == (sys.getswitchinterval(), (sys.excepthook, sys.displayhook), list(sys.path))
        assert list(warnings.filters) == filters
        assert not tasks or len(os.listdir("/proc/self/task")) == len(tasks)
        new = {name.split(".")[0] for name in set(sys.modules) - modules} - set(sys.stdlib_module_names)
        # Cython keeps a module of its own for what its extensions share.
        new = {name for name in new if not name.startswith("_cython_")}
        assert new <= {"aclnn_bw", "cython_runtime", "numpy"}, new
    """
    done = run_python(code)
    assert done.stdout == ""
    assert done.stderr == ""


@pytest.mark.alone
def test_import_is_quick_beside_numpys():
    code = """
        import time
        start = time.process_time()
        import numpy
        numpys = time.process_time() - start
        start = time.process_time()
        import aclnn_bw
        print((time.process_time() - start) / numpys)
    """
    assert min(float(run_python(code).stdout) for _ in range(5)) < 0.5


@pytest.mark.parametrize(
    "heavy", ["torch", "ml_dtypes", "argparse", "asyncio", "concurrent.futures", "multiprocessing", "doctest"]
)
def test_import_brings_nothing_heavy(heavy):
    code = f"""
        import sys
        import numpy
        before = set(sys.modules)
        import aclnn_bw
        assert {heavy!r} not in set(sys.modules) - before
    """
    run_python(code)


def test_ml_dtypes_waits_until_it_is_needed():
    """Its import may take a second: ten times as long as NumPy's."""
    code = """
        import sys
        import numpy as np
        import aclnn_bw
        result = aclnn_bw.avg_pool2d_backward(np.ones((1, 1, 2, 2), np.float32), (1, 1, 4, 4), 2)
        for odd in np.array(["a"]), np.array([object()]), np.zeros(2, "V2"), np.zeros(2, "M8[s]"):
            try:
                aclnn_bw.avg_pool2d_backward(odd, (1, 1, 4, 4), 2)
            except ValueError as error:
                assert "grad_output.dtype" in str(error)
            else:
                raise AssertionError(odd.dtype)
        assert "ml_dtypes" not in sys.modules
        import ml_dtypes
        ones = np.ones((1, 1, 2, 2), ml_dtypes.bfloat16)
        half = aclnn_bw.avg_pool2d_backward(ones, (1, 1, 4, 4), 2)
        assert half.dtype == ml_dtypes.bfloat16
        assert (half.astype(np.float32) == result).all()
    """
    run_python(code)


def test_flush_to_zero_is_not_switched_on():
    code = """
        import numpy as np
        import aclnn_bw as a
        tiny = np.full((1, 1, 1, 1), 1e-40, np.float32)
        with a.soc("Host"):
            assert a.avg_pool2d_backward(tiny, (1, 1, 1, 1), 1)[0, 0, 0, 0] == tiny[0, 0, 0, 0]
        assert tiny[0, 0, 0, 0] * np.float32(0.5) != 0
    """
    run_python(code)


# instruction sets and configuration


def test_show_config(capsys):
    config = a.show_config(mode="dict")
    assert capsys.readouterr().out == ""
    keys = {"version", "isa", "isa_available", "openmp", "threads", "compiler", "numpy", "python", "operators"}
    assert keys <= set(config)
    assert config["version"] == a.__version__
    assert config["isa"] in config["isa_available"]
    assert type(config["openmp"]) is bool
    assert config["threads"] == a.get_num_threads()
    assert config["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")
    names = {
        operator: {product: {dtype.name for dtype in dtypes} for product, dtypes in products.items()}
        for operator, products in TAKEN.items()
    }
    assert names == {
        operator: {product: set(dtypes) for product, dtypes in products.items()}
        for operator, products in config["operators"].items()
    }
    assert a.show_config() is None
    printed = capsys.readouterr().out
    assert a.__version__ in printed
    assert str(config["isa"]) in printed
    for operator, products in config["operators"].items():
        lines = [f"{product}: {', '.join(dtypes) or 'not available'}" for product, dtypes in products.items()]
        assert "".join(f"{operator}: {' '.join(lines)}".split()) in "".join(printed.split())
    with pytest.raises(ValueError, match="mode"):
        a.show_config(mode="xml")


def test_every_instruction_set_can_be_chosen():
    for name in a.show_config(mode="dict")["isa_available"]:
        code = "import aclnn_bw; print(aclnn_bw.show_config(mode='dict')['isa'])"
        environment = {"ACLNN_BW_ISA": name.rpartition("-")[2]} if "v" in name else {}
        assert run_python(code, environment=environment).stdout.strip() == name


@pytest.mark.parametrize("value", ["v9", "avx2", "V3 ", "4", "x" * 1000])
def test_an_unknown_instruction_set_warns(value):
    code = """
        import os, warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import aclnn_bw
        assert any("ACLNN_BW_ISA" in m and os.environ["ACLNN_BW_ISA"] in m for m in (str(w.message) for w in seen))
        print(aclnn_bw.show_config(mode="dict")["isa"])
    """
    best = run_python("import aclnn_bw; print(aclnn_bw.show_config(mode='dict')['isa'])").stdout
    assert run_python(code, environment={"ACLNN_BW_ISA": value}).stdout == best


# the command line


def command(*arguments, **options):
    options.setdefault("check", True)
    return run_python(
        textwrap.dedent(
            """
            import runpy, sys
            sys.argv[0] = "aclnn_bw"
            runpy.run_module("aclnn_bw", run_name="__main__", alter_sys=True)
            """
        ),
        *arguments,
        **options,
    )


@pytest.mark.parametrize("arguments", [(), ("info",)])
def test_info(arguments):
    assert a.__version__ in command(*arguments).stdout


def test_python_m(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "aclnn_bw", "info"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert a.__version__ in done.stdout
    assert done.stderr == ""


def test_unknown_command():
    done = command("explode", check=False)
    assert done.returncode == 2
    assert "explode" in done.stderr
    assert "Traceback" not in done.stderr


# calls through every entry point agree


def test_modules_have_docstrings():
    for module in modules():
        if not module.__name__.endswith("_version"):
            assert module.__doc__, module.__name__
