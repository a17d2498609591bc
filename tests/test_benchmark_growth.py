"""The benchmark over sizes: its problems, the data it repeats, the files it puts together, the picture."""

import json
import re
import sys
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

import aclnn_bw
from benchmarks import cases, growth, picture, report
from benchmarks.check import WrongResult
from benchmarks.operators import OPERATORS
from benchmarks.problem import REAL, Case, Contestant, check_contestant
from benchmarks.timing import Spread, Statement

BATCHES = [
    replace(case, shape=(6, *case.shape[1:])) for operator in OPERATORS.values() for case in operator.small()
]
PADS = Case("replication_pad2d_backward", (6, 4, 5, 6), {"padding": 1})
each_batch = pytest.mark.parametrize("case", BATCHES, ids=lambda case: f"{case.operator} {case.title}")
STEPS = range(11)
EVERYTHING = [(case, "float32") for case in growth.cases(growth.FAMILIES, "float32", 1 << 10, 1 << 30)]
SHORT = ["--no-peers", "--threads", "1", "--seconds", "0.001"]


# ---- the problems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", growth.FAMILIES)
def test_a_step_is_four_times_the_bytes(name, dtype):
    nbytes = [cases.bytes_moved(growth.FAMILIES[name].case(step, dtype), dtype) for step in STEPS]
    for step in STEPS:
        assert 0.75 < nbytes[step] / (1024 * 4**step) < 1.8
    assert all(2 < after / before < 6 for before, after in pairwise(nbytes))


def test_planes_grow_before_channels_before_the_batch():
    shapes = [growth.FAMILIES["avg"].case(step, "float32").shape for step in STEPS]
    assert shapes[0] == (1, 16, 4, 4)
    assert shapes[5:8] == [(1, 16, 112, 112), (1, 64, 112, 112), (4, 64, 112, 112)]
    assert shapes[-1] == (256, 64, 112, 112)
    assert growth.FAMILIES["upsample"].case(10, "float16").shape == (256, 32, 20480)


@pytest.mark.parametrize("name", growth.FAMILIES)
def test_a_case_knows_its_family(name):
    assert {growth.family_of(growth.FAMILIES[name].case(step, "float32")) for step in STEPS} == {name}


def test_every_gradient_grows():
    gradients = [name for name in OPERATORS if name.endswith("_backward")]
    assert list(dict.fromkeys(family.operator for family in growth.FAMILIES.values())) == gradients


# ---- batches that repeat a few images -------------------------------------------------------------------------------


@each_batch
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_batch_repeats_its_first_images(case, dtype):
    problem, references = cases.posed(case, dtype, images=2)
    whole, _ = cases.posed(case, dtype)
    assert (problem.case, problem.nbytes) == (case, whole.nbytes)
    for name, array in problem.inputs.items():
        if name == "image":  # what the mask comes from is kept once
            assert len(array) == 2
            continue
        assert (array.shape, array.dtype) == (whole.inputs[name].shape, whole.inputs[name].dtype)
        if name != "mask":
            assert np.array_equal(array, np.concatenate([array[:2]] * 3))
    if "mask" in problem.inputs:
        operator = OPERATORS[case.operator]
        geometry = (case.shape, *operator.attributes(case).values())
        mask = aclnn_bw.indices_to_mask(problem.inputs["indices"], *geometry, **operator.keywords(case))
        assert np.array_equal(mask, problem.inputs["mask"])
    assert all(len(each.exact) == 2 for each in references)


@each_batch
def test_results_of_a_batch_that_repeats_are_checked(case):
    with cases.rules(case):
        problem, references = cases.posed(case, "float32", images=2)
        ours = OPERATORS[case.operator].ours(problem)
        check_contestant(ours, problem, references, accumulated_in=problem.dtype)


def test_images_that_do_not_divide_the_batch_are_not_repeated():
    _, references = cases.posed(replace(PADS, shape=(5, 4, 5, 6)), "float32", images=2)
    assert len(references[0].exact) == 5


