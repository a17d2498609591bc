"""Hostile calls leave no memory behind: neither the accepted ones, nor those refused at any place."""

import numpy as np
import pytest
from engine_helpers import run_python
from helpers import TESTS

if np.lib.NumpyVersion(np.__version__) < "2.1.0":
    pytest.skip("np.add.at of NumPy 2.0, which the twin uses, fails on some views", allow_module_level=True)
pytest.importorskip("fuzz.hostile", reason="the fuzzers need a POSIX system")


@pytest.mark.parametrize(
    ("warm", "calls", "blocks", "size"),
    [(4_000, 10_000, 0.5, 100), pytest.param(20_000, 100_000, 0.1, 30, marks=pytest.mark.slow)],
)
def test_memory_does_not_grow_over_hostile_calls(warm, calls, blocks, size):
    """What stays of a call, in blocks and bytes: some of NumPy's and the interpreter's caches still fill."""
    code = f"""
        import functools, gc, os, resource, sys
        sys.path.insert(0, {str(TESTS)!r})
        from fuzz import hostile
        from test_executor import used_bytes

        if not os.environ.get("LD_PRELOAD"):
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        import aclnn_bw
        aclnn_bw.set_num_threads(1)
        fuzzer = hostile.Fuzzer()

        def used(first, last):
            for number in range(first, last):
                fuzzer.one(2, number)
            aclnn_bw.aclrtSynchronizeDevice()
            gc.collect()
            for found in gc.get_objects():
                if isinstance(found, functools._lru_cache_wrapper):     # the twin's tables
                    found.cache_clear()
            gc.collect()
            return sys.getallocatedblocks(), used_bytes()

        blocks, size = used(0, {warm})
        more_blocks, more_size = used({warm}, {calls})
        print(more_blocks - blocks, more_size - size)
    """
    more_blocks, more_size = map(int, run_python(code, timeout=1200).stdout.split())
    assert more_blocks < (calls - warm) * blocks
    assert more_size < (calls - warm) * size
