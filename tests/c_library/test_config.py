"""``aclnn-bw config``, the CMake package and the pkg-config file lead a build to the library and its headers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import aclnn_bw

PACKAGE = Path(aclnn_bw.__file__).parent
SAMPLE = Path(__file__).parent / "samples" / "repeatable.c"
pytestmark = pytest.mark.skipif(not (PACKAGE / "lib").is_dir(), reason="this build has no C library")


def config(*questions):
    done = subprocess.run(
        [sys.executable, "-c", "from aclnn_bw.cli import main; raise SystemExit(main())", "config", *questions],
        capture_output=True, text=True, check=True, cwd=os.sep,  # not where a folder of the package's sources lies
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )  # fmt: skip
    return done.stdout.splitlines()


def runs(program):
    assert subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
def test_the_flags_build_a_program(tmp_path):
    flags = " ".join(config("--cflags", "--libs")).split()
    subprocess.run(["gcc", "-std=c99", str(SAMPLE), *flags, "-o", str(tmp_path / "program")], check=True)
    runs(tmp_path / "program")


def test_every_answer_is_there():
    (prefix,) = config("--prefix")
    assert Path(prefix) == PACKAGE
    assert (Path(prefix) / "include" / "acl" / "acl.h").is_file()
    assert (Path(config("--cmakedir")[0]) / "aclnn_bwConfig.cmake").is_file()
    assert (Path(config("--pkgconfigdir")[0]) / "aclnn_bw.pc").is_file()
    assert [line.split(":")[0] for line in config()] == ["cflags", "libs", "prefix", "cmakedir", "pkgconfigdir"]


@pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("gcc"), reason="no CMake")
def test_cmake_finds_the_package(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.16)
        project(sample C)
        find_package(aclnn_bw {aclnn_bw.__version__} EXACT REQUIRED)
        add_executable(program {SAMPLE})
        target_link_libraries(program PRIVATE aclnn_bw::aclnn_bw)
    """)
    (folder,) = config("--cmakedir")
    build = str(tmp_path / "build")
    subprocess.run(["cmake", "-S", str(tmp_path), "-B", build, f"-Daclnn_bw_DIR={folder}"], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    runs(tmp_path / "build" / "program")


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="no pkg-config")
def test_pkg_config_knows_it(tmp_path):
    def ask(*options):
        environment = {**os.environ, "PKG_CONFIG_PATH": config("--pkgconfigdir")[0]}
        done = subprocess.run(
            ["pkg-config", *options, "aclnn_bw"], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    assert ask("--modversion") == [aclnn_bw.__version__]
    if shutil.which("gcc"):
        flags = ask("--cflags", "--libs")
        subprocess.run(["gcc", "-std=c99", str(SAMPLE), *flags, "-o", str(tmp_path / "program")], check=True)
        runs(tmp_path / "program")