@pytest.mark.parametrize("place", [(0, 1, 2, 3), (5, 3, 4, 5)])
def test_a_wrong_element_of_any_image_is_caught(place):
    problem, references = cases.posed(PADS, "float32", images=2)
    right = aclnn_bw.replication_pad2d_backward(problem.inputs["grad_output"], problem.case.shape, 1)
    right[place] *= np.float32(1.001)
    wrong = Contestant("x", None, (), Statement("result", {"result": right}))
    with pytest.raises(WrongResult, match=r"element .* 1 of 240 elements are wrong") as error:
        check_contestant(wrong, problem, references, accumulated_in=problem.dtype)
    assert ("from image 4 on" in str(error.value)) == (place[0] == 5)


def test_a_batch_that_is_too_small_is_caught():
    problem, references = cases.posed(PADS, "float32", images=2)
    first = aclnn_bw.replication_pad2d_backward(problem.inputs["grad_output"][:2], (2, 4, 5, 6), 1)
    short = Contestant("x", None, (), Statement("result", {"result": first}))
    with pytest.raises(WrongResult, match=r"gave \(2, 4, 5, 6\): must be \(6, 4, 5, 6\)"):
        check_contestant(short, problem, references, accumulated_in=problem.dtype)


# ---- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figures(tmp_path_factory):
    """The file of a run over the smallest two sizes, and what it printed."""
    file = tmp_path_factory.mktemp("growth") / "figures.json"
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("builtins.print", lambda *texts, **options: printed.append(" ".join(map(str, texts))))
        assert growth.main([*SHORT, "--to", "4KiB", "--json", str(file)]) == 0
    return file, "\n".join(printed)


def changed(figures, tmp_path, name="other.json", **environment):
    """The same figures, as another run wrote them."""
    content = json.loads(figures[0].read_text())
    content["environment"] |= environment
    file = tmp_path / name
    file.write_text(json.dumps(content))
    return file, content


def rival(*times):
    into, fresh = (Spread(time, time, time) if time else None for time in times)
    return asdict(report.Comparison(report.Times(into, fresh), into, fresh))


def test_a_run_prints_a_table_and_writes_the_figures(figures):
    file, printed = figures
    content = json.loads(file.read_text())
    assert [row["family"] for row in content["rows"]] == [name for name in growth.FAMILIES for _ in range(2)]
    assert content["wrong"] == []
    for row in content["rows"]:
        # The yardstick is measured at every size.
        assert row["copy"]["median"] > 0
        assert row["ours"]["into"]["median"] > 0
        assert row["ours"]["fresh"]["median"] > 0
    lines = printed.splitlines()
    assert "1.25 KiB  1x16x4x4 k3 s2 p1" in {"  ".join(line.strip().split("  ")[:2]) for line in lines}
    assert "4.06 KiB  1x8x7x7 p1" in {"  ".join(line.strip().split("  ")[:2]) for line in lines}


