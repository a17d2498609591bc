"""The C library does for C and C++ programs what the package does in Python, to the last bit.

Programs of this folder are compiled against the library and the headers that lie beside the installed package. Where
there is no compiler or no library the tests are skipped, unless ACLNN_BW_REQUIRE_OBJECTS=1, as in CI.
"""

from __future__ import annotations

import fcntl
import functools
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from engine_helpers import NUMPY_DTYPE, PRODUCTS, counted, sentinels
from operators import OPERATORS, TAKEN
from operators.base import Operator

import aclnn_bw

HERE = Path(__file__).parent
PREFIX = Path(aclnn_bw.__file__).parent
INCLUDE, LIB, LIB64 = PREFIX / "include", PREFIX / "lib", PREFIX / "lib64"
LIBRARY = LIB / "libaclnn_bw.so"
NATIVE = Path(aclnn_bw._native.__file__)
VERSION = f"ACLNN_BW_{aclnn_bw.__version__}"  # of what the module alone calls
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
C99 = ("gcc", "-std=c99")
CPP11, CPP17 = ("g++", "-std=c++11"), ("g++", "-std=c++17")
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror")
NUMBERS = {dtype: int(number) for number, dtype in NUMPY_DTYPE.items()}
LAYOUTS = ("bitmask", "argmax")


def parameters(operator: type[Operator]) -> list[tuple[str, str]]:
    """The types and names of phase 1, without the two results."""
    return [re.fullmatch(r"(.*?)(\w+)", one).groups() for one in operator.declaration.split(", ")]


def passed(operator: type[Operator]) -> str:
    """The arguments as they stand in a `call` of caller.c."""
    places = {"aclTensor": "c->t[{}]", "aclIntArray": "c->a[{}]", "double": "c->x"}
    seen: Counter[str] = Counter()
    words = []
    for type_, _ in parameters(operator):
        place = next((place for kind, place in places.items() if kind in type_), f"({type_.strip()})c->n[{{}}]")
        kind = place.partition("->")[2][0]
        words.append(place.format(seen[kind]))
        seen[kind] += 1
    return ", ".join(words)


def nulls(name: str, operator: type[Operator]) -> Iterator[str]:
    """Each pointer of an operator's functions in turn is null, the results too."""
    function = f"aclnn{name}GetWorkspaceSize"
    values = ["t" if "Tensor" in type_ else "a" if "Array" in type_ else "0" for type_, _ in parameters(operator)]
    for i, (type_, argument) in enumerate(parameters(operator)):
        if "*" in type_ and argument not in operator.nullable:
            words = ", ".join([*values[:i], "NULL", *values[i + 1 :]])
            yield f'NO("{argument}", {function}({words}, &size, &executor));'
    yield f'NO("workspaceSize", {function}({", ".join(values)}, NULL, &executor));'
    yield f'NO("executor", {function}({", ".join(values)}, &size, NULL));'
    yield f'NO("executor", aclnn{name}(NULL, 0, NULL, NULL));'


@pytest.fixture(scope="module", autouse=True)
def declared_header(tmp_path_factory) -> None:
    """declared.h: what tests/operators say of each operator, for the programs of this folder."""
    lines = [f'#include "aclnnop/{level}{header}"' for operator in OPERATORS.values() for header in operator.headers
             for level in ("", "level2/")]  # fmt: skip
    lines += ["#define OPERATORS \\"]
    for name, operator in OPERATORS.items():
        types = ", ".join([type_.strip() for type_, _ in parameters(operator)] + ["uint64_t *", "aclOpExecutor **"])
        lines += [f"OPERATOR({name}, ({types}), {passed(operator)}) \\"]
    lines += ["", "#define NULLS \\"]
    lines += [f"{line} \\" for name, operator in OPERATORS.items() for line in nulls(name, operator)]
    folder = tmp_path_factory.mktemp("declared")
    (folder / "declared.h").write_text("\n".join([*lines, "", ""]))
    DECLARED.append(f"-I{folder}")


DECLARED: list[str] = []  # the folder of declared.h, as an option


def unavailable(why: str) -> None:
    if os.environ.get("ACLNN_BW_REQUIRE_OBJECTS") == "1":
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module", autouse=True)
def toolchain():
    for compiler in ("gcc", "g++"):
        if not shutil.which(compiler):
            unavailable(f"no {compiler}")
    if not LIBRARY.exists():
        unavailable(f"this build has no {LIBRARY}")


