"""Addresses: what of them is sent, and what of them may be told."""

import hashlib
import logging
import re
import string
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

from revelu.adapters.credentials import (
    AUTHORIZATION,
    is_telling,
    keep_secret,
    shown,
    value_of,
    variables_in,
)
from revelu.errors import InputError

_NAME = re.compile(r"[A-Za-z_$][\w.$\[\]-]{0,63}", re.ASCII)

# What a parameter is called that carries a secret, besides what headers are called.
_TELLING = re.compile(
    r"access|app_?id|bearer|code|cred|hash|mac$|nonce|otp|pwd|sas$|sig|ticket|user", re.IGNORECASE
)

# What secrets look like: long, in one piece, of letters and digits.
_OPAQUE = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[\w.~+/=-]{24,}", re.ASCII)


@dataclass(frozen=True)
class Address:
    """An address, with its parameters apart.

    Attributes
    ----------
    base : str
        Scheme, host, port and path: all of it that messages show.
    parameters : tuple of (str, str)
        Names and values, as they are written; ``$NAME`` stands for an environment variable.
    """

    base: str
    parameters: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, text: str) -> Self:
        """Take an address apart.

        Raises
        ------
        InputError
            If it is none, or holds what may be secret; the message does not show that.
        """
        try:
            parts = urlsplit(text)
        except ValueError as error:
            base = text.partition("?")[0]
            raise InputError(f"{shown(base)}: is no address: {error}") from None
        if parts.username is not None or parts.fragment:
            raise InputError(
                "an address holds scheme, host, port, path and parameters alone; authorisation "
                f"goes into the environment variable {AUTHORIZATION}"
            )
        pairs = (pair.partition("=") for pair in parts.query.split("&") if pair)
        address = cls(
            text.partition("?")[0], tuple(_checked(name, value) for name, _, value in pairs)
        )
        keep_secret(address.variables)
        return address

    @property
    def variables(self) -> list[str]:
        """The environment variables that are read."""
        return [name for _, value in self.parameters for name in variables_in(value)]

    @property
    def told(self) -> str:
        """The address without the values of its parameters."""
        names = "&".join(f"{name}=..." for name, _ in self.parameters)
        return f"{self.base}?{names}" if names else self.base

    @property
    def facts(self) -> dict[str, str]:
        """What of it decides answers and is not told."""
        if not self.parameters:
            return {}
        written = "&".join(map("=".join, self.parameters))
        return {"parameters": hashlib.sha256(written.encode()).hexdigest()[:16]}

    def query(self) -> str:
        """Return the parameters as they are sent, secrets and all.

        Raises
        ------
        InputError
            If an environment variable is not set.
        """
        return "&".join(f"{name}={_filled(value)}" for name, value in self.parameters)


def may_be_secret(name: str, value: str) -> bool:
    """Whether what goes by a name is a secret by that, or by what it looks like."""
    by_name = is_telling(name) or _TELLING.search(name) is not None
    return by_name or any(_OPAQUE.fullmatch(word) for word in value.split())


def told(address: str) -> str:
    """Return an address without the values of its parameters; any other text as it is."""
    if "?" not in address or not address.startswith(("http://", "https://")):
        return address
    return Address.read(address).told


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port.

    Raises
    ------
    InputError
        If it has no such port.
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise InputError(f"{url}: has no such port") from None
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname or "", default if port is None else port


def _checked(name: str, value: str) -> tuple[str, str]:
    """Return a parameter, unless it may be secret or is none."""
    if not value or _NAME.fullmatch(unquote(name)) is None:
        # What has no name may be a secret.
        raise InputError("a parameter of an address is NAME=VALUE")
    variables = variables_in(value)
    if {"row", "rows"} & set(variables):
        raise InputError(
            "rows go into the request, not into the address: "
            f"--get --request '{{\"{name}\": $row}}'"
        )
    if may_be_secret(name, unquote(value)) and not variables:
        raise InputError(
            f"the parameter {name} may be secret: name an environment variable, "
            f"'{name}=$VARIABLE', the address in single quotes"
        )
    return name, value


def _filled(value: str) -> str:
    values = {name: quote(value_of(name), safe="") for name in variables_in(value)}
    return string.Template(value).substitute(values)


class WithoutParameters(logging.Filter):
    """Keeps parameters of addresses out of another library's log.

    Attributes
    ----------
    origins : set of tuple
        Of the addresses that are asked.
    """

    def __init__(self) -> None:
        super().__init__()
        self.origins: set[tuple[str, str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the addresses among what is to be written."""
        if isinstance(record.args, tuple):
            record.args = tuple(map(self._told, record.args))
        return True

    def _told(self, value: Any) -> Any:
        base, mark, _ = f"{value}".partition("?")
        if not mark or not base.startswith(("http://", "https://")):
            return value
        return base if origin_of(base) in self.origins else value
