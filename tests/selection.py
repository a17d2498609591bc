"""Which tests plain `pytest` runs: every function, and of its parameters' product a covering design.

Of a function with three parameters or more it runs as many cases as show every pair of two parameters' values, and of
one marked ``each_value``, whose cases take long, or show a property of what another function shows in pairs, as many
as show each value. Which, is drawn from the function's name and so the same on every run. The rest is marked
``thorough``, and ``-m thorough`` runs it. A test that asks for the fixture ``thorough`` or ``step`` runs in both, and
in the thorough run tries more.
"""

import random
from collections import defaultdict
from itertools import combinations

import pytest


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
    if is_asked_for(config) or any("[" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]


def not_covering(items):
    """The cases that the others of their function cover."""
    functions = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            functions[item.nodeid.partition("[")[0]].append(item)
    rest = set()
    for name, cases in functions.items():
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


@pytest.fixture(scope="session")
def thorough(request):
    """Whether to try more."""
    return is_asked_for(request.config)


@pytest.fixture(scope="session")
def step(thorough):
    """One of how many calls to try: of a long list every eleventh, or all. No product's axis has eleven values."""
    return 1 if thorough else 11
