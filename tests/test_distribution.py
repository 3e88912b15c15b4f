"""What is published: wheel and sdist are built, installed by themselves, and used."""

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import revelu

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SUPPORTED = ("3.11", "3.12", "3.13")
BIN = "Scripts" if os.name == "nt" else "bin"


def run(*command, folder: Path | None = None) -> str:
    """Run a command that knows nothing of this interpreter, and return what it prints."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def empty_environment(folder: Path, python: str = sys.executable) -> Path:
    """Make a virtual environment, and return the folder of its programs."""
    run(python, "-m", "venv", folder)
    return folder / BIN


def interpreters() -> dict[str, str]:
    """The interpreters of supported versions that this machine runs, this one's among them."""
    found = {".".join(map(str, sys.version_info[:2])): sys.executable}
    for version in SUPPORTED:
        name = f"python{version}"
        try:
            subprocess.run([name, "-c", ""], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        found.setdefault(version, name)
    return {version: found[version] for version in SUPPORTED if version in found}


def test_supported_versions_are_declared():
    declared = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    assert declared == set(SUPPORTED)
    assert PROJECT["requires-python"] == f">={SUPPORTED[0]}"


def test_hints_name_the_package_and_an_extra_that_exists():
    pages = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    said = {
        (path.suffix, package, extra)
        for path in pages
        for package, extra in re.findall(
            r"pip install \"?([\w.]+)\[(\w+)\]", path.read_text(encoding="utf-8")
        )
    }
    assert said
    for suffix, package, extra in said:
        assert extra in {*PROJECT["optional-dependencies"], "NAME"}
        # Whoever works on a clone installs the clone; pages are read beside one, messages are not.
        works = extra in {"test", "docs", "bench"}
        assert package == "." if works else package in {"revelu", "." if suffix == ".md" else ""}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the sdist, built in an environment of their own."""
    folder = tmp_path_factory.mktemp("dist")
    programs = empty_environment(folder / "builder")
    run(programs / "pip", "install", "-q", "hatchling>=1.25")
    run(programs / "python", "-m", "hatchling", "build", "-d", folder, folder=ROOT)
    return folder


@pytest.mark.slow
def test_wheel_holds_the_package_and_its_metadata(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        said = email.message_from_bytes(archive.read(metadata))
    package = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*.py")}
    assert package <= names
    for name in ("py.typed", "demos/digits.onnx", "report/page.css", "report/page.html.j2"):
        assert f"revelu/{name}" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"revelu"}
    assert said["Version"] == revelu.__version__
    assert said["Summary"] == PROJECT["description"]
    assert said["License-Expression"] == "MIT"
    assert said["Description-Content-Type"] == "text/markdown"
    assert set(said.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert any(name.endswith("LICENSE") for name in names)


@pytest.mark.slow
def test_sdist_has_what_the_tests_need(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("tests/conftest.py", "docs/tutorial.md", "README.md", "LICENSE", "mkdocs.yml"):
        assert name in names


@pytest.mark.slow
@pytest.mark.parametrize("version", SUPPORTED)
def test_wheel_installs_and_recovers(built, tmp_path, version):
    if version not in interpreters():
        pytest.skip(f"no Python {version} here")
    programs = empty_environment(tmp_path / "user", interpreters()[version])
    (wheel,) = built.glob("*.whl")
    run(programs / "pip", "install", "-q", wheel)
    assert run(programs / "revelu", "--version") == f"revelu {revelu.__version__}\n"
    printed = run(programs / "revelu", "extract", "demo:digits", "-o", "a.onnx", folder=tmp_path)
    assert printed.startswith("demo:digits: recovered and certified\n")
    assert revelu.load(tmp_path / "a.onnx").architecture == (64, 32, 10)


@pytest.mark.slow
def test_sdist_installs(built, tmp_path):
    programs = empty_environment(tmp_path / "user")
    (sdist,) = built.glob("*.tar.gz")
    run(programs / "pip", "install", "-q", sdist)
    assert "demo:digits" in run(programs / "revelu", "demos", folder=tmp_path)
