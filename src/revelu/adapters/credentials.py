"""Secrets: read from the environment where they are sent, and struck out of what is shown."""

import html
import json
import os
import re
import string
from urllib.parse import quote, quote_plus

from revelu.errors import InputError

# The environment variable with the value of the authorisation header, such as "Bearer ...".  It
# is read only here, and kept out of everything that is written or pickled.
AUTHORIZATION = "REVELU_AUTHORIZATION"

# Variables whose values are secret: each that a connection of this process names.
_SECRET = {AUTHORIZATION}

# A list of more than four numbers, and its first three.
# A number begins at no other place than its first digit, or long ones would take long.
_MANY = re.compile(
    r"(?<![\w.+-])((?:-?\d[\d.e+-]*+[\s,]++){3})(?:-?\d[\d.e+-]*+[\s,]++)+-?\d[\d.e+-]*+",
    re.IGNORECASE,
)

# What a header is called that carries a secret.
_TELLING = re.compile(
    r"auth|cookie|credential|jwt|key|pass|secret|session|sign|token", re.IGNORECASE
)


def value_of(variable: str) -> str:
    """Return the value of an environment variable; from now on it is shown nowhere.

    Raises
    ------
    InputError
        If it is not set, or holds what no header can.
    """
    keep_secret([variable])
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"the environment variable {variable} is not set")
    return _checked(variable, value)


def authorization() -> str:
    """Return the value of the authorisation header; nothing, where there is none."""
    return _checked(AUTHORIZATION, os.environ.get(AUTHORIZATION, "").strip())


def keep_secret(variables: list[str]) -> None:
    """Have the values of environment variables struck out of what is shown."""
    _SECRET.update(variables)


def variables_in(template: str) -> list[str]:
    """Return the variables that a value names, ``$NAME`` or ``${NAME}``.

    Raises
    ------
    InputError
        If a dollar begins no name; two stand for one.
    """
    form = string.Template(template)
    if not form.is_valid():
        raise InputError("a value has a $ that begins no name; write $$ for a dollar")
    return form.get_identifiers()


def filled(template: str) -> str:
    """Return a header's value with that of each variable in its place."""
    values = {name: value_of(name) for name in variables_in(template)}
    return string.Template(template).substitute(values)


def is_telling(header: str) -> bool:
    """Whether a header is one that carries secrets."""
    return _TELLING.search(header) is not None


def shown(text: object, most: int = 200) -> str:
    """Return what another machine said as one short line, with nothing secret in it.

    Of many numbers the first are shown: what is said after them says more.
    """
    said = _MANY.sub(r"\1...", str(text)[: 100 * most])
    line = struck_out("".join(c if c.isprintable() else " " for c in said[: 10 * most]))
    line = " ".join(line.split())
    return line if len(line) <= most else f"{line[:most]}..."


def struck_out(text: str) -> str:
    """Return a text without the secrets that this process has read."""
    secrets = {os.environ.get(name, "").strip() for name in _SECRET}
    plain = {word for secret in secrets for word in (secret, *secret.split())} - {""}
    words = {form for word in plain for form in _written(word)}
    # The longest first: a secret may begin like another one.
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "***")
    return text


def _written(secret: str) -> set[str]:
    """Return a secret as servers write it that repeat it: in JSON, addresses and pages."""
    as_json = json.dumps(secret)[1:-1]
    forms = {secret, as_json, json.dumps(as_json)[1:-1], as_json.replace("/", "\\/")}
    forms |= {quote(secret), quote(secret, safe=""), quote_plus(secret)}
    return forms | {html.escape(secret), html.escape(secret, quote=False)}


def _checked(variable: str, value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise InputError(f"{variable} holds what no header can")
    return value