def compiled(
    compiler: Sequence[str], sources: Sequence[Path | str], to: Path, flags: Sequence[str] = (), link: bool = True
) -> Path:
    """A program, or an object, without a warning."""
    libraries = [f"-L{LIB}", f"-Wl,-rpath,{LIB}", "-laclnn_bw", "-Wl,-z,defs"] if link else ["-c"]
    includes = (f"-I{INCLUDE}", *DECLARED)
    command = [*compiler, *STRICT, *includes, *flags, "-o", str(to), *map(str, sources), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return to


def environment(**settings: str) -> dict[str, str]:
    """Nothing of this package's but what is said."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ACLNN_BW_", "OMP_", "GOMP_", "LD_"))}
    if "ACLNN_BW_ISA" in os.environ:
        kept["ACLNN_BW_ISA"] = os.environ["ACLNN_BW_ISA"]
    return kept | settings


def run(program: Path, *arguments: str, prelude: Sequence[str] = (), **settings: str) -> str:
    """What a program prints that must end well."""
    done = subprocess.run(
        [*prelude, str(program), *arguments], env=environment(**settings), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{program} {arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """One for all processes of the run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "c_library"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def program(folder) -> Callable[..., Path]:
    """Compiles a program of this folder once for each set of flags, whichever process asks."""

    def build(name: str, *flags: str, compiler: Sequence[str] = C99) -> Path:
        to = folder / re.sub(r"\W+", "_", f"{name}{compiler[1]}{flags}")
        with Path(f"{to}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return to if to.exists() else compiled(compiler, [HERE / name], to, [*flags, "-pthread"])

    return build


# ---- headers --------------------------------------------------------------------------------------------------------


def includes(headers: Sequence[str]) -> str:
    return "".join(f'#include "{header}"\n' for header in headers)


@pytest.mark.parametrize("compiler", [C99, CPP11, CPP17], ids=lambda compiler: compiler[1])
def test_every_header_compiles_alone_and_with_all_others(compiler, tmp_path):
    sets = [[header] for header in HEADERS] + [HEADERS, HEADERS[::-1], [*HEADERS, *HEADERS]]

    def compile_one(number: int) -> None:
        source = tmp_path / f"{number}.{'c' if compiler == C99 else 'cpp'}"
        source.write_text(includes(sets[number]) + "int main(void) { return 0; }\n")
        compiled(compiler, [source], source.with_suffix(".o"), link=False)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, range(len(sets))))


def test_headers_are_where_programs_look_for_them():
    operators = {header for operator in OPERATORS.values() for header in operator.headers}
    wanted = {"acl/acl.h", "acl/acl_base.h", "acl/acl_rt.h", "aclnn/acl_meta.h", "aclnn/aclnn_base.h"}
    wanted |= {f"aclnnop/{level}{name}" for name in operators for level in ("", "level2/")}
    assert set(HEADERS) == wanted | {"aclnnop/aclnn_util.h"}


@pytest.mark.parametrize("compiler", [CPP11, CPP17], ids=lambda compiler: compiler[1])
def test_names_have_the_types_and_numbers_of_the_original(compiler, tmp_path):
    compiled(compiler, [HERE / "names.cpp"], tmp_path / "names.o", link=False)


def test_enums_and_codes_are_constants_in_c(tmp_path):
    source = tmp_path / "constants.c"
    lines = [f"char {name}_[{name} == {int(member)} ? 1 : -1];" for name, member in members()]
    source.write_text(includes(["acl/acl.h"]) + "\n".join(lines) + "\nint f(void) { return ACL_SUCCESS; }\n")
    compiled(C99, [source], tmp_path / "constants.o", link=False)


def members() -> list[tuple[str, int]]:
    return [
        (name, int(member)) for enum in (aclnn_bw.aclDataType, aclnn_bw.aclFormat) for name, member in
        enum.__members__.items()
    ]  # fmt: skip


@pytest.mark.parametrize("compiler", [CPP11, CPP17], ids=lambda compiler: compiler[1])
def test_enums_are_those_of_the_python_face(compiler, tmp_path):
    source = tmp_path / "enums.cpp"
    scopes = [
        f'static_assert({scope}{name} == {number}, "{name}");'
        for enum in (aclnn_bw.aclDataType, aclnn_bw.aclFormat)
        for name, number in enum.__members__.items()
        for scope in ("", f"{enum.__name__}::")
    ]
    source.write_text(includes(["acl/acl.h"]) + "\n".join(scopes) + "\n")
    compiled(compiler, [source], tmp_path / "enums.o", link=False)


# ---- what the library gives and needs ------------------------------------------------------------------------------


def declared() -> set[str]:
    """The functions of the headers, found by their visibility."""
    text = re.sub(r"/\*.*?\*/|^#.*?$", "", "".join((INCLUDE / name).read_text() for name in HEADERS), flags=re.S | re.M)
    return set(re.findall(r"ACL_FUNC_VISIBILITY[\w\s*]*?\b(\w+)\(", text))


def symbols(library: Path, *flags: str) -> set[str]:
    done = subprocess.run(["nm", "-D", *flags, str(library)], check=True, capture_output=True, text=True)
    return {re.split(r"[ @]", line.split(maxsplit=2 if flags == ("--defined-only",) else 1)[-1])[0]
            for line in done.stdout.splitlines()}  # fmt: skip


def test_the_library_gives_the_functions_of_the_headers_and_what_the_module_calls():
    names = declared()
    # The list that was written by hand.
    by_hand = set(re.findall(r"^IS\((\w+), .*\(", (HERE / "names.cpp").read_text(), re.M))
    assert names == by_hand | {f"aclnn{name}{phase}" for name in OPERATORS for phase in ("GetWorkspaceSize", "")}
    # What the module calls is for the same version of the package alone.
    internal = {name for name in symbols(NATIVE, "--undefined-only") if name.startswith("aclnn_bw_")} | {VERSION}
    assert len(internal) > 10
    assert symbols(LIBRARY, "--defined-only") == names | internal


