"""A plugin for pytest where a processor is emulated, or a build is one of many: of a test function's cases it leaves
FEW, drawn by its name."""

import random
from collections import defaultdict

FEW = 2


def pytest_collection_modifyitems(config, items):
    functions = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for name, cases in functions.items():
        kept.update(random.Random(name).sample(cases, min(FEW, len(cases))))
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
