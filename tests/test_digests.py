"""Nothing that the operators compute has changed: the digests of digests.py are those that are stored."""

import json
import os

import digest_calls
import digests
import numpy as np
import pytest
from helpers import past_the_caches, require_isa, run_python
from operators import OPERATORS

import aclnn_bw
from aclnn_bw.explanation import ALGORITHMS

RUN = "import digests, json; print(json.dumps(digests.digests({step})))"


def assert_same(seen, step=1):
    stored = digests.stored()
    if step > 1:  # some of them
        assert len(seen) * step >= len(stored)
        stored = {name: stored.get(name) for name in seen}
    lines = digests.differences(seen, stored)
    assert not lines, f"{len(lines)} digests differ:\n" + "\n".join(lines)


def test_the_same_as_stored():
    with aclnn_bw.num_threads(1):
        assert_same(digests.digests())


@pytest.mark.thorough
def test_the_same_on_more_threads(tmp_path):
    # On a busy machine threads that spin for one another take several times as long.
    environment = {"ACLNN_BW_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive"}
    isa = {"ACLNN_BW_ISA": os.environ["ACLNN_BW_ISA"]} if "ACLNN_BW_ISA" in os.environ else {}
    assert_same(json.loads(run_python(RUN.format(step=1), tmp_path, **environment, **isa)))


def test_the_same_past_the_caches(thorough):
    step = 1 if thorough else 3
    with past_the_caches(), aclnn_bw.num_threads(1):
        assert_same(digests.digests(step), step)


def test_large_new_results_are_those_in_memory_made_before():
    """Of more than 32 MiB what is new is written another way: not past the caches (goes_past of executor.pxd)."""
    x = np.arange(2 * 8 * 768 * 768, dtype=np.float32).reshape(2, 8, 768, 768)
    _, mask = aclnn_bw.max_pool2d_with_mask(x, 2)
    grad = x[:, :, :384, :384]
    calls = {
        "max_pool2d_with_mask_backward": (grad, x, mask, 2),
        "avg_pool2d_backward": (grad, x.shape, 2),
        "replication_pad2d": (x[:, :, :-2, :-2], 1),
        "upsample_nearest_exact1d": (x[:, :, 0], 768 * 768),
        "im2col": (x[:1, :2], 3),
    }
    with past_the_caches(), aclnn_bw.num_threads(1):
        for name, arguments in calls.items():
            new = getattr(aclnn_bw, name)(*arguments)
            before = np.full_like(new, np.nan)
            getattr(aclnn_bw, name)(*arguments, out=before)
            assert new.nbytes > 32 << 20
            assert np.array_equal(new, before), name