def test_filters(capsys):
    assert growth.main(["--list", "--from", "0.5MiB", "--to", "4MiB", "--operator", "avg_pool2d_backward"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "avg_pool2d_backward  1x16x112x112 k3 s2 p1  float32",
        "avg_pool2d_backward  1x64x112x112 k3 s2 p1  float32",
    ]
    assert growth.main(["--list", "--from", "1GiB", "--case", "argmax", "--case", "-> ", "--dtype", "float16"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "max_pool2d_with_mask_backward  256x128x112x112 k3 s2 p1 argmax  float16",
        "upsample_nearest_exact1d_backward  256x32x20480 -> 40960  float16",
    ]


def test_a_size_that_does_not_fit_is_skipped(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(growth, "free_memory", lambda: 20 << 10)
    file = tmp_path / "figures.json"
    arguments = ["--to", "4KiB", "--operator", "im2col_backward", "--json", str(file)]
    assert growth.main([*SHORT, *arguments]) == 0
    assert "float32: skipped: takes some 23.0 KiB of memory, 20.0 KiB are free" in capsys.readouterr().out
    assert len(json.loads(file.read_text())["rows"]) == 1


def test_wrong_results_are_reported_and_not_timed(monkeypatch, capsys):
    monkeypatch.setattr(aclnn_bw, "im2col_backward", lambda *arguments, out=None: np.zeros((1, 2, 4, 4), np.float32))
    assert growth.main([*SHORT, "--to", "1KiB", "--operator", "im2col_backward"]) == 1
    assert "WRONG RESULT, not timed" in capsys.readouterr().out


class Peer:
    """A framework that answers with a result made before."""

    version = "1"

    def __init__(self, name):
        self.name = name

    def contestant(self, problem):
        right = OPERATORS[problem.case.operator].ours(problem).fresh.run()
        return Contestant(self.name, None, (), Statement("result", {"result": right}))


def test_peers_are_measured_one_at_a_time(monkeypatch):
    groups = []
    right = report.run

    def run(case, dtype, peers, **options):
        groups.append([peer.name for peer in peers])
        return right(case, dtype, peers, **options)

    monkeypatch.setattr(report, "run", run)
    case = growth.FAMILIES["pad"].case(0, "float32")
    point = growth.run(case, "float32", [Peer("jax"), Peer("paddle")], budget=0.001)
    assert groups == [["jax"], ["paddle"]]
    assert list(point.row.peers) == ["jax", "paddle"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--from", "1"], "must end with KiB, MiB or GiB"),
        (["--from", "xKiB"], "xKiB"),
        (["--to", "0KiB"], "must be > 0"),
        (["--from", "2KiB", "--to", "3KiB"], "no case matches"),
        (["--operator", "max_pool2d_with_mask"], "no case matches"),
        (["--from-json", "/no/such/file"], "/no/such/file"),
    ],
)
def test_bad_arguments(capsys, arguments, part):
    with pytest.raises(SystemExit) as end:
        growth.main(arguments)
    assert end.value.code == 2
    assert part in capsys.readouterr().err.splitlines()[-1]


# ---- figures of several runs ----------------------------------------------------------------------------------------


def test_figures_are_read_back(figures, capsys, tmp_path):
    file, printed = figures
    again = tmp_path / "again.json"
    assert growth.main(["--from-json", str(file), "--json", str(again)]) == 0
    assert json.loads(again.read_text()) == json.loads(file.read_text())
    assert capsys.readouterr().out.splitlines() == printed.splitlines()
    # Into the file itself, and some of it.
    assert growth.main(["--from-json", str(again), "--json", str(again), "--from", "4KiB"]) == 0
    assert len(json.loads(again.read_text())["rows"]) == len(growth.FAMILIES)


def test_files_are_put_together(figures, tmp_path):
    first, content = changed(figures, tmp_path, "first.json", peers={"torch": "2"})
    content["rows"][0]["peers"] = {"torch": rival(5.0, 6.0)}
    del content["rows"][2:]
    first.write_text(json.dumps(content))
    second, content = changed(figures, tmp_path, "second.json", peers={"torch": "3", "jax": "4"}, load=9.0)
    for row in content["rows"]:
        row["ours"]["into"]["median"] = 1e6
        row["peers"] = {"torch": rival(7.0, 8.0), "jax": rival(None, 9.0)}
    second.write_text(json.dumps(content))

    surroundings, points = growth.read([str(first), str(second)], EVERYTHING)
    assert surroundings["peers"] == {"torch": "2", "jax": "4"}
    assert surroundings["load"] != 9.0
    assert [point.family for point in points] == [name for name in growth.FAMILIES for _ in range(2)]
    # What the first file has stays; what it lacks comes from the second.
    assert points[0].row.ours.into.median < 1e6
    assert points[0].row.peers["torch"].times.into.median == 5.0
    assert points[0].row.peers["jax"] == report.Comparison(
        report.Times(None, Spread(9.0, 9.0, 9.0)), None, Spread(9.0, 9.0, 9.0)
    )
    assert points[1].row.peers["torch"].times.into.median == 7.0
    assert points[2].row.ours.into.median == 1e6
    assert [point.family for point in growth.read([str(second)], EVERYTHING[-11:])[1]] == [[*growth.FAMILIES][-1]] * 2
    with pytest.raises(ValueError, match=r"second.json: no case matches"):
        growth.read([str(second)], [(case, "float64") for case, _ in EVERYTHING])


def test_figures_of_another_kind_are_refused(figures, capsys, tmp_path):
    other, _ = changed(figures, tmp_path, threads=7)
    (tmp_path / "main.json").write_text('{"environment": {}, "rows": [{"case": "x"}]}')
    (tmp_path / "text.json").write_text("x")
    for name, part in (
        (str(other), "threads = 7, but 1 in"),
        (str(tmp_path / "main.json"), "must be figures of this program"),
        (str(tmp_path / "text.json"), "Expecting value"),
    ):
        with pytest.raises(SystemExit):
            growth.main(["--from-json", str(figures[0]), name])
        assert part in capsys.readouterr().err.splitlines()[-1]


# ---- the picture ----------------------------------------------------------------------------------------------------


def rows_with_peers(figures):
    _, points = growth.read([str(figures[0])], EVERYTHING)
    into, fresh = Spread(5.0, 5.0, 5.0), Spread(6.0, 6.0, 6.0)
    peers = {
        "jax": report.Comparison(report.Times(None, fresh), None, fresh),
        "torch": report.Comparison(report.Times(into, fresh), into, fresh),
    }
    return [replace(point.row, peers=peers) for point in points[:2]]


def test_lines(figures):
    rows = rows_with_peers(figures)
    lines = {line.label: line for line in picture.lines(rows)}
    # Of the peers the quickest alone.
    assert list(lines) == ["aclnn_bw, out=", "aclnn_bw, new", "torch, out=", "a copy by one thread"]
    nbytes, rates = lines["torch, out="].rates()
    assert nbytes == [row.nbytes for row in rows]
    assert rates == [row.nbytes / 5.0 for row in rows]
    without = [replace(row, peers={"jax": row.peers["jax"]}) for row in rows]
    alone = {line.label: line for line in picture.lines(without)}
    assert list(alone) == ["aclnn_bw, out=", "aclnn_bw, new", "jax, new", "a copy by one thread"]
    # A peer keeps its colour whoever else is there.
    assert lines["torch, out="].style["color"] != alone["jax, new"].style["color"]
    # Few sizes say little: one that is measured at one of them is not the quickest.
    once = replace(rows[1], peers={"jax": rows[1].peers["jax"]})
    assert "jax, new" in {line.label for line in picture.lines([rows[0], once])}


@pytest.mark.parametrize("ending", ["svg", "png"])
@pytest.mark.parametrize("panels", [1, 5])
def test_the_picture(figures, tmp_path, panels, ending):
    pytest.importorskip("matplotlib")
    content = []
    for name in "a", "b":
        file = tmp_path / f"{name}.{ending}"
        environment = {**json.loads(figures[0].read_text())["environment"], "peers": {"torch": "2", "jax": "4"}}
        picture.draw({f"panel {i}": rows_with_peers(figures) for i in range(panels)}, environment, str(file))
        content.append(file.read_bytes())
    assert len(content[0]) > 10_000
    assert content[0] == content[1]


def test_the_command_draws(figures, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    file = tmp_path / "picture.svg"
    assert growth.main(["--from-json", str(figures[0]), "--plot", str(file)]) == 0
    drawing = file.read_text()
    assert drawing.startswith("<?xml")
    # Every colour of the drawing has its counterpart on a dark page, or is light enough there.
    dark = re.findall(r'\[style\*="(?:fill|stroke): (#\w+)"\]', drawing)
    used = set(re.findall(r'(?:fill|stroke): (#\w+)', drawing.partition("<g id=")[2]))
    assert used - set(dark) <= {"#e69f00"}
    assert len(dark) == 2 * len(set(dark)) > 10
    for name, part in ("picture.txt", "must end with one of"), ("/no/such/picture.svg", "a folder that exists"):
        with pytest.raises(SystemExit):
            growth.main(["--from-json", str(figures[0]), "--plot", name])
        assert part in capsys.readouterr().err


def test_a_picture_needs_matplotlib(monkeypatch, capsys):
    for name in "matplotlib", "matplotlib.figure":
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit):
        growth.main(["--plot", "picture.svg"])
    assert "needs matplotlib: pip install 'aclnn_bw[plot]'" in capsys.readouterr().err


def test_sizes():
    shown = {1280: "1.25 KiB", 4096: "4.00 KiB", 250880: "245 KiB", 1 << 20: "1.00 MiB", 64_225_280: "61.2 MiB"}
    assert {nbytes: growth.size(nbytes) for nbytes in shown} == shown
    assert [growth.size(part << 20) for part in (245, 980, 1024)] == ["245 MiB", "0.96 GiB", "1.00 GiB"]
