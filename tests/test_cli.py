"""The command line: what it prints and writes, and that every mistake is one line on stderr and exit status 2."""

import io
import os
import re
import signal
import subprocess
import sys
from importlib.metadata import entry_points

import ml_dtypes
import numpy as np
import pytest
from operators import OPERATORS, TAKEN, max_pool
from operators import avg_pool2d_backward as avg_twin
from operators import im2col_backward as im2col_twin
from operators import replication_pad2d_backward as pad_twin
from operators import upsample_nearest_exact1d_backward as upsample_twin

import aclnn_bw
from aclnn_bw import _progress, _runs, cli

SHAPE = (2, 3, 9, 10)
RUN = ("run", "avg_pool2d_backward")


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A current folder with g.npy and x.npy, a 3x3 pooling with stride 2 and padding 1 in float32."""
    monkeypatch.chdir(tmp_path)
    np.save("g.npy", rng.standard_normal((2, 3, 5, 5)).astype(np.float32))
    np.save("x.npy", np.zeros(SHAPE, np.float32))
    return tmp_path


GIVEN = ("--grad-output", "g.npy", "--self", "x.npy")
POOLING = ("--kernel-size", "3", "--stride", "2", "--padding", "1")


def command(*arguments, **environment):
    """The program in a process of its own."""
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH" and not k.startswith("ACLNN_BW_")}
    return subprocess.run(
        [sys.executable, "-m", "aclnn_bw", *map(str, arguments)],
        env={**inherited, **environment}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def refused(capsys, *arguments):
    """The one line with which the program refuses the arguments."""
    assert cli.main(list(map(str, arguments))) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("aclnn-bw: error: ")
    assert printed.err.count("\n") == 1
    assert printed.err.endswith("\n")
    return printed.err.strip()


def assert_gradient(result, grad_output, *attributes, shape=SHAPE, rtol=1e-6):
    exact = avg_twin.avg_pool2d_backward(grad_output.astype(np.float64), shape, *attributes)
    np.testing.assert_allclose(result.astype(np.float64), exact, rtol=rtol, atol=rtol)


# ---- the three commands ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [(), ("info",)])
def test_info_is_show_config(folder, arguments):
    done = command(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    config = aclnn_bw.show_config(mode="dict")
    assert config["version"] in done.stdout
    assert "avg_pool2d_backward" in done.stdout or "AvgPool2dBackward" in done.stdout


def test_info_prints_what_show_config_prints(capsys):
    assert cli.main(["info"]) == 0
    printed = capsys.readouterr().out
    aclnn_bw.show_config()
    assert printed == capsys.readouterr().out
    assert printed


@pytest.mark.parametrize("soc", ["", "Ascend910", "Ascend310P", "Ascend910B", "Host"])
def test_demo_prints_the_steps_and_the_result_on_every_product(folder, soc):
    done = command("demo", **({"ACLNN_BW_SOC": soc} if soc else {}))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"AvgPool2dBackward on {soc or 'Ascend910B'}: ")
    assert [line[0] for line in lines if line[1:2] == "."] == list("1234567")
    assert lines.count("  0.0625  0.0625  0.0625  0.0625") == 4
    assert lines[-1] == "gradInput: 16 of 16 elements are right"


# Of each demo: a row that it prints, and its last line.
DEMOS = {operator.record().one_call: operator.demo for operator in OPERATORS.values()}


def test_every_operator_has_a_demo_and_can_be_run():
    assert set(DEMOS) == set(_runs.OPERATORS)


@pytest.mark.parametrize("soc", ["Ascend910", "Ascend310P", "Ascend910B", "Host"])
@pytest.mark.parametrize("operator", DEMOS)
def test_demos(capsys, operator, soc):
    row, last = DEMOS[operator]
    with aclnn_bw.soc(soc, mask_layout="argmax"):  # the demos choose the layout that they explain
        status = cli.main(["demo", operator])
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert f" on {soc}: " in lines[0]
    steps = [line.split(".")[0] for line in lines if line.split(".")[0].isdigit()]
    assert steps == [str(i + 1) for i in range(len(steps))]
    if TAKEN[_runs.OPERATORS[operator].name][soc]:
        assert (status, printed.err) == (0, "")
        assert any(line.startswith(f"  {row}") for line in lines)
        assert lines[-1] == f"{last} elements are right"
        assert lines[-1 - sum("are right" in line for line in lines)].endswith("aclFinalize")
    else:
        assert status == 2
        assert printed.err.startswith("aclnn-bw: error: ")
        assert soc in printed.err
        assert printed.err.count("\n") == 1
    aclnn_bw.aclInit()  # the demo has finished what it began, whether it was refused or not
    aclnn_bw.aclFinalize()


@pytest.mark.parametrize("operator", DEMOS)
def test_demos_tell_a_wrong_result(capsys, monkeypatch, operator):
    name = _runs.OPERATORS[operator].name
    monkeypatch.setattr(aclnn_bw, f"aclnn{name}", lambda workspace, size, executor, stream=None: None)
    assert cli.main(["demo", operator]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    expression, _, counts = DEMOS[operator][1].rpartition(": ")
    assert last == f"{expression}: 0 of {counts.split()[-1]} elements are right"


def test_run_prints_what_it_did_and_writes_the_result(folder):
    done = command(*RUN, *GIVEN, *POOLING, "--out", "dx.npy")
    assert (done.returncode, done.stderr) == (0, "")
    words = {line.split()[0]: line.split(None, 1)[1] for line in done.stdout.splitlines() if "phase" not in line}
    assert words["gradOutput"] == "float32 2 x 3 x 5 x 5"
    assert words["self"] == words["gradInput"] == "float32 2 x 3 x 9 x 10"
    assert int(words["workspace"].removesuffix(" bytes")) >= 0
    assert words["wrote"] == "gradInput to dx.npy"
    times = [line.split() for line in done.stdout.splitlines() if line.startswith("phase")]
    assert [time[1] for time in times] == ["1", "2"]
    assert {time[3] for time in times} <= {"us", "ms"}
    assert all(float(time[2]) > 0 for time in times)
    result = np.load("dx.npy")
    assert result.dtype == np.float32
    assert_gradient(result, np.load("g.npy"), 3, 2, 1)


def test_the_installed_script_is_this_program():
    (script,) = entry_points(group="console_scripts", name="aclnn-bw")
    assert script.load() is cli.main


def test_version_and_help(capsys):
    for arguments, part in (["--version"], aclnn_bw.__version__), ([*RUN, "--help"], "--divisor-override"):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert end.value.code == 0
        assert part in capsys.readouterr().out


# ---- the options of run ---------------------------------------------------------------------------------------------


def run(capsys, *arguments, operator=RUN[1]):
    assert cli.main(["run", operator, *map(str, arguments), "--out", "dx.npy", "--force"]) == 0, capsys.readouterr().err
    return np.load("dx.npy")


@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        (("--kernel-size", 3, "--stride", 2, "--padding", 1), (3, 2, 1)),
        (("--kernel-size", 3, 3, "--stride", 2, 2, "--padding", 1, 1), (3, 2, 1)),
        ((*POOLING, "--no-count-include-pad"), (3, 2, 1, False, False)),
        ((*POOLING, "--count-include-pad"), (3, 2, 1)),
        ((*POOLING, "--divisor-override", -7), (3, 2, 1, False, True, -7)),
        # Rows: (9 - 1) / 2 + 1 = 5 outputs; columns: 10 / 2 = 5, without a stride.
        (("--kernel-size", 1, 2, "--stride", 2, 2), ((1, 2), (2, 2), 0)),
    ],
)
def test_attributes_reach_the_operator(folder, capsys, options, attributes):
    assert_gradient(run(capsys, *GIVEN, *options), np.load("g.npy"), *attributes)


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_every_operator_runs_with_files_and_numbers(tmp_path, monkeypatch, capsys, operator):
    monkeypatch.chdir(tmp_path)
    call = operator()
    arguments, results = [], _runs.outputs(operator.record())
    for parameter in operator.record().parameters:
        option, value = f"--{parameter.one_call.replace('_', '-')}", call.arguments.get(parameter.name)
        if parameter.kind in ("read", "shape"):
            np.save(f"{parameter.name}.npy", value)
            arguments += [option, f"{parameter.name}.npy"]
        elif parameter.kind == "ints":
            arguments += [option, *map(str, value)]
        elif parameter.kind in ("int", "real") and value:
            arguments += [option, str(value)]
    for name, option in results.items():
        arguments += [option, f"{name}.npy"]
    assert cli.main(["run", operator.record().one_call, *arguments]) == 0, capsys.readouterr().err
    for name, wanted in call.wanted.items():
        found = np.load(f"{name}.npy")
        assert found.astype(wanted.dtype).tobytes() == wanted.tobytes()


def test_without_stride_it_is_the_kernel_size(folder, capsys, rng):
    np.save("g.npy", rng.standard_normal((2, 3, 3, 5)).astype(np.float32))
    assert_gradient(run(capsys, *GIVEN, "--kernel-size", 3, 2), np.load("g.npy"), (3, 2))


def test_ceil_mode(folder, capsys, rng):
    np.save("g.npy", rng.standard_normal((2, 3, 3, 4)).astype(np.float32))
    result = run(capsys, *GIVEN, "--kernel-size", 3, "--ceil-mode")
    assert_gradient(result, np.load("g.npy"), 3, None, 0, True)


def test_the_shape_of_self_is_enough(folder, capsys):
    by_file = run(capsys, *GIVEN, *POOLING)
    by_shape = run(capsys, "--grad-output", "g.npy", "--self-shape", *SHAPE, *POOLING)
    assert by_shape.tobytes() == by_file.tobytes()


def test_rank_3(folder, capsys):
    np.save("g.npy", np.load("g.npy")[0])
    result = run(capsys, "--grad-output", "g.npy", "--self-shape", *SHAPE[1:], *POOLING)
    assert_gradient(result, np.load("g.npy"), 3, 2, 1, shape=SHAPE[1:])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_dtypes_of_the_files(folder, capsys, dtype):
    np.save("g.npy", np.load("g.npy").astype(dtype))
    np.save("x.npy", np.zeros(SHAPE, dtype))
    result = run(capsys, *GIVEN, *POOLING)
    assert result.dtype == dtype
    assert_gradient(result, np.load("g.npy"), 3, 2, 1, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("stored", ["uint16", "as numpy saves bfloat16", "big-endian uint16"])
def test_bfloat16_is_read_and_written_as_bits(folder, capsys, stored):
    grad_output = np.load("g.npy").astype(ml_dtypes.bfloat16)
    bits = {
        "uint16": grad_output.view(np.uint16),
        "as numpy saves bfloat16": grad_output,
        "big-endian uint16": grad_output.view(np.uint16).astype(">u2"),
    }[stored]
    np.save("g.npy", bits)
    np.save("x.npy", np.zeros(SHAPE, np.uint16))
    result = run(capsys, *GIVEN, *POOLING, "--dtype", "bfloat16")
    assert capsys.readouterr().out.count("bfloat16 2 x 3") == 3
    assert result.dtype == np.uint16
    assert_gradient(result.view(ml_dtypes.bfloat16), grad_output, 3, 2, 1, rtol=2**-8)


def test_files_in_another_byte_order_or_in_fortran_order(folder, capsys):
    plain = run(capsys, *GIVEN, *POOLING)
    np.save("g.npy", np.asfortranarray(np.load("g.npy").astype(">f4")))
    assert run(capsys, *GIVEN, *POOLING).tobytes() == plain.tobytes()


def test_soc_decides_the_rules(folder, capsys):
    grad_output = np.load("g.npy")
    # Ascend910 pools float32 only with gradOutput and result rounded to float16.
    message = refused(capsys, *RUN, *GIVEN, *POOLING, "--soc", "Ascend910")
    assert "cubeMathType = 0" in message
    for spelling in ("1", "ALLOW_FP32_DOWN_PRECISION"):
        result = run(capsys, *GIVEN, *POOLING, "--soc", "Ascend910", "--cube-math-type", spelling)
        assert np.array_equal(result, result.astype(np.float16).astype(np.float32))
        assert_gradient(result, grad_output, 3, 2, 1, rtol=2**-9)
    assert aclnn_bw.aclrtGetSocName() == "Ascend910B"


def test_threads_do_not_change_a_bit_and_hold_for_the_command_only(folder, capsys):
    before = aclnn_bw.get_num_threads()
    results = {run(capsys, *GIVEN, *POOLING, "--threads", n).tobytes() for n in (1, 2, 5)}
    assert len(results) == 1
    assert aclnn_bw.get_num_threads() == before


def test_an_empty_batch_is_fine(folder, capsys):
    np.save("g.npy", np.zeros((0, 3, 5, 5), np.float32))
    result = run(capsys, "--grad-output", "g.npy", "--self-shape", 0, 3, 9, 10, *POOLING)
    assert result.shape == (0, 3, 9, 10)


def test_the_name_of_the_output_is_taken_as_it_is(folder):
    assert cli.main([*RUN, *GIVEN, *POOLING, "--out", "result.bin"]) == 0
    assert np.load("result.bin").shape == SHAPE
    assert not os.path.exists("result.bin.npy")


def not_computed(monkeypatch):
    """Fail if a file is opened or a phase is called."""

    def fail(*arguments, **keywords):
        raise AssertionError("too late")

    monkeypatch.setattr(_runs, "load", fail)
    monkeypatch.setattr(aclnn_bw, "aclnnAvgPool2dBackwardGetWorkspaceSize", fail)


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("path", ["g.npy", "./x.npy", "link.npy", "hard.npy"])
def test_the_output_must_be_no_input(folder, capsys, monkeypatch, path, force):
    os.symlink("g.npy", "link.npy")
    os.link("x.npy", "hard.npy")
    before = {name: (folder / name).read_bytes() for name in ("g.npy", "x.npy")}
    not_computed(monkeypatch)
    option = "--self" if path in ("./x.npy", "hard.npy") else "--grad-output"
    message = refused(capsys, *RUN, *GIVEN, *POOLING, "--out", path, *force)
    assert f"--out {path}: is the file of {option}; write to another one" in message
    assert before == {name: (folder / name).read_bytes() for name in before}


def test_two_outputs_are_two_files(folder, capsys):
    arguments = ("run", MAX_POOL[0], "--self", "x.npy", *POOLING, "--out", "y.npy", "--mask-out", "./y.npy")
    assert "--mask-out ./y.npy: is the file of --out" in refused(capsys, *arguments)


def test_an_output_is_overwritten_by_force_alone(folder, capsys, monkeypatch):
    (folder / "dx.npy").write_text("mine")
    with monkeypatch.context() as patch:
        not_computed(patch)
        message = refused(capsys, *RUN, *GIVEN, *POOLING, "--out", "dx.npy")
    assert "--out dx.npy: exists already; --force overwrites it" in message
    assert (folder / "dx.npy").read_text() == "mine"
    assert cli.main([*RUN, *GIVEN, *POOLING, "--out", "dx.npy", "--force"]) == 0
    assert_gradient(np.load("dx.npy"), np.load("g.npy"), 3, 2, 1)
    assert sorted(os.listdir()) == ["dx.npy", "g.npy", "x.npy"]


def test_the_folder_of_an_output_is_looked_for_first(folder, capsys, monkeypatch):
    not_computed(monkeypatch)
    assert "--out missing/dx.npy: No such file" in refused(capsys, *RUN, *GIVEN, *POOLING, "--out", "missing/dx.npy")
    assert "--out .: Is a directory" in refused(capsys, *RUN, *GIVEN, *POOLING, "--out", ".")


def test_inputs_are_mapped_and_of_self_the_header_alone_is_read(folder, capsys, monkeypatch):
    plain = run(capsys, *GIVEN, *POOLING)
    with open("x.npy", "rb") as file:
        header = file.read(128)
    (folder / "x.npy").write_bytes(header)
    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format, "read_array", None)
        assert cli.main([*RUN, *GIVEN, *POOLING, "--out", "again.npy"]) == 0
    assert np.load("again.npy").tobytes() == plain.tobytes()


# ---- batches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_batches_make_the_same_files(tmp_path, monkeypatch, capsys, operator, samples, layout):
    monkeypatch.chdir(tmp_path)
    call = operator((5, 3, 9, 9), layout=layout)
    arguments = []
    for parameter in operator.record().parameters:
        option, value = f"--{parameter.one_call.replace('_', '-')}", call.arguments.get(parameter.name)
        if parameter.kind in ("read", "shape"):
            if not parameter.is_mask:
                value = value.astype(value.dtype.newbyteorder(">"))  # as another machine may have written it
            np.save(f"{parameter.name}.npy", value)
            arguments += [option, f"{parameter.name}.npy"]
        elif parameter.kind == "ints":
            arguments += [option, *map(str, value)]
        elif parameter.kind in ("int", "real") and value:
            arguments += [option, str(value)]
        elif parameter.kind == "layout":
            arguments += [option, layout]
    for name, option in _runs.outputs(operator.record()).items():
        arguments += [option, f"{name}.npy", "--force"]
    command = ["run", operator.record().one_call, *arguments]
    assert cli.main(command) == 0, capsys.readouterr().err
    whole = {name: (tmp_path / f"{name}.npy").read_bytes() for name in call.outputs}
    for name, wanted in call.wanted.items():
        assert np.load(f"{name}.npy").astype(wanted.dtype).tobytes() == wanted.tobytes()
    capsys.readouterr()
    work = _runs.Work(_runs.OPERATORS[command[1]], cli._parser().parse_args(command), print)
    monkeypatch.setattr(_runs, "_BATCH_BYTES", samples * _runs._BATCH_BYTES // work.step + 1)
    for repeat in ("1", "3"):
        assert cli.main([*command, "--repeat", repeat]) == 0, capsys.readouterr().err
        assert f"in {5 // samples + 5 % samples} batches" in capsys.readouterr().out
        assert {name: (tmp_path / f"{name}.npy").read_bytes() for name in call.outputs} == whole


def test_a_file_larger_than_memory(folder):
    resource = pytest.importorskip("resource")
    if not sys.platform.startswith("linux"):
        pytest.skip("needs a limit that maps of files do not count for")
    header = npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 1, 512, 256)}".ljust(117))
    with open("large.npy", "wb") as file:
        file.write(header)
        file.truncate(len(header) + 4 * 1024 * 512 * 256)
    done = subprocess.run(
        [sys.executable, "-m", "aclnn_bw", "run", "avg_pool2d", "--self", "large.npy", "--kernel-size", "16",
         "--out", "y.npy", "--threads", "1"],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (400 << 20, 400 << 20)),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not np.load("y.npy").any()
    assert np.load("y.npy", mmap_mode="r").shape == (1024, 1, 32, 16)


def test_a_bad_index_of_a_late_batch_leaves_what_was_there(folder, capsys, monkeypatch):
    indices = np.broadcast_to(np.arange(5)[:, None] * 20 + np.arange(5) * 2, (2, 3, 5, 5)).astype(np.int64)
    indices[1, 2, 4, 4] = 10**6
    np.save("i.npy", indices)
    arguments = ("run", "max_pool2d_with_indices_backward", *GIVEN, "--indices", "i.npy", *POOLING, "--dilation", "1")
    monkeypatch.setattr(_runs, "_BATCH_BYTES", 1)
    message = refused(capsys, *arguments, "--out", "dx.npy")
    assert "--indices i.npy: indices[1, 2, 4, 4] = 1000000: " in message
    assert "(n, c, oh, ow) = (1, 2, 4, 4), " in message
    assert not os.path.exists("dx.npy")
    (folder / "dx.npy").write_text("mine")
    refused(capsys, *arguments, "--out", "dx.npy", "--force")
    assert (folder / "dx.npy").read_text() == "mine"
    assert sorted(os.listdir()) == ["dx.npy", "g.npy", "i.npy", "x.npy"]


# ---- what is shown meanwhile, and times -----------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_what_is_being_done(folder, capsys, monkeypatch):
    np.save("g.npy", np.ones((200, 3, 5, 5), np.float32))
    monkeypatch.setattr(_runs, "_BATCH_BYTES", 1)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    arguments = [*RUN, "--grad-output", "g.npy", "--self-shape", "200", *map(str, SHAPE[1:]), *POOLING]
    arguments += ["--out", "dx.npy", "--force"]
    assert cli.main(arguments) == 0
    told = terminal.getvalue().split("\r\033[K")
    assert told == ["", "reading g.npy", "computing", "writing dx.npy", ""]
    monkeypatch.setattr(_progress, "_PATIENCE", 0)
    terminal.seek(0)
    assert cli.main(arguments) == 0
    told = terminal.getvalue().split("\r\033[K")
    assert any(re.fullmatch(r"computing \[#{10}\.{10}\] 50 %, about [\d.]+ [num]s left", line) for line in told)
    assert told[-2:] == ["writing dx.npy", ""]


def test_nothing_is_shown_where_there_is_no_terminal(folder, capsys, monkeypatch):
    monkeypatch.setattr(_runs, "_BATCH_BYTES", 1)
    monkeypatch.setattr(_progress, "_PATIENCE", 0)
    assert cli.main([*RUN, *GIVEN, *POOLING, "--out", "dx.npy"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 ns"), (5e-9, "5 ns"), (1.234e-6, "1.23 us"), (0.012345, "12.3 ms"), (0.9994, "999 ms"), (0.9996, "1 s"),
        (12.34, "12.3 s"), (100, "1 min 40 s"), (3599.6, "1 h 0 min"), (9000, "2 h 30 min"),
    ],
)  # fmt: skip
def test_times_are_in_sensible_units(seconds, told):
    assert _progress.duration(seconds) == told


def test_repeated_runs(folder, capsys):
    once = run(capsys, *GIVEN, *POOLING)
    capsys.readouterr()
    assert run(capsys, *GIVEN, *POOLING, "--repeat", 5).tobytes() == once.tobytes()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("phase 2")]
    assert re.fullmatch(r"phase 2      [\d.]+ [num]s at best, [\d.]+ [num]s in the middle of 5 runs", line)
    assert "--repeat 0: must be at least 1" in refused(capsys, *RUN, *GIVEN, *POOLING, "--repeat", 0)


# ---- suggestions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("rum",), "run"),
        (("run", "avgpool2d_backward"), "avg_pool2d_backward"),
        (("run", "aclnnAvgPool2dBackward"), "avg_pool2d_backward"),
        (("demo", "im2col_backwards"), "im2col_backward"),
        ((*RUN, *GIVEN, "--kernelsize", "3"), "--kernel-size"),
        ((*RUN, "--gradOutput=g.npy"), "--grad-output"),
        (("config", "--prefx"), "--prefix"),
        (("run", "max_pool2d_with_mask", "--self", "x.npy", "--mask-layout", "bits"), "bitmask"),
    ],
)
def test_unknown_words_get_a_suggestion(folder, capsys, arguments, suggestion):
    message = refused(capsys, *arguments)
    assert f"did you mean {suggestion}?" in message
    assert next(word for word in arguments if word in message) in message


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        (("--threads", 0), "--threads 0: must be in [1, 65535]"),
        (("--soc", "Ascend9000"), "--soc Ascend9000: must be one of 'Ascend910', "),
        (("--kernel-size", 0, 1), "--kernel-size 0 1: kernelSize[0] = 0: must be >= 1"),
        (("--kernel-size", 2), "--grad-output g.npy: gradOutput.shape = (2, 3, 5, 5): expected"),
        (("--kernel-size", 3, "--stride", 0), "--stride 0: stride[0] = 0: must be"),
        (("--soc", "ascend910b3", "--cube-math-type", 7), "--cube-math-type 7: cubeMathType = 7: must be"),
    ],
)
def test_refusals_name_the_option(folder, capsys, options, beginning):
    pooling = () if "--kernel-size" in options else POOLING
    message = refused(capsys, *RUN, *GIVEN, *pooling, *options)
    assert message.startswith(f"aclnn-bw: error: {beginning}")


# ---- the other operators --------------------------------------------------------------------------------------------


def normal(rng, *shape, dtype=np.float32):
    """What --grad-output and --self are read from."""
    return (rng.standard_normal((*shape, 2)) @ [1, 1j if np.dtype(dtype).kind == "c" else 1]).astype(dtype)


def assert_close(result, exact):
    """Sums of a few terms, none of which is large."""
    result = result.view(ml_dtypes.bfloat16) if result.dtype == np.uint16 else result
    eps = float(ml_dtypes.finfo(result.dtype).eps)
    np.testing.assert_allclose(result.astype(exact.dtype), exact, rtol=2 * eps, atol=20 * min(eps, 1e-6))


def described(capsys):
    """What `run` printed of the arrays."""
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("phase 2")]
    return dict(line.split(None, 1) for line in lines if " x " in line)


@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        (("--kernel-size", 3), (3,)),
        (("--kernel-size", 3, "--dilation", 2, "--padding", 1, "--stride", 2), (3, 2, 1, 2)),
        (
            ("--kernel-size", 3, 2, "--dilation", 1, 3, "--padding", 2, 0, "--stride", 2, 1),
            ((3, 2), (1, 3), (2, 0), (2, 1)),
        ),
    ],
)
@pytest.mark.parametrize("batch", [(), (2,), (0,)])
def test_im2col(folder, capsys, rng, options, attributes, batch):
    columns = im2col_twin.im2col(np.zeros((3, 9, 8)), *attributes)
    grad_output = normal(rng, *batch, *columns.shape)
    np.save("g.npy", grad_output)
    given = ("--grad-output", "g.npy", "--input-size", 9, 8)
    result = run(capsys, *given, *options, operator="im2col_backward")
    assert_close(result, im2col_twin.im2col_backward(grad_output, (9, 8), *attributes))
    size = " x ".join(map(str, (*batch, 3, 9, 8)))
    assert described(capsys)["out"] == f"float32 {size}"


@pytest.mark.parametrize(("out", "dtype"), [("float16", np.float16), ("bfloat16", np.uint16), ("float64", np.float64)])
def test_im2col_into_another_dtype(folder, capsys, rng, out, dtype):
    np.save("g.npy", grad_output := normal(rng, 12, 16))
    options = ("--grad-output", "g.npy", "--input-size", 8, "--kernel-size", 2, "--stride", 2, "--out-dtype", out)
    result = run(capsys, *options, operator="im2col_backward")
    assert result.dtype == dtype
    assert_close(result, im2col_twin.im2col_backward(grad_output, (8, 8), 2, 1, 0, 2))


@pytest.mark.parametrize(
    ("scales", "attributes"), [((), ()), (("--scales", 2.5), (2.5,)), (("--output-size", 11, "--scales", 0), ())]
)
def test_upsample(folder, capsys, rng, scales, attributes):
    np.save("g.npy", grad_output := normal(rng, 2, 3, 11))
    given = ("--grad-output", "g.npy", "--input-size", 2, 3, 5)
    result = run(capsys, *given, *scales, operator="upsample_nearest_exact1d_backward")
    exact = upsample_twin.upsample_nearest_exact1d_backward(grad_output, (2, 3, 5), *attributes)
    assert_close(result, exact)
    assert described(capsys) == {"gradOutput": "float32 2 x 3 x 11", "out": "float32 2 x 3 x 5"}


@pytest.mark.parametrize(
    ("padding", "sides"), [((2,), (2, 2, 2, 2)), ((1, 2, 0, 3), (1, 2, 0, 3)), ((-1, 7, -2, 0), (-1, 7, -2, 0))]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.complex64, np.complex128])
def test_pad(folder, capsys, rng, padding, sides, dtype):
    left, right, top, bottom = sides
    np.save("g.npy", grad_output := normal(rng, 2, 3, 6 + top + bottom, 5 + left + right, dtype=dtype))
    given = ("--grad-output", "g.npy", "--self-shape", 2, 3, 6, 5, "--padding", *padding)
    result = run(capsys, *given, operator="replication_pad2d_backward")
    assert result.dtype == dtype
    wide = np.result_type(dtype, np.float64)
    assert_close(result, pad_twin.replication_pad2d_backward(grad_output, (2, 3, 6, 5), sides, dtype=wide))


MAX_POOL = ("max_pool2d_with_mask", "max_pool2d_with_mask_backward")


@pytest.mark.parametrize("layout", ["bitmask", "argmax"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize(
    ("options", "geometry"),
    [
        (("--kernel-size", 3, "--stride", 2, "--padding", 1, "--dilation", 1), (3, 2, 1)),
        (("--kernel-size", 2, 3, "--ceil-mode"), ((2, 3), None, 0, True)),
    ],
)
def test_max_pool_forward_and_backward(folder, capsys, rng, options, geometry, batch, layout):
    np.save("x.npy", x := normal(rng, *batch, 19, 9, 10))
    options = (*options, "--mask-layout", layout)
    out = run(capsys, "--self", "x.npy", *options, "--mask-out", "mask.npy", operator=MAX_POOL[0])
    assert set(described(capsys)) == {"self", "out", "indices"}
    values, indices = max_pool.max_pool2d(x, *geometry)
    hits = max_pool.hits_of_indices(indices, x.shape, *geometry)
    assert np.array_equal(out, values)
    mask = np.load("mask.npy")
    expected = max_pool.bitmask(hits) if layout == "bitmask" else max_pool.argmax_mask(indices, geometry[0])
    assert np.array_equal(mask, expected)

    np.save("g.npy", grad_output := normal(rng, *out.shape))
    result = run(capsys, *GIVEN, "--mask", "mask.npy", *options, operator=MAX_POOL[1])
    assert_close(result, max_pool.max_pool2d_backward(grad_output, hits, x.shape, *geometry))
    assert described(capsys)["indices"] == f"int8 {' x '.join(map(str, mask.shape))}"


def test_the_mask_alone_may_be_written(folder, capsys):
    arguments = ("run", MAX_POOL[0], "--self", "x.npy", *POOLING, "--mask-out", "mask.npy")
    assert cli.main([*arguments]) == 0
    printed = capsys.readouterr().out
    assert "wrote        indices to mask.npy" in printed
    assert "wrote        out" not in printed
    assert not os.path.exists("dx.npy")


def test_bfloat16_of_every_operator(folder, capsys, rng):
    bits = {"--dtype": "bfloat16"}

    def bfloat16(name, *shape):
        values = normal(rng, *shape).astype(ml_dtypes.bfloat16)
        np.save(name, values.view(np.uint16))
        return values.astype(np.float64)

    def result(operator, **options):
        words = [word for name, value in {**options, **bits}.items() for word in (name, *str(value).split())]
        array = run(capsys, *words, operator=operator)
        assert "as uint16" in capsys.readouterr().out
        return array

    g = {"--grad-output": "g.npy"}
    grad_output = bfloat16("g.npy", 2, 3, 12)
    seen = result("upsample_nearest_exact1d_backward", **g, **{"--input-size": "2 3 6"})
    assert_close(seen, upsample_twin.upsample_nearest_exact1d_backward(grad_output, (2, 3, 6)))
    grad_output = bfloat16("g.npy", 2, 12, 4)
    seen = result("im2col_backward", **g, **{"--input-size": 3, "--kernel-size": 2})
    assert_close(seen, im2col_twin.im2col_backward(grad_output, (3, 3), 2))
    grad_output = bfloat16("g.npy", 2, 3, 6, 7)
    seen = result("replication_pad2d_backward", **g, **{"--self-shape": "2 3 4 5", "--padding": 1})
    assert_close(seen, pad_twin.replication_pad2d_backward(grad_output, (2, 3, 4, 5), (1, 1, 1, 1)))
    pool = {"--kernel-size": 2}
    x = bfloat16("x.npy", 2, 3, 6, 4)
    seen = result(MAX_POOL[0], **pool, **{"--self": "x.npy", "--mask-out": "mask.npy"})
    values, indices = max_pool.max_pool2d(x, 2)
    assert np.array_equal(seen.view(ml_dtypes.bfloat16).astype(np.float64), values)
    grad_output = bfloat16("g.npy", 2, 3, 3, 2)
    seen = result(MAX_POOL[1], **g, **pool, **{"--self": "x.npy", "--mask": "mask.npy"})
    hits = max_pool.hits_of_indices(indices, x.shape, 2)
    assert_close(seen, max_pool.max_pool2d_backward(grad_output, hits, x.shape, 2))


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("nonsense",), "nonsense"),
        (("run",), "OPERATOR"),
        (("run", "nonsense"), "nonsense"),
        (("demo", "nonsense"), "nonsense"),
        (("info", "nonsense"), "nonsense"),
        ((*RUN,), "--grad-output"),
        ((*RUN, *GIVEN), "--kernel-size"),
        ((*RUN, "--grad-output", "g.npy", "--kernel-size", "3"), "--self"),
        ((*RUN, *GIVEN, *POOLING, "--self-shape", "1"), "--self-shape"),
        ((*RUN, *GIVEN, "--kernel-size", "three"), "'three'"),
        ((*RUN, *GIVEN, "--kernel-size", "2.5"), "'2.5'"),
        ((*RUN, *GIVEN, "--kernel-size"), "--kernel-size"),
        ((*RUN, *GIVEN, *POOLING, "--cube-math-type", "KEEP"), "KEEP"),
        ((*RUN, *GIVEN, *POOLING, "--dtype", "float32"), "bfloat16"),
        ((*RUN, *GIVEN, *POOLING, "--ceil"), "--ceil"),
    ],
)
def test_arguments_that_do_not_parse(folder, capsys, arguments, part):
    assert part in refused(capsys, *arguments)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--kernel-size", 0), "kernelSize[0] = 0: must be"),
        (("--kernel-size", 3, 3, 3), "kernelSize"),
        (("--kernel-size", 3, "--stride", 0), "stride[0] = 0: must be"),
        (("--kernel-size", 3, "--stride", 2, "--padding", 2), "padding[0] = 2: must be <="),
        (("--kernel-size", 3, "--stride", 2, "--padding", -1), "padding[0] = -1: must be"),
        (("--kernel-size", 3), "gradOutput.shape = (2, 3, 5, 5): expected (2, 3, "),
        (("--kernel-size", 3, "--stride", 2), "gradOutput.shape = (2, 3, 5, 5): expected (2, 3, 4, 4), pooled from"),
        (("--kernel-size", 10**30), "kernelSize"),
        ((*POOLING, "--cube-math-type", 4), "cubeMathType = 4: must be"),
        ((*POOLING, "--divisor-override", 300, "--soc", "Ascend910B"), "divisorOverride = 300: must be"),
        ((*POOLING, "--soc", "Ascend9000"), "Ascend9000"),
        ((*POOLING, "--threads", 0), "0"),
    ],
)
def test_what_the_operator_refuses(folder, capsys, options, part):
    assert part in refused(capsys, *RUN, *GIVEN, *options)


IM2COL = ("im2col_backward", "--grad-output", "c.npy")
UPSAMPLE = ("upsample_nearest_exact1d_backward", "--grad-output", "u.npy")
PAD = ("replication_pad2d_backward", "--grad-output", "g.npy", "--self-shape", 2, 3, 3, 3)
FORWARD = (MAX_POOL[0], "--self", "x.npy")
BACKWARD = (MAX_POOL[1], *GIVEN, "--mask", "mask.npy")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("im2col_backward",), "--grad-output"),
        ((*IM2COL,), "--input-size"),
        ((*IM2COL, "--input-size", 3), "--kernel-size"),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 2, "--out-dtype", "int8"), "--out-dtype"),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 0), "kernelSize[0] = 0: must be"),
        ((*IM2COL, "--input-size", 3, 3, 3, "--kernel-size", 2), "inputSize"),
        ((*IM2COL, "--input-size", -3, "--kernel-size", 2), "inputSize[0] = -3: must be"),
        ((*IM2COL, "--input-size", 4, "--kernel-size", 2), "gradOutput"),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 2, 2, 2), "kernelSize"),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 2, "--stride", 0), "stride[0] = 0: must be"),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 2, "--dilation", 0), "dilation[0] = 0: must be"),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 10**30), "kernelSize"),
        ((*IM2COL, "--input-size", 10**12, "--kernel-size", 1), ""),
        ((*IM2COL, "--input-size", 3, "--kernel-size", 2, "--soc", "Ascend310P"), "Ascend310P"),
        (("im2col_backward", "--grad-output", "s.npy", "--input-size", 3, "--kernel-size", 2), "gradOutput.rank = 0"),
        ((*UPSAMPLE,), "--input-size"),
        ((*UPSAMPLE, "--input-size", 2, 3), "inputSize"),
        ((*UPSAMPLE, "--input-size", 2, 3, 0), "inputSize[2] = 0: must be"),
        ((*UPSAMPLE, "--input-size", 2, 3, 6, "--output-size", 11), "outputSize"),
        ((*UPSAMPLE, "--input-size", 2, 3, 6, "--output-size", 12, 12), "outputSize"),
        ((*UPSAMPLE, "--input-size", 2, 3, 6, "--scales", "nan"), "scales = nan: must be"),
        ((*UPSAMPLE, "--input-size", 2, 3, 6, "--scales", "-1"), "scales = -1: must be"),
        ((*UPSAMPLE, "--input-size", 2, 3, 6, "--scales", "two"), "'two'"),
        ((*UPSAMPLE, "--input-size", 2, 3, 6, "--soc", "Ascend910"), "Ascend910"),
        ((*UPSAMPLE, "--input-size", 7, 3, 6), "--grad-output u.npy: gradOutput.shape = (2, 3, 12): must be"),
        ((*PAD,), "--padding"),
        ((*PAD, "--padding", 1, 1), "padding"),
        ((*PAD, "--padding", -3), "padding = (-3, -3, -3, -3): must leave"),
        ((*PAD, "--padding", 2), "gradOutput.shape = (2, 3, 5, 5): expected (2, 3, "),
        ((*PAD, "--padding", -1, 3, 1, 1, "--soc", "Ascend910"), "padding[0] = -1: must be"),
        ((*FORWARD,), "--kernel-size"),
        ((*FORWARD, "--kernel-size", 0), "kernelSize[0] = 0: must be"),
        ((*FORWARD, "--kernel-size", 3, "--padding", 2), "padding[0] = 2: must be"),
        ((*FORWARD, "--kernel-size", 3, "--dilation", 2), "dilation[0] = 2: must be"),
        ((*FORWARD, "--kernel-size", 30), "self.shape = (2, 3, 9, 10)"),
        ((*FORWARD, "--kernel-size", 2, "--mask-layout", "bits"), "--mask-layout"),
        ((*FORWARD, "--kernel-size", 2, "--mask-out", "missing/mask.npy"), "--mask-out missing/mask.npy: No such"),
        ((MAX_POOL[0], "--self", "s.npy", "--kernel-size", 2), "self.rank = 0: must"),
        ((*BACKWARD[:-2], *POOLING), "--mask"),
        ((*BACKWARD[:-1], "missing.npy", *POOLING), "--mask missing.npy: No such"),
        ((*BACKWARD[:-1], "g.npy", *POOLING), "indices"),
        ((*BACKWARD, *POOLING[:-2]), "gradOutput.shape"),
        ((*BACKWARD, *POOLING, "--dilation", 2), "dilation[0] = 2: must be"),
        ((*BACKWARD, *POOLING, "--mask-layout", "argmax"), "must"),  # what the words of a bit mask say is no index
        ((*BACKWARD, *POOLING, "--soc", "Ascend310P"), "Ascend310P"),
    ],
)
def test_what_the_other_operators_refuse(folder, capsys, arguments, part):
    np.save("c.npy", np.zeros((12, 4), np.float32))
    np.save("u.npy", np.zeros((2, 3, 12), np.float32))
    np.save("s.npy", np.zeros((), np.float32))
    indices = np.full((2, 3, 5, 5), 0)
    indices += np.arange(5)[:, None] * 20 + np.arange(5) * 2
    np.save("mask.npy", aclnn_bw.indices_to_mask(indices, SHAPE, 3, 2, 1))
    status = cli.main(["run", *map(str, arguments)])
    error = capsys.readouterr().err
    assert status == 2
    assert error.startswith("aclnn-bw: error: ")
    assert error.count("\n") == 1
    assert part in error


@pytest.mark.parametrize(
    ("shape", "part"),
    [
        ((9, 10), "self.rank = 2: must"),
        ((1, 2, 3, 9, 10), "self.rank = 5: must"),
        ((2, 3, -9, 10), "must not be negative"),
        ((2, 3, 10**9, 10**9), ""),  # no machine has the memory
        ((2, 3, 10**18, 10**18), ""),  # no address has the bits
        ((2, 3, 10**30, 10), ""),  # no int64 has the bits
    ],
)
def test_a_shape_of_self_that_cannot_be(folder, capsys, shape, part):
    assert part in refused(capsys, *RUN, "--grad-output", "g.npy", "--self-shape", *shape, *POOLING)


def test_files_that_are_not_there_or_cannot_be_read(folder, capsys):
    for path, part in ("missing.npy", "No such file"), (".", "Is a directory"):
        message = refused(capsys, *RUN, "--grad-output", path, "--self", "x.npy", *POOLING)
        assert f"--grad-output {path}: " in message
        assert part in message
        assert "--self" in refused(capsys, *RUN, "--grad-output", "g.npy", "--self", path, *POOLING)


def npy_header(text):
    """A .npy file of version 1.0 with any header."""
    header = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "not a readable .npy file"),
        (b"1 2 3\n", "not a readable .npy file"),
        (b"PK\x03\x04rest of an archive", "not a readable .npy file"),
        (npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 5, 5)}"), "not a readable .npy file"),
        (npy_header("{'descr': '<f4', 'fortran_order': False}"), "not a readable .npy file"),
        (npy_header("}{"), "not a readable .npy file"),
        (npy_header("(" * 500), "not a readable .npy file"),
        (npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}"), "--grad-output"),
    ],
)
def test_files_that_are_no_npy_files(folder, capsys, content, part):
    with open("bad.npy", "wb") as file:
        file.write(content)
    assert part in refused(capsys, *RUN, "--grad-output", "bad.npy", "--self", "x.npy", *POOLING)


def test_an_archive_of_arrays_is_refused(folder, capsys):
    np.savez("both.npz", g=np.zeros(3))
    message = refused(capsys, *RUN, "--grad-output", "both.npz", "--self", "x.npy", *POOLING)
    assert "not a readable .npy file" in message


def test_object_arrays_are_never_unpickled(folder, capsys):
    class Trap:
        def __reduce__(self):
            return os.mkdir, ("sprung",)

    np.save("bad.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    message = refused(capsys, *RUN, "--grad-output", "bad.npy", "--self", "x.npy", *POOLING)
    assert "allow_pickle" in message
    assert not os.path.exists("sprung")


@pytest.mark.parametrize(
    ("array", "part"),
    [
        (np.zeros((2, 3, 5, 5), np.int32), "ACL_INT32"),
        (np.zeros((2, 3, 5, 5), np.uint16), "ACL_UINT16"),
        (np.zeros((2, 3, 5, 5), np.float64), "dtype"),
        (np.zeros((2, 3, 5, 5), "S4"), "must hold numbers"),
        (np.zeros((2, 3, 5, 5), "M8[s]"), "must hold numbers"),
        (np.zeros((2, 3, 5, 5), [("a", "f4")]), "must hold numbers"),
        (np.zeros((2, 3, 5, 5), ml_dtypes.bfloat16), "must hold numbers"),  # NumPy saves it as raw bytes
        (np.zeros((), np.float32), "gradOutput.rank = 0: must"),
        (np.zeros((2, 3, 5, 6), np.float32), "gradOutput.shape = (2, 3, 5, 6)"),
    ],
)
def test_arrays_that_do_not_fit(folder, capsys, array, part):
    np.save("g.npy", array)
    assert part in refused(capsys, *RUN, *GIVEN, *POOLING)


def test_bfloat16_bits_must_be_uint16(folder, capsys):
    message = refused(capsys, *RUN, *GIVEN, *POOLING, "--dtype", "bfloat16")
    assert "g.npy: holds float32" in message


def test_an_output_that_cannot_be_written(folder, capsys):
    assert cli.main([*RUN, *GIVEN, *POOLING, "--out", "missing/dx.npy"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("aclnn-bw: error: --out missing/dx.npy: No such file")
    assert message.count("\n") == 1


def test_a_full_disk(folder):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    assert cli.main([*RUN, *GIVEN, *POOLING, "--out", "/dev/full"]) == 2
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "aclnn_bw", "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "aclnn-bw: error: output: No space left on device\n"


@pytest.mark.parametrize("error", [MemoryError("no room"), TypeError("not so"), OverflowError("too much")])
def test_errors_out_of_the_phases_are_one_line(folder, capsys, monkeypatch, error):
    def fail(*arguments):
        raise error

    monkeypatch.setattr(aclnn_bw, "aclnnAvgPool2dBackwardGetWorkspaceSize", fail)
    assert str(error) in refused(capsys, *RUN, *GIVEN, *POOLING)


def test_a_refusal_has_no_traceback_in_a_process_of_its_own(folder):
    done = command(*RUN, *GIVEN, "--kernel-size", 0)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("aclnn-bw: error: --kernel-size 0: kernelSize[0] = 0")
    assert done.stderr.count("\n") == 1


def test_nothing_is_written_after_a_refusal(folder, capsys):
    refused(capsys, *RUN, *GIVEN, "--kernel-size", 0, "--out", "dx.npy")
    assert not os.path.exists("dx.npy")


# ---- being interrupted ----------------------------------------------------------------------------------------------


def test_interrupt(folder, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(aclnn_bw, "aclnnAvgPool2dBackwardGetWorkspaceSize", interrupt)
    assert cli.main([*RUN, *GIVEN, *POOLING]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_interrupt_of_a_process(folder):
    os.mkfifo("pipe.npy")
    arguments = (*RUN, "--grad-output", "pipe.npy", "--self", "x.npy", *POOLING)
    # The tests may run as a shell's background job, which ignores the signal, as its children would.
    program = subprocess.Popen(
        [sys.executable, "-m", "aclnn_bw", *arguments], stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    # Our end opens when the program has opened its own, where it then waits for bytes.
    with program as process, open("pipe.npy", "wb"):
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == b""


def test_a_reader_that_goes_away(folder):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "aclnn_bw", "info"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
