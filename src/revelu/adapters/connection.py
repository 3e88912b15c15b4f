"""How a host is reached: headers, whose secrets are in the environment, and certificates."""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from revelu.adapters.credentials import (
    AUTHORIZATION,
    authorization,
    filled,
    is_telling,
    keep_secret,
    value_of,
    variables_in,
)
from revelu.errors import InputError

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What says where a request ends is the client's affair.
_OURS = {"content-length", "transfer-encoding"}


@dataclass(frozen=True)
class Connection:
    """How a host is reached.

    Attributes
    ----------
    headers : mapping of str to str
        ``$NAME`` in a value stands for an environment variable, which is read when a request is
        sent, and never kept.
    key_env : str or None
        The environment variable with a key: ``Authorization: Bearer KEY``.
    client_cert, client_key : str or None
        PEM files of the certificate that the client shows, and of its key.
    ca_cert : str or None
        PEM file of the certificates that are trusted, in place of the system's.

    Raises
    ------
    InputError
        If something makes no sense, a secret stands here itself, or a variable is not set.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    key_env: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    ca_cert: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.headers.items():
            _check_header(name, value)
        if self.key_env is not None:
            if _VARIABLE.fullmatch(self.key_env) is None:
                # What was given may be the key itself.
                raise InputError("key_env is the name of an environment variable, not a key")
            if "authorization" in {name.lower() for name in self.headers}:
                raise InputError("key_env is for the header Authorization, which is given, too")
        if self.client_key is not None and self.client_cert is None:
            raise InputError("client_key is the key of a client_cert: give both")
        self.sent()

    @property
    def variables(self) -> list[str]:
        """The environment variables that are read."""
        named = [name for value in self.headers.values() for name in variables_in(value)]
        return [*named, *([self.key_env] if self.key_env else [])]

    @property
    def has_secret(self) -> bool:
        """Whether something secret is sent."""
        return bool(self.variables or authorization())

    def sent(self) -> dict[str, str]:
        """Return the headers of a request, secrets and all."""
        headers = {name: filled(value) for name, value in self.headers.items()}
        if self.key_env is not None:
            headers["Authorization"] = f"Bearer {value_of(self.key_env)}"
        elif "authorization" not in {name.lower() for name in headers} and authorization():
            headers["Authorization"] = authorization()
        return headers

    def told(self) -> dict[str, str]:
        """Return the headers of a request as they may be told: with names for secrets."""
        headers = dict(self.headers)
        if self.key_env is not None:
            headers["Authorization"] = f"Bearer ${self.key_env}"
        elif "authorization" not in {name.lower() for name in headers} and authorization():
            headers["Authorization"] = f"${AUTHORIZATION}"
        return headers

    def context(self) -> ssl.SSLContext:
        """Return what certificates are checked with, and shown.

        Raises
        ------
        InputError
            If a file is none.
        """
        keep_secret(self.variables)
        try:
            context = ssl.create_default_context(cafile=self.ca_cert)
        except OSError as error:
            raise InputError(f"ca_cert {self.ca_cert}: {_reason(error)}") from None
        if self.client_cert is not None:
            key = self.client_key
            try:
                # Without a password OpenSSL would ask for one at the terminal.
                context.load_cert_chain(Path(self.client_cert), key and Path(key), password="")
            except OSError as error:
                files = self.client_cert if key is None else f"{self.client_cert} and {key}"
                raise InputError(f"client_cert {files}: {_reason(error)}") from None
        return context


def _check_header(name: str, value: str) -> None:
    if not (isinstance(name, str) and isinstance(value, str)) or _NAME.fullmatch(name) is None:
        raise InputError("a header is a name and a text, such as 'X-Api-Key: $VARIABLE'")
    if name.lower() in _OURS:
        raise InputError(f"the header {name} is not yours to set")
    if not (value.isascii() and value.isprintable()):
        raise InputError(f"the header {name} holds what no header can")
    if not variables_in(value) and is_telling(name):
        raise InputError(
            f"the header {name} may be secret: name an environment variable, '{name}: $VARIABLE', "
            "in single quotes, or the shell puts the secret in its place"
        )


def _reason(error: OSError) -> str:
    return error.strerror or f"{error}"
