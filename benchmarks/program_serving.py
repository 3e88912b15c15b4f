"""Servers that are programs of their own, in environments of their own, on loopback."""

import contextlib
import os
import platform
import socket
import subprocess
import time
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

SERVICES = Path(__file__).parent / "services"
PATIENCE_SECONDS = 120

# What is installed for each, with the version that is measured; FastAPI and uvicorn, which
# MLflow's server is made of, come with it.
PACKAGES = {
    "mlflow": ("mlflow==3.17.2",),
    "kserve": ("kserve==0.21.0",),
    "bentoml": ("bentoml==1.4.40",),
    "mlserver": ("mlserver==1.7.1", "mlserver-sklearn==1.7.1"),
}


def environment(name: str, folder: Path) -> Path:
    """Make the virtual environment of a server in a folder, once; its Python."""
    here = folder / name
    python = here / ("Scripts" if os.name == "nt" else "bin") / "python"
    done, packages = here / "complete", PACKAGES[name]
    holds = "\n".join((platform.python_version(), *packages))
    with alone(folder / f"{name}.lock"):
        if not done.exists() or done.read_text() != holds:
            venv.create(here, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)  # noqa: S603
            done.write_text(holds)
    return python


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Wait until no other process is here; a folder is made by one of them alone.

    Raises
    ------
    TimeoutError
        If it is there for too long; a process that was killed has left it.
    """
    deadline = time.monotonic() + 10 * PATIENCE_SECONDS
    while True:
        with contextlib.suppress(FileExistsError):
            lock.mkdir()
            break
        if time.monotonic() > deadline:
            raise TimeoutError(f"{lock} is there: remove it if nobody is at work")
        time.sleep(0.5)
    try:
        yield
    finally:
        lock.rmdir()


def free_ports(n: int) -> list[int]:
    """Find ports that nobody listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def wait_for(
    url: str, process: "subprocess.Popen[str] | subprocess.Popen[bytes]", log: Path
) -> None:
    """Wait until a server is ready.

    Raises
    ------
    RuntimeError
        If it has ended, or is not ready after all this time; with what it wrote.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return
        time.sleep(0.1)
    raise RuntimeError(log.read_text(encoding="utf-8"))


def bare(**more: str) -> dict[str, str]:
    """Return the environment of another program: ours, with the services to import."""
    return {**os.environ, "PYTHONPATH": f"{SERVICES}", **more}


@contextlib.contextmanager
def program(
    command: Sequence[object], folder: Path, port: int, ready: str, **environment: str
) -> Iterator[str]:
    """Run a server in a folder for a while; gives its address once ``ready`` answers."""
    log = folder / f"{port}.log"
    with log.open("w") as out:
        process = subprocess.Popen(  # noqa: S603 - a server that is named here
            list(map(str, command)), cwd=folder, env=bare(**environment), stdout=out, stderr=out
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}{ready}", process, log)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def uvicorn(
    python: object, folder: Path, application: str, ready: str, **environment: str
) -> contextlib.AbstractContextManager[str]:
    """Serve an application by uvicorn."""
    (port,) = free_ports(1)
    command = [python, "-m", "uvicorn", application, "--host", "127.0.0.1", "--port", port]
    return program(command, folder, port, ready, **environment)


def fastapi(python: object, folder: Path) -> contextlib.AbstractContextManager[str]:
    """Serve the network of a folder by FastAPI."""
    return uvicorn(python, folder, "fastapi_service:app", "/openapi.json")


def mlflow(
    python: object, folder: Path, model: str = "model"
) -> contextlib.AbstractContextManager[str]:
    """MLflow's own scoring server, as `mlflow models serve` starts it, of a model that is saved."""
    environment = {"__pyfunc_model_path__": f"{folder / model}"}
    return uvicorn(python, folder, "mlflow.pyfunc.scoring_server.app:app", "/ping", **environment)


def kserve(python: object, folder: Path) -> contextlib.AbstractContextManager[str]:
    """KServe's own server."""
    (port,) = free_ports(1)
    return program([python, SERVICES / "kserve_service.py", port], folder, port, "/v1/models/model")


def bentoml(python: object, folder: Path) -> contextlib.AbstractContextManager[str]:
    """BentoML's own server."""
    (port,) = free_ports(1)
    command = [python, "-m", "bentoml", "serve", "bentoml_service:Served", "--host", "127.0.0.1"]
    environment = {"BENTOML_DO_NOT_TRACK": "True", "BENTOML_HOME": f"{folder / 'bentoml'}"}
    return program([*command, "--port", port], folder, port, "/readyz", **environment)