def test_the_module_refuses_another_version_of_the_library(tmp_path):
    for folder in (PREFIX, PREFIX.with_name("aclnn_bw.libs")):  # the second is a repaired wheel's
        if folder.exists():
            shutil.copytree(folder, tmp_path / folder.name, ignore=shutil.ignore_patterns("__pycache__"))
    library = tmp_path / LIBRARY.relative_to(PREFIX.parent)
    assert VERSION.encode() in library.read_bytes()
    library.write_bytes(library.read_bytes().replace(VERSION.encode(), VERSION.replace("0", "9").encode()))
    done = subprocess.run([sys.executable, "-c", "import aclnn_bw"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"version `{VERSION}' not found" in done.stderr


@pytest.mark.parametrize("page", ["docs/c-library.md", "docs/zh/c-library.md"])
def test_the_documentation_lists_every_function(page):
    text = (HERE.parents[1] / page).read_text(encoding="utf-8")
    table = re.search(r"^\|.*aclInit.*\n(?:\|.*\n)+", text, re.M)
    there = re.findall(r"`(acl\w+)`", table[0])
    operators = {f"aclnn{name}{phase}" for name in OPERATORS for phase in ("GetWorkspaceSize", "")}
    assert Counter(there) == Counter(declared() - operators)
    missing = re.findall(r"`(acl\w+)`", "".join(re.findall(r"^- .*\n", text[table.end() :], re.M)))
    assert len(missing) > 10
    assert not set(missing) & declared()


def test_the_library_needs_no_interpreter():
    needed = symbols(LIBRARY, "--undefined-only")
    assert needed
    assert not [line for line in needed if re.search(r"\b_?Py", line)]
    dynamic = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True).stdout
    for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
        assert re.match(r"lib(c|m|pthread|gomp)\b|ld-linux", name), name
    assert "[libaclnn_bw.so]" in dynamic
    assert not re.search(r"RPATH|RUNPATH|TEXTREL", dynamic)


CANN = ("ascendcl", "nnopbase", "opapi", "opapi_nn", "opapi_cv", "opapi_math")


@pytest.mark.parametrize("names", [CANN, CANN[::-1], ("ascendcl", "nnopbase", "opapi")], ids=len)
def test_programs_link_the_names_of_cann(names, tmp_path):
    assert {path.name for path in LIB64.iterdir()} == {f"lib{name}.so" for name in CANN}
    program = tmp_path / "program"
    libraries = [f"-L{LIB64}", f"-Wl,-rpath,{LIB64}", "-Wl,-z,defs", *(f"-l{name}" for name in names)]
    source = HERE / "samples" / "avg_pool2d_backward.cpp"
    subprocess.run([*CPP11, f"-I{INCLUDE}", str(source), "-o", str(program), *libraries], check=True)
    assert run(program) == SAMPLES["avg_pool2d_backward.cpp"]()
    # With the path in the environment, as CANN's set_env.sh does it.
    subprocess.run(
        [*CPP11, f"-I{INCLUDE}", str(source), "-o", str(program), f"-L{LIB64}", *(f"-l{name}" for name in names)],
        check=True,
    )
    assert run(program, LD_LIBRARY_PATH=str(LIB64)) == SAMPLES["avg_pool2d_backward.cpp"]()


def test_cann_names_are_on_no_default_path():
    path = shutil.which("ldconfig") or "/sbin/ldconfig"
    known = subprocess.run([path, "-p"], capture_output=True, text=True, check=True).stdout
    assert str(PREFIX) not in known
    assert not any(folder.name == "lib64" for folder in LIB.iterdir())  # one -L for our name does not bring theirs


# ---- the samples ----------------------------------------------------------------------------------------------------


def told(name: str, array) -> str:
    return f"{name}: {' '.join(f'{float(value):.9g}' for value in array.reshape(-1))}\n"


def repeatable():
    results = ""
    for batch in range(2):
        out = np.empty((1, 1, 4, 4), np.float32)
        grad = counted((1, 1, 2, 2), 10 * batch)
        OPERATORS["AvgPool2dBackward"].by_phases(grad, out, [2, 2], None, [0, 0], False, True, 0, 0, out)
        results += told(f"batch {batch}", out)
    return results


def sample(operator: type[Operator]) -> str:
    return "".join(told(name, array) for name, array in operator.sample().items())


SAMPLES = {
    "repeatable.c": repeatable,
    **{f"{one.record().one_call}.cpp": functools.partial(sample, one) for one in OPERATORS.values()},
}


def languages(name: str):
    return [C99] if name.endswith(".c") else [CPP11, CPP17]


def test_every_sample_is_tested():
    assert set(SAMPLES) == {path.name for path in (HERE / "samples").iterdir() if path.suffix != ".h"}


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_print_what_python_computes(program, name):
    for compiler in languages(name):
        built = program(f"samples/{name}", compiler=compiler)
        for settings in ({}, {"ACLNN_BW_ASYNC": "1"}):
            assert run(built, **settings) == SAMPLES[name]()


# ---- all operators, dtypes, products, layouts, geometries and refusals ----------------------------------------------


class Placed:
    """One tensor argument: how it is described, and the memory that it describes."""

    def __init__(self, shape, dtype, *, format=None, strides=None, offset=0, storage=None, memory=None, at=0):
        self.shape, self.dtype, self.strides, self.offset = tuple(shape), int(dtype), strides, offset
        self.format = {3: 47, 4: 0}.get(len(self.shape), 2) if format is None else int(format)
        self.storage, self.memory, self.at = storage, memory, at  # memory: bytes, None, or the argument whose it is

    def words(self, arguments) -> list[int]:
        own = isinstance(self.memory, bytes)
        shared = arguments.index(self.memory) if isinstance(self.memory, Placed) else -1
        storage = self.storage or ()
        return [
            1, self.dtype, self.format, self.offset, *padded(self.shape), self.strides is not None,
            *padded(self.strides or ())[1:], *((-1, *[0] * 8) if self.storage is None else padded(storage)), shared,
            len(self.memory) if own else -1, self.at,
        ]  # fmt: skip


def padded(values) -> list[int]:
    return [len(values), *values, *[0] * (8 - len(values))]


def place(array, rng=None) -> Placed:
    """The argument as it stands, or with a generator in a layout of its own: another order of axes, gaps, negative
    strides, an offset."""
    if rng is None:
        return Placed(array.shape, NUMBERS[array.dtype], memory=array.tobytes())
    order = rng.permutation(array.ndim)
    steps = rng.integers(1, 3, array.ndim)
    signs = rng.choice([-1, 1], array.ndim)
    strides, span = [0] * array.ndim, 1
    for axis in order:
        strides[axis] = int(span * steps[axis] * signs[axis])
        span = abs(strides[axis]) * max(array.shape[axis], 1)
    before = sum(-s * (n - 1) for s, n in zip(strides, array.shape, strict=True) if s < 0 and n > 0)
    offset = int(before + rng.integers(0, 4))
    storage = offset + sum(s * (n - 1) for s, n in zip(strides, array.shape, strict=True) if s > 0 and n > 0) + 1
    memory = sentinels(storage * array.itemsize).view(array.dtype)
    if array.size:
        bytes_ = [s * array.itemsize for s in strides]
        np.ndarray(array.shape, array.dtype, memory, offset * array.itemsize, bytes_)[...] = array
    at = int(rng.integers(0, 64)) // array.itemsize * array.itemsize
    return Placed(
        array.shape, NUMBERS[array.dtype], strides=tuple(strides), offset=offset, storage=(storage,),
        memory=memory.tobytes(), at=at,
    )  # fmt: skip


NO_TENSOR = "aclCreateTensor gave null"  # of which each face has words of its own


class Asked:
    """A call for the program and for Python: the arguments in C order, tensors as Placed."""

    def __init__(self, operator: str, arguments: list, workspace_size: int = -1):
        self.operator, self.arguments, self.workspace_size = operator, arguments, workspace_size

    @property
    def tensors(self) -> list[Placed]:
        return [value for value in self.arguments if isinstance(value, Placed)]

    def request(self, roles: Sequence[bool]) -> bytes:
        """`roles` says which arguments are tensors, also where they are null."""
        tensors: list = [v for v, is_tensor in zip(self.arguments, roles, strict=True) if is_tensor]
        rest = [v for v, is_tensor in zip(self.arguments, roles, strict=True) if not is_tensor]
        words = [list(OPERATORS).index(self.operator), self.workspace_size]
        for i in range(4):
            value = tensors[i] if i < len(tensors) else None
            words += value.words(tensors) if value is not None else [0] * 31 + [-1, -1, 0]
        arrays = [v for v in rest if v is None or isinstance(v, tuple)]
        for i in range(5):
            value = arrays[i] if i < len(arrays) else None
            words += padded(value) if value is not None else [-1, *[0] * 8]
        numbers = [int(v) for v in rest if isinstance(v, int)]
        words += numbers + [0] * (4 - len(numbers))
        [scales] = [v for v in rest if isinstance(v, float)] or [0.0]
        data = b"".join(v.memory for v in tensors if v is not None and isinstance(v.memory, bytes))
        return np.array(words, np.int64).tobytes() + np.float64(scales).tobytes() + data

    def answer(self, layout: str, product: str, threads: int):
        """What Python makes of it: (status of phase 1, workspace size, status of phase 2, message, all memory)."""
        memories = {}
        for tensor in self.tensors:
            if isinstance(tensor.memory, bytes):
                room = sentinels(len(tensor.memory) + tensor.at)[tensor.at :]
                room[...] = np.frombuffer(tensor.memory, np.uint8)
                memories[id(tensor)] = room
        status_1, size, status_2, message = 0, None, None, ""
        try:
            values = [self.handle(v, memories) if isinstance(v, Placed) else v for v in self.arguments]
        except aclnn_bw.AclnnError as error:
            return int(error.status), None, None, NO_TENSOR, [room.tobytes() for room in memories.values()]
        try:
            with aclnn_bw.soc(product, mask_layout=layout), aclnn_bw.num_threads(threads):
                phase_1 = getattr(aclnn_bw, f"aclnn{self.operator}GetWorkspaceSize")
                size, executor = phase_1(*values)
        except aclnn_bw.AclnnError as error:
            status_1, message = error.status, str(error)
        else:
            status_2 = 0
            given = size if self.workspace_size == -1 else self.workspace_size
            try:
                phase_2 = getattr(aclnn_bw, f"aclnn{self.operator}")
                phase_2(bytearray(given) if given else None, given, executor)
            except aclnn_bw.AclnnError as error:
                status_2, message = error.status, str(error)
        return int(status_1), size, status_2, in_c(message), [room.tobytes() for room in memories.values()]

    @staticmethod
    def handle(tensor: Placed, memories):
        memory = tensor.memory
        data = memories[id(tensor if isinstance(memory, bytes) else memory)] if memory is not None else None
        return aclnn_bw.aclCreateTensor(
            tensor.shape, tensor.dtype, tensor.strides, tensor.offset, tensor.format, tensor.storage, data
        )


def in_c(message: str) -> str:
    return message.replace("None", "nullptr")


def answers(program: Path, calls: Sequence[Asked], **settings: str):
    """The program's answers to all calls, in the form of Asked.answer."""
    roles = {name: [argument in operator.roles for argument in operator().arguments] for name, operator in
             OPERATORS.items()}  # fmt: skip
    asked = b"".join(call.request(roles[call.operator]) for call in calls)
    done = subprocess.run([str(program)], input=asked, capture_output=True, env=environment(**settings), check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    data, found = memoryview(done.stdout), []
    for call in calls:
        made, status_1, size, touched, status_2, length = (int(v) for v in np.frombuffer(data[:48], np.int64))
        message, data = bytes(data[48 : 48 + length]).decode(), data[48 + length :]
        memories = []
        for tensor in call.tensors:
            if isinstance(tensor.memory, bytes):
                memories.append(data[: len(tensor.memory)])
                data = data[len(tensor.memory) :]
        if not touched:  # a refusal leaves both of phase 1's results as they were
            assert size == 0x5555555555555555
        if not made:
            status_1, message = 161002, NO_TENSOR
        found.append((status_1, size if touched else None, status_2 if touched else None, message, memories))
    assert not data
    return found


def compare(program: Path, calls: Sequence[Asked], product="Host", layout="bitmask", threads=1) -> list:
    found = answers(
        program, calls, ACLNN_BW_SOC=product, ACLNN_BW_MASK_LAYOUT=layout, ACLNN_BW_NUM_THREADS=str(threads)
    )
    for call, answer in zip(calls, found, strict=True):
        wanted = call.answer(layout, product, threads)
        # A remedy is named as the caller writes it: the context manager in Python, the variable in C.
        wanted = (*wanted[:3], re.sub(r"soc\('(\w+)'\)", r"ACLNN_BW_SOC=\1", wanted[3]), *wanted[4:])
        told = call.operator, [v if not isinstance(v, Placed) else vars(v) | {"memory": ...} for v in call.arguments]
        assert answer[:4] == wanted[:4], told
        assert answer[4] == wanted[4], told
    return found


@functools.cache
def all_calls(operator: str) -> list[tuple[dict, Operator]]:
    """Every geometry in every dtype, those that no product takes among them."""
    dtypes = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int32]
    dtypes += [NUMPY_DTYPE[dtype] for dtype in TAKEN[operator]["Host"] if NUMPY_DTYPE[dtype] not in dtypes]
    found = []
    for geometry in OPERATORS[operator].geometries:
        for dtype in dtypes[:4] if is_large(geometry) else dtypes:
            found.append((geometry, OPERATORS[operator](dtype=dtype, seed=len(found), **geometry)))
    return found


def is_large(geometry) -> bool:
    return math.prod(geometry.get("shape", (1,))) > 4000


@pytest.fixture(scope="module")
def caller(program) -> Path:
    return program("caller.c")


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_c_program_gets_the_same_bytes(caller, operator, product):
    threads = 3 if aclnn_bw.show_config(mode="dict")["openmp"] else 1
    rng = np.random.default_rng(list(f"{operator} {product}".encode()))
    taken = 0
    for layout in LAYOUTS:
        calls = [
            call for geometry, call in all_calls(operator)
            if call.layout == layout and (product == "Host" or not is_large(geometry))
        ]  # fmt: skip
        asked = [
            Asked(operator, [place(v, how) if isinstance(v, np.ndarray) else v for v in call.arguments.values()])
            for call in calls
            for how in (None, rng)
        ]
        if asked:
            taken += sum(not answer[0] for answer in compare(caller, asked, product, layout, threads))
    assert (taken > 0) == bool(TAKEN[operator][product])


# ---- what is refused ------------------------------------------------------------------------------------------------

HOSTILE = (0, -1, 1, 2, 7, 51, 256, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**31), -(2**63))
FORMATS = [int(member) for member in aclnn_bw.aclFormat]


