"""The recipe for conda says what the package says of itself. Nothing is downloaded: it is read, not built."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import aclnn_bw

ROOT = Path(__file__).resolve().parent.parent
RECIPE = (ROOT / "packaging" / "recipe.yaml").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
REQUIRED = os.environ.get("ACLNN_BW_REQUIRE_DOCS") == "1"


@pytest.fixture(scope="module")
def recipe():
    if find_spec("yaml") is None:
        if REQUIRED:
            pytest.fail("ACLNN_BW_REQUIRE_DOCS=1, but PyYAML is not installed")
        pytest.skip("PyYAML is not installed")
    import yaml

    return yaml.safe_load(RECIPE)


def listed(name):
    """The strings of a list in pyproject.toml, for which Python 3.10 has no parser."""
    [found] = re.findall(rf"^{name} = \[(.*?)\]$", PROJECT, re.MULTILINE | re.DOTALL)
    return re.findall(r'"([^"]*)"', found)


def string(name):
    [found] = re.findall(rf'^{re.escape(name)} = "(.*)"$', PROJECT, re.MULTILINE)
    return found


def spaced(requirement):
    """`numpy>=2.0` as conda writes it: `numpy >=2.0`."""
    return re.sub(r"(?<=\w)(?=[=<>])", " ", requirement, count=1)


def test_name_and_version(recipe):
    assert recipe["schema_version"] == 1
    assert recipe["context"]["version"] == aclnn_bw.__version__
    assert recipe["package"] == {"name": string("name"), "version": "${{ version }}"}
    assert (ROOT / "packaging" / recipe["source"]["path"]).resolve() == ROOT


def test_what_it_needs_to_run(recipe):
    assert recipe["requirements"]["run"] == ["python", *map(spaced, listed("dependencies"))]
    assert f'match(python, "<{string("requires-python").removeprefix(">=")}")' in recipe["build"]["skip"]


def test_what_it_needs_to_be_built(recipe):
    pinned = [spaced(one) for one in listed("requires") if not one.startswith("numpy")]
    # conda-forge chooses the NumPy of a build; the module runs on every newer one.
    assert recipe["requirements"]["host"] == ["python", "pip", *pinned, "numpy"]
    compiler, library, cross = recipe["requirements"]["build"]
    assert (compiler, library) == ('${{ compiler("c") }}', '${{ stdlib("c") }}')
    assert set(cross["then"]) - {"cross-python_${{ target_platform }}"} <= set(recipe["requirements"]["host"])
    assert "--no-deps --no-build-isolation" in recipe["build"]["script"]["content"]
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert all(f'"{name}"' in setup for name in recipe["build"]["script"]["env"])


def test_the_command(recipe):
    [(name, function)] = re.findall(r'^\[project\.scripts\]\n([\w-]+) = "([\w.:]+)"$', PROJECT, re.MULTILINE)
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {function}"]
    imports, commands = recipe["tests"]
    assert imports["python"]["imports"] == [string("name")]
    assert all(command.split()[0] == name for command in commands["script"])


def test_what_it_says_of_itself(recipe):
    assert recipe["about"]["summary"] == string("description")
    assert recipe["about"]["license"] == string("license")
    assert [recipe["about"]["license_file"]] == listed("license-files")
    assert (ROOT / recipe["about"]["license_file"]).is_file()


def test_the_platforms_are_those_that_were_tried(recipe):
    assert {"not linux", "not (x86_64 or aarch64)"} < set(recipe["build"]["skip"])
    classifiers = listed("classifiers")
    assert [one for one in classifiers if one.startswith("Operating System")] == ["Operating System :: POSIX :: Linux"]
    assert "developed on Linux x86-64" in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(classifiers))
    assert versions == [version.removeprefix("cp3") for version in re.findall(r"cp3\d+", PROJECT)]
