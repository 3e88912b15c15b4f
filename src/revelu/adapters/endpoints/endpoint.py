"""An endpoint as a user describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from revelu.adapters.addresses import Address
from revelu.adapters.connection import Connection
from revelu.adapters.credentials import shown
from revelu.adapters.endpoints.presets import PRESETS, preset_of
from revelu.adapters.endpoints.template import Template
from revelu.adapters.patience import Patience
from revelu.errors import InputError


@dataclass(frozen=True)
class Endpoint:
    """A target behind an address that answers JSON.

    Parameters
    ----------
    url : str
        ``http(s)://...``; ``$NAME`` in a parameter stands for an environment variable.
    request : str, optional
        What is sent, in JSON: ``$rows`` stands for the rows of a batch, ``$objects(A, B)`` for
        them as objects with these names, ``$row`` for one row a request, ``$row[I]`` for one of
        its numbers.
    answer : str, optional
        JSONPath of the answers; without one the whole answer is taken, or the only member of an
        object.
    headers : mapping of str to str, optional
        ``$NAME`` in a value stands for an environment variable, which is read when a request is
        sent, and never kept.
    preset : str, optional
        ``v2``, ``kserve-v1``, ``tfserving``, ``mlflow``, ``vertex``, ``torchserve`` or
        ``bentoml``: what is not given is as of such a server.  Where no request is given either,
        the address may tell.
    method : {"POST", "GET"}
        A GET has the members of the request as parameters of the address.
    key_env : str, optional
        The environment variable with a key: ``Authorization: Bearer KEY``.
    classes : sequence of str
        Names of classes that are answered, in the order that they are to be numbered in.
    client_cert, client_key, ca_cert : str, optional
        PEM files: the certificate that the client shows, its key, and the certificates that are
        trusted in place of the system's.
    dim_in : int, optional
        Number of inputs.
    rate : str, optional
        Most requests, such as ``"50/s"``.
    batch : int, optional
        Most rows of one request.
    timeout : float
        Seconds that a request may take in all, and a job.
    poll, done : str, optional
        Of an endpoint that answers a job: its address, by a JSONPath such as ``$.url``, as in
        ``"/jobs/{$.id}"``, or ``"Location"`` for that header; and a JSONPath that has something
        once it is done, or ``"$.status == succeeded"``.
    retry_for : str or float, optional
        How long the service is waited for where it is away, such as ``"60s"`` or ``"5min"``;
        without it a minute, once it has replied.

    Raises
    ------
    InputError
        If something makes no sense, an environment variable is not set, or the address does not
        tell what is missing.

    Examples
    --------
    >>> import revelu
    >>> revelu.Endpoint("http://127.0.0.1:5000/invocations").request
    '{"inputs": $rows}'
    """

    url: str
    request: str | None = None
    answer: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    preset: str | None = None
    method: str = "POST"
    key_env: str | None = None
    classes: Sequence[str] = ()
    client_cert: str | None = None
    client_key: str | None = None
    ca_cert: str | None = None
    dim_in: int | None = None
    rate: str | None = None
    batch: int | None = None
    timeout: float = 60.0
    poll: str | None = None
    done: str | None = None
    retry_for: str | float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise InputError(f"url must be text, got {type(self.url).__name__}")
        if not self.name.startswith(("http://", "https://")):
            raise InputError(f"{shown(self.name)}: an endpoint is http(s)://HOST/PATH")
        if self.method not in {"POST", "GET"}:
            raise InputError(f"method must be POST or GET, got {shown(self.method)!r}")
        if not isinstance(self.timeout, int | float) or not 0 < self.timeout < float("inf"):
            raise InputError(f"timeout must be seconds, more than 0, got {self.timeout!r}")
        if not isinstance(self.headers, Mapping):
            raise InputError("headers must be names and their values")
        is_text = all(isinstance(name, str) for name in self.classes)
        if isinstance(self.classes, str) or not is_text:
            raise InputError("classes must be a list of names")
        if (self.poll is None) != (self.done is None):
            raise InputError("poll and done belong together: give both")
        for name in ("request", "answer", "poll", "done"):
            if not isinstance(getattr(self, name), str | None):
                raise InputError(f"{name} must be text")
        Patience(self.retry_for)
        object.__setattr__(self, "headers", dict(self.headers))
        object.__setattr__(self, "classes", tuple(self.classes))
        self._complete()
        _ = self.connection, Address.read(self.url).query()
        if self.request is not None:
            self.template()

    @property
    def name(self) -> str:
        """What it is called: its address without the values of parameters."""
        return Address.read(self.url).told

    @property
    def is_v2(self) -> bool:
        """Whether it speaks the Open Inference Protocol, version 2."""
        return self.preset == "v2"

    @property
    def connection(self) -> Connection:
        """How it is reached."""
        return Connection(
            self.headers, self.key_env, self.client_cert, self.client_key, self.ca_cert
        )

    def template(self) -> Template:
        """Return what is sent, with places for rows."""
        return Template(self.request or "", self.method)

    def _complete(self) -> None:
        """Take from a preset what is not given."""
        if self.preset is not None and self.preset not in PRESETS:
            raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}")
        name = self.preset or (preset_of(self.url) if self.request is None else None)
        if name is None and self.request is None:
            raise InputError(
                f"{shown(self.name)} does not tell how it is asked: give a request, such as "
                """'{"features": $rows}', or a preset: """ + ", ".join(PRESETS)
            )
        if name is None:
            return
        found = PRESETS[name]
        given: dict[str, Any] = {"preset": name}
        if name == "v2":
            own = (self.request, self.answer, self.poll, *self.classes)
            if self.method != "POST" or any(part is not None for part in own):
                raise InputError("the preset v2 has a request and an answer of its own")
        elif self.request is None:
            given |= {"request": found.request, "answer": self.answer or found.answer}
        elif self.answer is None:
            given |= {"answer": found.answer}
        for key, value in given.items():
            object.__setattr__(self, key, value)