def spoil_tensor(rng, tensor: Placed, others: list[Placed]) -> Placed | None:
    """Another tensor in its place, with something that is wrong more often than not."""
    changed = Placed(**vars(tensor))
    size = NUMPY_DTYPE[aclnn_bw.aclDataType(tensor.dtype)].itemsize
    what = rng.choice(
        ["null", "dtype", "format", "sizes", "rank", "strides", "offset", "storage", "unbound", "at", "shared", "huge"]
    )
    if what == "null":
        return None
    if what == "dtype":  # of the same size: the memory stays
        changed.dtype = int(rng.choice([n for d, n in NUMBERS.items() if d.itemsize == size]))
    elif what == "format":
        changed.format = int(rng.choice(FORMATS))
    elif what == "sizes":
        axis = int(rng.integers(0, len(tensor.shape)))
        sizes = [*tensor.shape]
        sizes[axis] = max(0, sizes[axis] + int(rng.integers(-2, 3)))
        changed.shape = tuple(sizes)
    elif what == "rank":
        changed.shape = tensor.shape[1:] if rng.random() < 0.5 else (1, *tensor.shape)
        changed.strides = None
    elif what == "strides" and tensor.shape:
        changed.strides = tuple(int(v) for v in rng.integers(-3, 4, len(tensor.shape)))
    elif what == "offset":
        changed.offset = int(rng.choice([-1, 1, 2, 2**40, -(2**63), 2**63 - 1]))
    elif what == "storage":
        changed.storage = (max(0, math.prod(tensor.shape) - 1),)
        changed.memory = tensor.memory and tensor.memory[: size * changed.storage[0]]
    elif what == "unbound":
        changed.memory = None
    elif what == "at":
        changed.at = int(rng.integers(0, 64))
    elif what == "shared" and others and tensor.storage is None:
        other = others[int(rng.integers(0, len(others)))]
        if isinstance(other.memory, bytes) and len(other.memory) >= size * math.prod(tensor.shape):
            changed.memory = other
    elif what == "huge":  # nothing lies there
        changed.shape = tuple(int(rng.choice([1, 2, 2**31, 2**40, 2**62])) for _ in tensor.shape)
        changed.strides, changed.storage, changed.offset, changed.memory = None, None, 0, None
    if isinstance(changed.memory, bytes):  # a view that has grown gets what Python's face insists on
        elements = math.prod(changed.shape if changed.storage is None else changed.storage)
        changed.memory = changed.memory.ljust(elements * size, b"\xa5")
    return changed


