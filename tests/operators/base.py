"""What the tests know of every operator, and a legal call of it."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from engine_helpers import PRODUCTS, SENTINEL, untouched
from fuzz.rules import MOST_RANK, View

import aclnn_bw
from aclnn_bw._records import OPERATORS as RECORDS

# The dtypes of one product.
NONE = ()
BASIC = ("float32", "float16")
WITH_BF16 = (*BASIC, "bfloat16")
REAL = (*WITH_BF16, "float64")


def on_products(*dtypes):
    """The dtypes on each of PRODUCTS."""
    return dict(zip(PRODUCTS, dtypes, strict=True))


class Operator:
    """A legal call of one operator: its arguments in the order of the C call, and what its outputs shall hold.

    `shape` is that of the image, with or without N; geometry is that of the operator's `make`. `layout` is that of a
    max pool's mask: phase 1 must run under it. All numbers are integers so small that every sum is exact.
    """

    # The parameters of phase 1 in C, but for the two results, and the signature of the one-call function in Python.
    declaration: ClassVar[str]
    signature: ClassVar[str]
    headers: ClassVar[tuple[str, ...]]  # under aclnnop/ and aclnnop/level2/
    nullable = ()  # pointers of `declaration` that may be null
    # Of each tensor argument, in order: "read", "shape" (its values are not), or "written".
    roles: ClassVar[dict]
    leads = ""  # the tensor whose dtype is looked at first, if that is not the first one
    dtypes: ClassVar[dict]  # by product; none where the product lacks the operator
    geometries: ClassVar[list]  # what reaches every branch that a program outside of Python may take
    page: ClassVar[str]  # docs/operators/PAGE.md
    core = ""  # _core/CORE.pxd, if that is not PAGE
    enums: ClassVar[tuple]  # of it, whose members are the algorithms, in their order
    demo: ClassVar[tuple]  # a row that `aclnn-bw demo` prints, and its last line
    picture: ClassVar[tuple | None] = None  # the shape of an output and its gradient, where the page has a drawing
    copies = False  # whether elements are copied bit for bit
    exact = True  # whether the results of small integers are
    most_positions = 1 << 62  # of a kernel that a random call is run with

    def __init__(self, shape=(2, 3, 8, 8), dtype=np.float32, seed=0, layout="bitmask", **geometry):
        self.shape, self.dtype, self.layout = shape, np.dtype(dtype), layout
        self.rng = np.random.default_rng(seed)
        self.arguments = self.make(**geometry)

    def __getitem__(self, name):
        return self.arguments[name]

    # ---- what an operator gives ----

    def make(self, **geometry):
        """The arguments by name; outputs are full of sentinels."""
        raise NotImplementedError

    def twin(self):
        """What the outputs shall hold, by another way than the package's, in any wider dtype."""
        raise NotImplementedError

    @classmethod
    def sample(cls):
        """By name, what the C sample of this operator prints, computed by both phases in Python."""
        raise NotImplementedError

    @staticmethod
    def rules(judge, call, arguments):
        """What must be refused, written down a second time; see fuzz/rules.py."""
        raise NotImplementedError

    @staticmethod
    def draw(drawing):
        """A right call of tiny shapes, for fuzz/hostile.py."""
        raise NotImplementedError

    @staticmethod
    def expected(drawn, values, arguments):
        """What an accepted call of fuzz/hostile.py computes of its first tensor's `values`."""
        raise NotImplementedError

    @staticmethod
    def fresh(meaning):
        """The shape of a one-call function's own result; None where that cannot be told."""
        view = meaning["self"]
        return view.shape if isinstance(view, View) and view.rank <= MOST_RANK else None

    guarded: ClassVar[type]  # the Case of fuzz/guard_pages.py

    # ---- what follows ----

    @classmethod
    def record(cls):
        return RECORDS[cls.__name__]

    @classmethod
    def parameter(cls, name):
        """The record's parameter of this name in either interface."""
        found = [one for one in cls.record().parameters if name in (one.name, one.one_call)]
        return found[0] if found else None

    @classmethod
    def named(cls, *roles):
        """The names of the tensor arguments that have one of these roles."""
        return tuple(name for name, role in cls.roles.items() if role in roles)

    def integers(self, *shape):
        values = self.rng.integers(-15, 16, shape)
        return (values + 1j * values[::-1] if self.dtype.kind == "c" else values).astype(self.dtype)

    def keywords(self):
        """The arguments of the one-call function by name, but for its results."""
        found = {}
        for one in self.record().parameters:
            if one.kind == "layout":
                found[one.one_call] = self.layout
            elif one.kind == "shape":
                found[one.one_call] = self[one.name].shape
            elif one.kind != "written" and not one.two_phase_only:
                value = self[one.name]
                found[one.one_call] = None if one.optional and not value else value
        return found

    def one_call(self):
        """The outputs of the one-call function for these arguments."""
        found = getattr(aclnn_bw, self.record().one_call)(**self.keywords())
        return found if isinstance(found, tuple) else (found,)

    def phase1(self, /, **changes):
        """(workspaceSize, executor), with some arguments replaced."""
        arguments = {**self.arguments, **changes}
        assert len(arguments) == len(self.arguments)
        return getattr(aclnn_bw, f"aclnn{type(self).__name__}GetWorkspaceSize")(*arguments.values())

    @classmethod
    def phase2(cls, size, executor, stream=None):
        """Run with a workspace of exactly `size` bytes."""
        getattr(aclnn_bw, f"aclnn{cls.__name__}")(bytearray(size) if size else None, size, executor, stream)

    @classmethod
    def by_phases(cls, *arguments):
        cls.phase2(*getattr(aclnn_bw, f"aclnn{cls.__name__}GetWorkspaceSize")(*arguments))

    def run(self, /, **changes):
        self.phase2(*self.phase1(**changes))

    def repeatable(self):
        size, executor = self.phase1()
        aclnn_bw.aclSetAclOpExecutorRepeatable(executor)
        return size, executor

    @property
    def outputs(self):
        return {name: self[name] for name in self.named("written")}

    @cached_property
    def wanted(self):
        """What the outputs shall hold."""
        return {name: value.astype(self[name].dtype) for name, value in self.twin().items()}

    def check(self, wanted=None):
        """The outputs hold what this call, or another one over the same arrays, wants."""
        for name, value in (wanted or self.wanted).items():
            assert self[name].tobytes() == value.tobytes(), f"{name} of {type(self).__name__}"

    def untouched(self):
        return all(untouched(array) for array in self.outputs.values())

    def clear(self):
        for array in self.outputs.values():
            array.view(np.uint8)[...] = SENTINEL
