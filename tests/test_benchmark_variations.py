"""The benchmarks of one call under several circumstances: strided inputs, one thread, and where arrays end."""

import json
import mmap
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import aclnn_bw
from benchmarks import cases, ends, machine, masks, strided, threads, variations
from benchmarks.check import WrongResult
from benchmarks.operators import OPERATORS
from benchmarks.problem import REAL, Case

SMALL = [
    replace(case, shape=(3, *case.shape[1:])) for operator in OPERATORS.values() for case in operator.small()
]
PAD = Case("replication_pad2d_backward", (3, 4, 5, 6), {"padding": 1})


def two_threads(problem):
    return threads.variants(problem, (2, 1))


def ends_of_last(problem):
    return ends.variants(problem, last=True)


@pytest.mark.parametrize("variants", [strided.variants, two_threads, ends.variants, ends_of_last])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case.operator} {case.title}")
def test_every_operator_is_compared(case, dtype, variants):
    row = variations.run(case, dtype, variants, budget=0.001)
    first, *others = row.times
    assert others == list(row.ratios)
    assert all(time.median > 0 for time in row.times.values())
    assert all(0 < ratio.low <= ratio.median <= ratio.high for ratio in row.ratios.values())
    assert first in ("contiguous", "2 threads", "memory")


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5)])
def test_layouts(shape):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    views = {name: lay(array) for name, lay in strided.LAYOUTS.items()}
    assert all(np.array_equal(view, array) for view in views.values())
    assert views["contiguous"].flags.c_contiguous
    rows = views["padded rows"]
    assert rows.strides[-1] == 4
    assert rows.strides[-2] == 4 * (shape[-1] + 2)
    channels = views["channels last"]
    assert channels.strides[1] == 4
    assert channels.strides[-1] == 4 * shape[1]


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 4, 40, 50)])
def test_arrays_end_where_their_pages_do(shape, last, memory):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    array = strided.channels_last(array) if last else array
    copy = ends.placed(array, memory=memory)
    assert np.array_equal(copy, array)
    assert copy.strides == array.strides
    assert -(copy.ctypes.data + copy.nbytes) % mmap.PAGESIZE < 64
    assert copy.ctypes.data % 64 == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("memory", [True, False])
def test_what_lies_behind_is_memory_or_none(memory):
    program = f"""import ctypes, mmap, numpy as np
from benchmarks import ends
copy = ends.placed(np.zeros((1, 2, 3)), memory={memory})
for behind in 0, 8 << 20:
    ctypes.string_at(copy.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE + mmap.PAGESIZE + max(behind - 1, 0), 1)"""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == (0 if memory else -signal.SIGSEGV), done.stderr


def test_ends_prints_a_table(capsys):
    arguments = ["--seconds", "0.001", "--threads", "1", "--operator", "avg_pool2d_backward", "--dtype", "float32"]
    assert ends.main([*arguments, "--case", "2x3x9x10", "--last"]) == 0
    heading, _, *lines = capsys.readouterr().out.partition("avg_pool2d_backward\n")[2].splitlines()
    assert heading.split() == ["case", "dtype", "MiB", "memory", "none", "ratio"]
    assert lines
    assert not any("input" in case.title for case in ends.cases())


def test_other_bits_are_caught(monkeypatch):
    def one_bit_off(array):
        view = strided.padded_rows(array)
        view[2, 1, 0, 0] = np.nextafter(view[2, 1, 0, 0], np.float32(9))
        return view

    monkeypatch.setitem(strided.LAYOUTS, "padded rows", one_bit_off)
    case = Case("avg_pool2d_backward", (3, 4, 8, 8), {"kernel_size": 1})
    with pytest.raises(WrongResult, match="padded rows, avg_pool2d_backward 3x4x8x8 k1 float32: other bits"):
        variations.run(case, "float32", strided.variants, budget=0.001)


def test_the_first_one_is_checked_against_the_formula(monkeypatch):
    right = aclnn_bw.replication_pad2d_backward
    monkeypatch.setattr(aclnn_bw, "replication_pad2d_backward", lambda *a, out=None: right(*a, out=out).__imul__(2))
    with pytest.raises(WrongResult, match="element"):
        variations.run(PAD, "float32", strided.variants, budget=0.001)


@pytest.mark.parametrize("dtype", REAL)
def test_strided_cases_lie_on_both_sides_of_the_cache(dtype):
    listed = strided.cases(dtype)
    assert {case.operator for case in listed} == set(OPERATORS)
    for within, beyond in zip(listed[::2], listed[1::2], strict=True):
        assert 4 << 20 < cases.bytes_moved(within, dtype) < 32 << 20
        assert cases.bytes_moved(beyond, dtype) > 64 << 20