def spoil_ints(rng, values: tuple[int, ...]) -> tuple[int, ...] | None:
    what = rng.random()
    if what < 0.15:
        return None
    if what < 0.4:
        return (*values, *values)[: int(rng.integers(0, 9))]
    changed = [*values] or [1]
    changed[int(rng.integers(0, len(changed)))] = int(rng.choice(HOSTILE))
    return tuple(changed)


def spoiled(rng, operator: str, layout: str) -> Asked:
    geometries = [g for g in OPERATORS[operator].geometries if not is_large(g) and g.get("layout", "bitmask") == layout]
    geometry = geometries[int(rng.integers(0, len(geometries)))] if geometries else {}
    dtype = rng.choice([np.float32, np.float16, np.float64])
    call = OPERATORS[operator](dtype=dtype, seed=int(rng.integers(0, 99)), **geometry)
    if layout == "argmax" and operator == "MaxPool2dWithMaskBackward" and rng.random() < 0.2:
        call["indices"].reshape(-1)[4 * int(rng.integers(0, 8)) :][:4].view("<i4")[...] = rng.choice([-1, 7, 10**6])
    how = rng if rng.random() < 0.5 else None
    arguments = [place(v, how) if isinstance(v, np.ndarray) else v for v in call.arguments.values()]
    for i in map(int, rng.permutation(len(arguments))[: int(rng.integers(1, 3))]):
        value = arguments[i]
        if isinstance(value, Placed):
            others = [v for v in arguments[:i] if isinstance(v, Placed)]
            if not any(v.memory is value for v in arguments if isinstance(v, Placed)):
                arguments[i] = spoil_tensor(rng, value, others)
        elif isinstance(value, tuple):
            arguments[i] = spoil_ints(rng, value)
        elif isinstance(value, bool):
            arguments[i] = not value
        elif isinstance(value, float):
            arguments[i] = float(rng.choice([-1.0, np.nan, np.inf, 1e300, 5e-324, 0.02, 50.0, 51.0]))
        elif value is not None:
            cube = list(call.arguments)[i] == "cubeMathType"
            arguments[i] = int(rng.choice([-128, -1, 0, 2, 3, 4, 127] if cube else HOSTILE))
    return Asked(operator, arguments, int(rng.choice([-1, -1, -1, 0, 1, 63, 1 << 20])))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_c_program_gets_the_same_refusals(caller, product, layout):
    rng = np.random.default_rng(list(f"{product} {layout}".encode()))
    calls = [spoiled(rng, operator, layout) for operator in OPERATORS for _ in range(40)]
    found = compare(caller, calls, product, layout)
    seen = {status for answer in found for status in (answer[0], answer[2])}
    assert seen >= {0, 161001, 161002}
    assert not any("None" in answer[3] for answer in found)


