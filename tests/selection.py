"""Which tests plain `pytest` runs: every function, and of its parameters' product a covering design.

Of a function with three parameters or more it runs as many cases as show every pair of two parameters' values; of one
marked ``each_value``, whose cases take seconds, as many as show each value. Which, is drawn from the function's name
and so the same on every run. The rest is marked ``thorough``, and ``-m thorough`` runs it, or with ACLNN_BW_SHARE=k/n
in the environment one of n shares of it, k from 0 on, drawn from the cases' names. A test that asks for the fixture
``thorough`` or ``step`` runs in both, and in the thorough run tries more.

Most cases take less time than pytest takes to set one up. Where a function has many, a test of the name of one runs
some others after it; if any fails, the report ends with their names. A case that is named on the command line runs by
itself.
"""

import os
import random
import zlib
from collections import defaultdict
from inspect import signature
from itertools import combinations

import numpy as np
import pytest

TOGETHER = 20  # cases that one test runs
CASES = pytest.StashKey[list]()
# Other fixtures than parameters that a test of several cases may have: the same for all, or made anew for each.
SHARED = {"request", "rng", "step", "thorough"}
SHARED |= {"garbage_is_the_tests_own", "one_thread_for_torch", "settings_are_restored"}  # autouse
APART = ("alone", "skip", "skipif", "slow", "xfail")  # marks of tests of one case


def is_asked_for(config):
    """Whether ``-m`` names the thorough tests."""
    return "thorough" in config.getoption("markexpr")


def select(config, items):
    """Mark what is thorough; leave it out, in place, unless it is asked for or a case is named on the command line."""
    rest = not_covering(items)
    for item in items:
        does_more = "thorough" in item.fixturenames  # which `step` asks for too
        if item in rest or (does_more and is_asked_for(config)):
            item.add_marker("thorough")
    if any("[" in argument for argument in config.args):
        return
    if is_asked_for(config):
        kept = [item for item in items if _is_in_share(item)]
    else:
        kept = [item for item in items if not item.get_closest_marker("thorough")]
    if len(kept) < len(items):
        left = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in left])
        items[:] = kept


def _is_in_share(item):
    share, _, shares = os.environ.get("ACLNN_BW_SHARE", "0/1").partition("/")
    return zlib.crc32(item.nodeid.encode()) % int(shares) == int(share)


def not_covering(items):
    """The cases that the others of their function cover."""
    rest = set()
    for name, cases in _by_function(items):
        axes = [_names(mark) for mark in cases[0].iter_markers("parametrize")]
        together = 1 if cases[0].get_closest_marker("each_value") else 2
        if len(axes) > together:
            shown = [_shown(case, axes, together) for case in cases]
            kept = covering(shown, random.Random(name))
            rest.update(case for number, case in enumerate(cases) if number not in kept)
    return rest


def covering(shown, generator):
    """Numbers of sets that have all the elements which any of the sets has: first those that bring the most."""
    order = list(range(len(shown)))
    generator.shuffle(order)
    kept, seen = set(), set()
    for new in range(max(map(len, shown)), 0, -1):
        for number in order:
            if number not in kept and len(shown[number] - seen) >= new:
                kept.add(number)
                seen |= shown[number]
    return kept


def _names(mark):
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)


def _shown(case, axes, together):
    # The very objects of the marks: many have no equality of their own.
    values = [(names, *(id(case.callspec.params[name]) for name in names)) for names in axes]
    return set(combinations(values, together))


def gather(config, items):
    """Leave in `items` one of each few cases that are run together."""
    if any("[" in argument for argument in config.args):
        return
    along = set()
    for cases in _alike(filter(_can_be_together, items)):
        for start in range(0, len(cases), TOGETHER) if len(cases) > TOGETHER else ():
            first, *others = cases[start : start + TOGETHER]
            first.stash[CASES] = [first, *others]
            along.update(others)
    items[:] = [item for item in items if item not in along]


def run(item):
    """Run the cases of an item that stands for several; whether it was such a one."""
    if CASES not in item.stash:
        return None
    failures, skipped = {}, []
    for case in item.stash[CASES]:
        arguments = {**item.funcargs, **{name: case.callspec.params[name] for name in _parameters(case)}}
        if "rng" in arguments:
            arguments["rng"] = generator(case)
        try:
            item.obj(**{name: arguments[name] for name in signature(item.obj).parameters})
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except (Exception, pytest.fail.Exception) as error:
            failures[case.nodeid] = error
    if failures:
        item.add_report_section("call", "cases that failed", "\n".join(failures))
        raise next(iter(failures.values()))
    if len(skipped) == len(item.stash[CASES]):
        raise skipped[0]
    return True


def generator(case):
    """Random numbers that depend on the test's name alone: the same on every run, in any order and company."""
    return np.random.default_rng(list(case.nodeid.encode()))


def _can_be_together(item):
    return (
        hasattr(item, "callspec")
        and item.cls is None
        and not any(item.get_closest_marker(name) for name in APART)
        and not hasattr(item.obj, "hypothesis")
        and "request" not in signature(item.obj).parameters
        and set(item.fixturenames) <= SHARED | item.callspec.params.keys()
    )


def _parameters(case):
    return {name for mark in case.iter_markers("parametrize") for name in _names(mark)}


def _alike(items):
    """Lists of cases of one function and with the same values of fixtures."""
    lists = defaultdict(list)
    for item in items:
        fixtures = item.callspec.params.keys() - _parameters(item)
        key = item.nodeid.partition("[")[0], *((name, id(item.callspec.params[name])) for name in sorted(fixtures))
        lists[key].append(item)
    return lists.values()


def _by_function(items):
    functions = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            functions[item.nodeid.partition("[")[0]].append(item)
    return functions.items()


@pytest.fixture(scope="session")
def thorough(request):
    """Whether to try more."""
    return is_asked_for(request.config)


@pytest.fixture(scope="session")
def step(thorough):
    """One of how many calls to try: of a long list every eleventh, or all. No product's axis has eleven values."""
    return 1 if thorough else 11