@pytest.mark.parametrize("isa", ["v2", "v3", "v4"])
def test_the_same_on_every_instruction_set(isa, tmp_path, thorough):
    require_isa(isa)
    if aclnn_bw.show_config(mode="dict")["isa"] == isa:
        pytest.skip("the tests above use this one")
    environment = {"ACLNN_BW_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    step = 1 if thorough else 3     # by which each of the four dtypes takes its turn
    assert_same(json.loads(run_python(RUN.format(step=step), tmp_path, ACLNN_BW_ISA=isa, **environment)), step)


# ---- what the calls reach -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explained():
    """Each call of each operator in each dtype: what phase 1 tells, and the call."""
    found = {operator: [] for operator in OPERATORS}
    with aclnn_bw.num_threads(2):
        for _, group, dtype in digests.each():
            for call in group.calls:
                found[call.operator].append((digests.plan(call, dtype).explain(), call, dtype))
    return found


def test_every_operator_and_algorithm_is_reached_in_every_dtype(explained):
    for operator, known in ALGORITHMS.items():
        for dtype in {*OPERATORS[operator].dtypes["Host"]} & {*digest_calls.ALL}:
            seen = {name for found, _, of in explained[operator] if of == dtype for name in found.algorithm.split(", ")}
            never = {"EACH"}  # that takes 2**31 elements
            if dtype == "float64" or aclnn_bw.show_config(mode="dict")["isa"] not in ("v3", "v4"):
                never.add("GATHER_ACROSS")  # of so few lanes to a vector
            assert seen == known.keys() - never, f"{operator} of {dtype}"


def test_algorithms_meet_layouts_and_values(explained):
    """Each of them with every layout of input and output that it takes, and with special values."""
    # DOUBLE reads dense rows of windows, FLAT dense planes, PACKED channels that lie side by side; the others of these
    # write rows without gaps, and `last` read and write channels that lie side by side.
    last = {"GATHER_LAST", "LAST", "SCATTER_LAST"}
    isa = aclnn_bw.show_config(mode="dict")["isa"]
    never = {"EACH", "STREAMED", "FILL"} | (set() if isa in ("v3", "v4") else {"GATHER_ACROSS"})
    dense = {"DOUBLE", "FLAT", "INTERLEAVE", "PAIRS", "PLACE", "ROWS", "TABLE", "TURNED", "WINDOWS"} | last
    small = {"GATHER_ACROSS", "PLANES"}  # met by plain calls of planes without gaps
    read = {"DOUBLE": {"rows_cropped", "rows_reversed"}, "FLAT": set(), "GATHER_ACROSS": set()}
    read |= {key: {"channels_last"} for key in last | {"PACKED"}}
    for operator, known in ALGORITHMS.items():
        if any(enum.endswith("Layout") for enum in OPERATORS[operator].enums):
            continue  # their names are of layouts
        for name in known.keys() - never:
            calls = [call for found, call, _ in explained[operator] if name in found.algorithm.split(", ")]
            assert read.get(name, {"channels_last", "rows_reversed"}) <= {call.layout for call in calls}, name
            assert name in dense | small - {"PLANES"} or len({call.out for call in calls}) > 10, name
            assert "special" in {call.kind for call in calls} or name in small, name
    for operator in "MaxPool2dWithMask", "MaxPool2dWithMaskBackward":
        for name in ALGORITHMS[operator].keys() - never:
            masks = {call.mask for found, call, _ in explained[operator] if found.algorithm == name}
            one = {"SCATTER_LAST": {"argmax"}, "GATHER_ACROSS": {"bitmask"}}
            assert masks == one.get(name, {"bitmask", "argmax"}), name


def test_sizes_from_one_thread_to_beyond_the_caches(explained):
    beyond = {"MaxPool2dWithMaskBackward": 16 << 20, "Im2colBackward": 32 << 20, "ReplicationPad2dBackward": 32 << 20}
    for operator, calls in explained.items():
        for dtype in digest_calls.REAL:
            sizes = [found.compulsory_bytes for found, _, of in calls if of == dtype]
            assert min(sizes) < 512
            assert max(sizes) > beyond.get(operator, 2 << 20)
            assert {found.ranges for found, _, of in calls if of == dtype} >= {1, 2}
            needs = max(found.workspace_size for found, _, of in calls if of == dtype)
            assert needs > 0 or OPERATORS[operator].copies
    # These are written past the caches, if their rows lie side by side.
    for operator, names in ("Im2colBackward", {"GATHER", "INTERLEAVE"}), ("ReplicationPad2dBackward", {"PLANES"}):
        streamed = [
            found.algorithm
            for found, call, _ in explained[operator]
            if found.compulsory_bytes > 32 << 20 and call.out == "contiguous"
        ]
        assert names <= set(streamed)


def test_both_faces_are_used():
    ways = {operator: set() for operator in OPERATORS}
    for _, group, _ in digests.each():
        for number, call in enumerate(group.calls):
            one_call = number % 3 == 2 and call.product == "Host" and not call.rest
            ways[call.operator] |= {(one_call, call.out == "contiguous")}
    assert all(seen == {(False, False), (False, True), (True, False), (True, True)} for seen in ways.values())


# ---- the digests themselves -----------------------------------------------------------------------------------------


def test_the_file_is_small_and_names_every_group():
    assert digests.STORED.stat().st_size < 60_000
    assert digests.stored().keys() == {f"{name}, {dtype}" for name, _, dtype in digests.each()}


def test_groups_can_be_left_out():
    seen, some = (digests.digests(step=60, without=texts) for texts in ((), ("Pool",)))
    assert some == {name: digest for name, digest in seen.items() if "Pool" not in name}
    assert 0 < len(some) < len(seen)


def test_inputs_are_those_of_every_numpy():
    """The first numbers of each dtype, as bits: they depend on the stream of a generator and on integers alone."""
    first = {name: [hex(bits) for bits in digest_calls.numbers(name, "plain")[:3]] for name in digest_calls.REAL}
    assert first == {
        "float32": ["0x40519f10", "0xc04bed0c", "0x3e0db988"],
        "float64": ["0x4002ea1a18d19f10", "0xc00bd224a94bed0c", "0x3fc7f767e48db988"],
        "float16": ["0x4310", "0xc10c", "0x3188"],
        "bfloat16": ["0x4010", "0xc00c", "0x3e08"],
    }


def test_values():
    for name in digest_calls.REAL:
        kinds = ("plain", "special", "coarse")
        plain, special, coarse = (digest_calls.values(name, (digest_calls.DRAWN,), 5, kind) for kind in kinds)
        wide = plain.astype(np.float64)
        assert np.all(np.isfinite(wide))
        assert 2.0**-7 <= np.abs(wide).min() < np.abs(wide).max() < 2.0**4
        assert len(np.unique(coarse.astype(np.float64))) == 88
        wide = special.astype(np.float64)
        assert np.isnan(wide).any()
        assert np.isinf(wide).any()
        assert np.any((wide == 0) & np.signbit(wide))
        assert np.any((wide == 0) & ~np.signbit(wide))


def test_sums_of_nothing_have_no_sign():
    seen = 0
    for name, group, dtype in digests.each():
        if "nothing but -0.0" in name:
            for number, call in enumerate(group.calls):
                for result in digests.results(call, dtype, number):
                    if result.dtype == digest_calls.DTYPES[dtype]:
                        assert not np.ascontiguousarray(result).view(np.uint8).any(), (name, dtype, call)
                        seen += 1
    assert seen > 200


@pytest.mark.parametrize("name", digest_calls.ALL)
def test_every_nan_is_one(name):
    dtype = digest_calls.DTYPES[name]
    a, b = np.ones(9, dtype), np.ones(9, dtype)
    parts = a.view(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else a
    others = b.view(parts.dtype)
    parts[3], others[3] = np.nan, -np.float32(np.nan)
    assert a.tobytes() != b.tobytes()
    assert np.array_equal(digest_calls.canonical(a), digest_calls.canonical(b))
    parts[4], others[4] = 0.0, -0.0
    assert not np.array_equal(digest_calls.canonical(a), digest_calls.canonical(b))


def test_a_change_of_one_bit_is_noticed(monkeypatch):
    name, group, dtype = next(digests.each())
    wanted = digests.digest_of(group, dtype)
    assert wanted == digests.stored()[f"{name}, {dtype}"]
    results = digests.results

    def wrong(call, dtype, number):
        outs = results(call, dtype, number)
        if number == len(group.calls) - 1:
            outs[0].reshape(-1).view(np.uint8)[-1] ^= 1
        return outs

    monkeypatch.setattr(digests, "results", wrong)
    assert digests.digest_of(group, dtype) != wanted
    lines = digests.differences({name: "a", "new": "b"}, {name: "c", "old": "d"})
    assert lines == [f"{name}: a, not c", "new: b is not stored", "old: is stored, but no longer computed"]