# ---- states, errors, deferred work ----------------------------------------------------------------------------------


def test_every_status_and_what_a_refusal_leaves(program):
    # 300,000 executors are left behind: each is told apart from the others to the end.
    assert run(program("status.c"), "300000") == ""


@pytest.mark.parametrize("name", ["objects.c", "contexts.c"])
def test_what_stands_around_the_operators(program, name):
    assert run(program(name)) == ""


@pytest.mark.parametrize("defers", ["0", "1"])
def test_events_order_the_work_of_streams(program, defers):
    # 30,000 streams wait for one another.
    assert run(program("events.c"), "30000", ACLNN_BW_ASYNC=defers) == ""


def test_float16_is_numpys(program, rng):
    near = np.arange(2**16, dtype=np.uint32) << 13  # every float32 of as many bits, and its neighbours
    bits = [near + offset for offset in (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF)]
    bits += [value | 0x80000000 for value in bits] + [rng.integers(0, 2**32, 10**6, dtype=np.uint32)]
    values = np.concatenate([(value + np.uint32(base)) for value in bits for base in (0, 112 << 23)]).view(np.float32)
    done = subprocess.run([str(program("halves.c"))], input=values.tobytes(), capture_output=True, check=True)
    widened, narrowed = done.stdout[: 2**18], np.frombuffer(done.stdout[2**18 :], np.float16)
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):  # some processors mind that a NaN is quieted
        wide = halves.astype(np.float32)
    for found, wanted in ((np.frombuffer(widened, np.float32), wide), (narrowed, narrow(values))):
        assert found.dtype == wanted.dtype
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        assert np.array_equal(np.signbit(found), np.signbit(wanted))
        assert np.array_equal(found, wanted, equal_nan=True)


