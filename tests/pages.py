"""The pages of the documentation as programs: their fenced blocks, in order, run in one folder.

    ```python                    runs in the page's namespace
    ```python title="name.py"    becomes a file; so do ```toml and ```yaml
    ```sh                        runs, a command a line; a server goes on until the page ends
    ```text                      is what the commands before it print, but for the figures

A comment ``<!-- slow -->`` on the line before a block leaves it to ``pytest -m slow``.
"""

import contextlib
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from typer.testing import CliRunner

from revelu.cli.app import app

FENCE = re.compile(
    r"(?P<slow><!-- slow -->\n)?^```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
LANGUAGES = {"python", "sh", "console", "text", "toml", "yaml", ""}
SERVERS = ("revelu serve", "dask scheduler", "dask worker")
# The ports of the pages, which this machine may have in use.
PORTS = ("8080", "8786")
# What a page says first and a machine that runs the tests has done.
INSTALLATION = ("python3 -m venv", ". .venv", "pip install", "pytest")
FIGURE = re.compile(r"\d[\d,.]*(e[-+]?\d+)?")
PATIENCE = 60.0


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    code: str
    title: str | None
    is_slow: bool


def blocks(path: Path) -> list[Block]:
    """Read the fenced blocks of a page; what is printed is as slow as what prints it."""
    read: list[Block] = []
    for found in FENCE.finditer(path.read_text(encoding="utf-8")):
        language, is_slow = found["language"], bool(found["slow"])
        if language == "text" and read:
            is_slow = read[-1].is_slow
        read.append(Block(language, found["code"], found["title"], is_slow))
    return read


class Page:
    """A page that runs in the present folder; a context manager, which ends its servers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.namespace: dict[str, object] = {"__name__": path.stem}
        self.ports = dict(zip(PORTS, map(str, _free_ports(len(PORTS))), strict=True))
        self.printed = ""
        self.ends = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.close()

    def run(self, *, slow: bool) -> int:
        """Run the page, or what of it is not slow; return how many blocks ran."""
        chosen = [block for block in blocks(self.path) if slow or not block.is_slow]
        for block in chosen:
            self.run_block(block)
        return len(chosen)

    def run_block(self, block: Block) -> None:
        """Run one block, after those before it."""
        if block.title is not None:
            Path(block.title).write_text(self._moved(block.code), encoding="utf-8")
        elif block.language == "python":
            exec(compile(block.code, self.path.name, "exec"), self.namespace)  # noqa: S102
        elif block.language in {"sh", "console"}:
            self.printed = "".join(map(self._command, commands(block.code)))
        elif block.language == "text":
            assert masked(self.printed) == masked(block.code)

    def _command(self, command: str) -> str:
        command = self._moved(command)
        if command.startswith(INSTALLATION):
            return ""
        if command.startswith(SERVERS):
            self._serve(command)
            return ""
        program, *arguments = shlex.split(command)
        assert program == "revelu", command
        arguments, printed_to = _redirected(arguments)
        runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"})
        done = runner.invoke(app, arguments)
        assert done.exit_code == 0, f"{command}\n{done.output}\n{done.exception}"
        if printed_to is None:
            return done.stdout
        printed_to.write_text(done.stdout, encoding="utf-8")
        return ""

    def _moved(self, code: str) -> str:
        """Code with the ports of this machine in place of the page's."""
        for port, free in self.ports.items():
            code = re.sub(rf"\b{port}\b", free, code)
        return code

    def _serve(self, command: str) -> None:
        """Start a server, and wait for its port where it has one of its own."""
        process = subprocess.Popen(
            [sys.executable, "-m", *shlex.split(command)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.ends.callback(process.wait)
        self.ends.callback(process.terminate)
        port = re.search(r"--port (\d+)", command)
        end = time.monotonic() + PATIENCE
        while port is not None and not _listens(int(port[1])):
            assert process.poll() is None, command
            assert time.monotonic() < end, command
            time.sleep(0.05)


def commands(code: str) -> list[str]:
    """Split a block of shell into commands; lines that end in a backslash go on."""
    lines = code.replace("\\\n", " ").splitlines()
    return [part.strip() for line in lines for part in line.split(" && ") if part.strip()]


def _redirected(arguments: list[str]) -> tuple[list[str], Path | None]:
    """Split what a shell would write to a file from the arguments: ``--json > old.json``."""
    if ">" not in arguments:
        return arguments, None
    at = arguments.index(">")
    return arguments[:at], Path(arguments[at + 1])


def masked(text: str) -> str:
    """Words and their order, without figures and line breaks: those are the machine's."""
    return FIGURE.sub("#", " ".join(text.split()))


def _free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