def test_an_executor_keeps_its_threads():
    case = Case("replication_pad2d_backward", (8, 16, 64, 64), {"padding": 1})
    with cases.rules(case):
        problem, _ = cases.posed(case, "float32")
        contestants = threads.variants(problem, (2, 1))
    assert list(contestants) == ["2 threads", "1 thread"]
    one, two = (contestants[name].into.names["executor"] for name in ("1 thread", "2 threads"))
    assert one is not two
    assert contestants["1 thread"].outs[0] is contestants["2 threads"].outs[0]


def test_strided_prints_a_table_and_writes_the_figures(monkeypatch, capsys, tmp_path):
    for operator in OPERATORS.values():
        images = tuple((case.shape[1:], case.attributes) for case in operator.small())
        monkeypatch.setattr(operator, "images", lambda images=images: images)
    file = tmp_path / "figures.json"
    arguments = ["--quick", "--seconds", "0.001", "--threads", "1", "--json", str(file)]
    assert strided.main([*arguments, "--operator", "avg_pool2d_backward", "--dtype", "float64"]) == 0
    head, table = capsys.readouterr().out.split("avg_pool2d_backward\n")
    assert "1 thread for everybody" in head
    heading, _, *lines = table.splitlines()
    assert heading.split("  ")[0] == "case"
    assert [line.split("  ")[0] for line in lines] == ["1x3x9x10 k3 s2 p1", "10x3x9x10 k3 s2 p1"]
    assert {len(line) for line in lines} == {len(heading)}
    figures = json.loads(file.read_text())
    assert figures["wrong"] == []
    assert [list(row["ratios"]) for row in figures["rows"]] == [["padded rows", "channels last", "all last"]] * 2


def test_threads_lists_the_cases_beyond_the_cache(monkeypatch, capsys):
    monkeypatch.setattr(threads, "caches", lambda: {"L1": 32 << 10, "L3": 10 << 20})
    assert threads.main(["--list", "--operator", "im2col_backward", "--case", "56x56 k2 s2", "--case", "1x4x6x6"]) == 0
    # 12.8 MB of float32.
    assert capsys.readouterr().out.splitlines() == [
        f"im2col_backward  8x64x56x56 k2 s2  {dtype}" for dtype in ("float32", "float64")
    ]


def test_threads_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr(threads, "caches", dict)
    monkeypatch.setattr(threads, "_USUAL_CACHE", 1 << 10)
    assert threads.main(["--seconds", "0.001", "--case", "1x4x6x6", "--case", "1x16x4x4 k4"]) == 0
    printed = capsys.readouterr().out
    for operator in "im2col_backward", "im2col":
        heading, _, line, *_ = printed.partition(f"\n{operator}\n")[2].splitlines()
        assert "2 threads  1 thread" in heading
        assert line.split("  ")[0] == "1x4x6x6 k3"


@pytest.mark.parametrize(
    ("module", "arguments", "part"),
    [
        (strided, ["--case", "no such case"], "no case matches"),
        (strided, ["--dtype", "complex64"], "complex64"),
        (threads, ["--case", "1x4x6x6"], "no case matches"),
        (threads, ["--threads", "1"], "must be several"),
        (threads, ["--threads", "0", "--case", "32x64x112x112 k2 s2"], "0"),
    ],
)
def test_bad_arguments(monkeypatch, capsys, module, arguments, part):
    monkeypatch.setattr(threads, "caches", lambda: {"L3": 10 << 20})
    with pytest.raises(SystemExit) as end:
        module.main(arguments)
    assert end.value.code == 2
    assert part in capsys.readouterr().err.splitlines()[-1]


def test_caches_are_read(tmp_path):
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("3", "Unified", "1M"), ("2", "Unified", "512")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in ("level", level), ("type", kind), ("size", size):
            (folder / name).write_text(f"{text}\n")
    (tmp_path / "index9").mkdir()  # tells nothing
    assert list(machine.caches(tmp_path).items()) == [("L1", 48 << 10), ("L2", 512), ("L3", 1 << 20)]
    assert machine.caches(tmp_path / "nowhere") == {}


def test_free_memory_is_read(tmp_path):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:  100 kB\nMemAvailable:   12 kB\n")
    assert machine.free_memory(file) == 12 << 10
    file.write_text("MemTotal:  100 kB\n")
    assert machine.free_memory(file) is None
    assert machine.free_memory(tmp_path / "nowhere") is None


def test_masks_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr(masks, "CASES", (masks.Case((1, 3, 8, 8), 3, 2, 1),))
    assert masks.main(["--quick", "--threads", "1"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "k3 s2 p1" in line]
    assert [line[4:6] for line in lines] == [
        [layout, call] for layout in ("bitmask", "argmax") for call in ("mask_to_indices", "indices_to_mask")
    ]
    monkeypatch.setattr(masks.aclnn_bw, "mask_to_indices", lambda mask, *geometry, mask_layout: 0)
    with pytest.raises(WrongResult, match="mask_to_indices, 1x3x8x8 k3 s2 p1: is not what the forward makes"):
        masks.statements(masks.CASES[0], "bitmask")