def narrow(values):
    with np.errstate(all="ignore"):
        return values.astype(np.float16)


def test_work_waits_for_a_synchronize_if_asked_to(program):
    assert run(program("waiting.c"), ACLNN_BW_ASYNC="1", ACLNN_BW_MASK_LAYOUT="argmax") == ""


def test_a_missing_synchronize_shows(program, tmp_path):
    """The point of ACLNN_BW_ASYNC=1: a program that forgets it prints zeros and may not free what the work needs."""
    source = (HERE / "samples" / "avg_pool2d_backward.cpp").read_text()
    forgetful = tmp_path / "forgetful.cpp"
    forgetful.write_text(re.sub(r".*aclrtSynchronizeStream.*\n", "", source))
    built = compiled(CPP11, [forgetful], tmp_path / "forgetful", [f"-I{HERE / 'samples'}"])
    assert run(built) == SAMPLES["avg_pool2d_backward.cpp"]()
    done = subprocess.run([built], env=environment(ACLNN_BW_ASYNC="1"), capture_output=True, text=True, check=False)
    assert set(done.stdout.split()[1:]) == {"0"}
    assert done.returncode == 1
    assert "aclrtFree: error 107000: devPtr: work that waits on a stream needs it; synchronize first" in done.stderr


def test_the_log_has_a_line_for_every_call(program):
    built = program("samples/avg_pool2d_backward.cpp", compiler=CPP11)
    done = subprocess.run(
        [str(built)], env=environment(ACLNN_BW_LOG="1"), capture_output=True, text=True, check=True
    )
    tensors = ["aclrtMalloc", "aclrtMemcpy", "aclCreateTensor"] * 3
    wanted = ["aclInit", "aclrtSetDevice", "aclrtCreateStream", *tensors, *["aclCreateIntArray"] * 3]
    wanted += ["aclnnAvgPool2dBackwardGetWorkspaceSize", "aclnnAvgPool2dBackward", "aclrtSynchronizeStream"]
    wanted += ["aclrtMemcpy", *["aclDestroyTensor", "aclrtFree"] * 3, *["aclDestroyIntArray"] * 3]
    wanted += ["aclrtDestroyStream", "aclrtResetDevice", "aclFinalize"]
    lines = done.stderr.splitlines()
    assert [line.split()[1] for line in lines] == wanted
    assert all(re.fullmatch(r"aclnn_bw: \w+ -> 0(, workspace 0 bytes)?", line) for line in lines)
    assert done.stdout == SAMPLES["avg_pool2d_backward.cpp"]()
    quiet = subprocess.run([str(built)], env=environment(ACLNN_BW_LOG="0"), capture_output=True, check=True)
    assert quiet.stderr == b""


def test_the_log_tells_refusals(program):
    settings = environment(ACLNN_BW_LOG="1", ACLNN_BW_SOC="Ascend310P")
    done = subprocess.run([str(program("environment.c"))], env=settings, capture_output=True, text=True, check=True)
    assert re.search(r"^aclnn_bw: aclnnAvgPool2dBackwardGetWorkspaceSize -> 161002: cubeMathType", done.stderr, re.M)
    assert re.search(r"^aclnn_bw: aclGetRecentErrMsg -> 0$", done.stderr, re.M)


@pytest.mark.parametrize("soc", PRODUCTS)
def test_the_environment_chooses_the_product(program, soc):
    told = run(program("environment.c"), ACLNN_BW_SOC=soc)
    assert f"soc {soc}\n" in told
    taken = soc in ("Host", "Ascend910B")  # full float32
    assert f"phase1 {0 if taken else 161002} " in told


def test_a_chip_stands_for_its_series_in_any_case(program):
    for name, series in ("Ascend910B3", "Ascend910B"), ("ascend310p3", "Ascend310P"), ("HOST", "Host"):
        assert f"soc {series}\n" in run(program("environment.c"), ACLNN_BW_SOC=name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ACLNN_BW_SOC": "x"}, "ACLNN_BW_SOC = 'x': must be one of 'Ascend910', 'Ascend310P', 'Ascend910B', 'Host'"),
        ({"ACLNN_BW_MASK_LAYOUT": "x"}, "ACLNN_BW_MASK_LAYOUT = 'x': must be one of 'bitmask', 'argmax'"),
        ({"ACLNN_BW_SOC": "y" * 5000}, f"ACLNN_BW_SOC = '{'y' * 40}': must be one of"),
    ],
)
def test_a_name_that_does_not_exist_is_told(program, settings, message):
    told = run(program("environment.c"), **settings)
    assert f"aclInit 100000 {message}" in told
    assert f"phase1 161002 {message}" in told
    told = run(program("environment.c"), "nothing", **settings)
    assert f"phase1 161002 {message}" in told


@pytest.mark.parametrize("name", ["ACLNN_BW_NUM_THREADS", "OMP_NUM_THREADS", "ACLNN_BW_ISA"])
@pytest.mark.parametrize("value", ["x", "0", "-1", "99999999999999999999", "4x", "v9"])
def test_a_value_that_makes_no_sense_is_told_once_and_ignored(program, name, value):
    if name == "OMP_NUM_THREADS" and value != "x":
        pytest.skip("libgomp has words of its own for them")
    done = subprocess.run(
        [str(program("environment.c"))], env=environment(**{name: value}), capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("aclnn_bw:")]
    assert len(lines) == 1, done.stderr
    assert f"{name}='{value}' is ignored" in lines[0]
    assert "phase2 0" in done.stdout


# ---- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("defers", ["0", "1"])
@pytest.mark.parametrize("part", ["alone", "together", "going", "ring", "fork"])
def test_many_threads(program, part, defers):
    run(program("threads.c"), part, ACLNN_BW_ASYNC=defers)


def generated() -> list[Path]:
    """The C files below the face that have threads to care for, as the build has left them."""
    [folder] = sorted(HERE.parents[1].glob(f"build/temp.*{build_tag()}"))[:1] or [Path("/nonexistent")]
    files = [folder / "cython" / "aclnn_bw" / name for name in ("_capi/calls.c", "_core/executor.c", "_core/status.c")]
    return [*files, *sorted((HERE.parents[1] / "aclnn_bw" / "_capi").glob("*.c"))]


def build_tag() -> str:
    return f"cpython-{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture(scope="module")
def thread_sanitizer(tmp_path_factory) -> Path:
    """threads.c and all that has locks, instrumented; the kernels as they are, and no OpenMP, of which it knows
    nothing."""
    folder = tmp_path_factory.mktemp("thread_sanitizer")
    sources = generated()
    objects = sorted(HERE.parents[1].glob(f"build/temp.*{build_tag()}/_*/**/*.o"))
    objects = [path for path in objects if "_capi" not in path.parts and path.stem not in ("executor", "status")]
    if not all(path.exists() for path in sources) or not objects:
        unavailable("no objects of this Python's build in build/")
    root = HERE.parents[1] / "aclnn_bw"
    include = [*(f"-I{root / name}" for name in ("_core", "_kernels", "_capi", "include"))]
    include.append(f"-I{sysconfig.get_paths()['include']}")
    flags = ["-g", "-O1", "-fsanitize=thread", "-ffunction-sections", "-fdata-sections", "-fvisibility=hidden"]
    if any("_kernels_v2" in path.parts for path in objects):
        flags.append("-DACLNN_BW_VARIANTS")

    def compile_one(source: Path) -> str:
        names = [f"-DPyInit_{source.stem}=PyInit_{source.stem}_tsan", "-DCYTHON_NO_PYINIT_EXPORT"]
        to = folder / f"tsan_{source.stem}.o"
        subprocess.run(["gcc", *flags, *names, *include, "-c", str(source), "-o", str(to)], check=True)
        return str(to)

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(compile_one, [*sources, HERE / "threads.c"]))
    to = folder / "threads_tsan"
    command = ["gcc", "-fsanitize=thread", "-o", str(to), *made, *map(str, objects)]
    command += ["-Wl,--gc-sections", "-lm", "-pthread"]  # without the sections that need Python
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return to


@pytest.mark.parametrize("defers", ["0", "1"])
@pytest.mark.parametrize("part", ["alone", "together", "going", "ring"])
def test_thread_sanitizer(thread_sanitizer, part, defers):
    options = "halt_on_error=1:exitcode=66"
    prelude = ["setarch", "-R"] if shutil.which("setarch") else []  # more random addresses than it can take
    run(thread_sanitizer, part, "60", prelude=prelude, ACLNN_BW_ASYNC=defers, TSAN_OPTIONS=options)


# ---- memory ---------------------------------------------------------------------------------------------------------

CHECKED = {  # program, perhaps with a word: its compiler, and what it needs in the environment
    **{f"samples/{name}": (languages(name)[0], {}) for name in SAMPLES},
    "status.c": (C99, {}),
    "waiting.c": (C99, {"ACLNN_BW_ASYNC": "1", "ACLNN_BW_MASK_LAYOUT": "argmax"}),
    "arrays.cpp": (CPP17, {}),
    "objects.c": (C99, {}),
    "contexts.c": (C99, {}),
    "events.c": (C99, {}),
    "events.c held back": (C99, {"ACLNN_BW_ASYNC": "1"}),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * name.startswith("samples/")) for name in CHECKED]
)
def test_valgrind_finds_nothing(program, name):
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")
    kinds = "definite,indirect,possible"
    compiler, settings = CHECKED[name]
    run(
        program(name.split()[0], compiler=compiler), prelude=[
            "valgrind", "-q", "--error-exitcode=1", "--leak-check=full", f"--show-leak-kinds={kinds}",
            f"--errors-for-leak-kinds={kinds}",
        ], ACLNN_BW_NUM_THREADS="1", **settings,
    )  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_address_and_undefined_behaviour_sanitizers_find_nothing(program, name):
    compiler, settings = CHECKED[name]
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    # The latter's library brings the runtime of C++ into a program in C, whose free then meets a new[].
    options = f"alloc_dealloc_mismatch={int(compiler != C99)}:detect_leaks=1"
    run(program(name.split()[0], *flags, compiler=compiler), ASAN_OPTIONS=options, **settings)


def test_free_is_right_in_a_program_without_cpp(program):
    built = program("status.c", "-g", "-fsanitize=address")
    run(built, ASAN_OPTIONS="alloc_dealloc_mismatch=1:detect_leaks=1")


def test_the_sanitized_caller_touches_nothing_beside_its_memory(program):
    """Calls of which every memory is a block of its own, as long as it is said to be."""
    flags = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    rng = np.random.default_rng(8)
    compare(program("caller.c", *flags), [spoiled(rng, name, "bitmask") for name in OPERATORS for _ in range(40)])
