"""The options of endpoints, and the endpoint that they name."""

from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias

from revelu.cli.options import flag, optional
from revelu.errors import InputError

Request: TypeAlias = Annotated[
    str | None,
    optional(
        "Body of a request as JSON; $rows stands for a batch of rows, $row for a single row.",
        metavar="JSON",
    ),
]
Answer: TypeAlias = Annotated[
    str | None,
    optional("Where the numbers stand in the answer, as a JSONPath.", metavar="JSONPATH"),
]
Headers: TypeAlias = Annotated[
    list[str] | None,
    optional(
        "Header to send, in single quotes, so that $VARIABLE is read from the environment; may be "
        "given again.",
        metavar="'NAME: $VARIABLE'",
    ),
]
KeyEnv: TypeAlias = Annotated[
    str | None,
    optional(
        "Environment variable that holds the API key, sent as a Bearer token.", metavar="VARIABLE"
    ),
]
PresetName: TypeAlias = Annotated[
    str | None,
    optional(
        "Protocol of the server: v2, kserve-v1, tfserving, mlflow, vertex, torchserve or bentoml.",
        metavar="NAME",
    ),
]
EndpointFile: TypeAlias = Annotated[
    Path | None,
    optional(
        "TOML file with the address and all options of this group; may stand in place of TARGET.",
        metavar="FILE.toml",
    ),
]
Get: TypeAlias = Annotated[
    bool,
    flag("Send GET requests, with the members of --request as parameters.", "--get"),
]
Classes: TypeAlias = Annotated[
    str | None,
    optional(
        "Names of the classes that TARGET answers, in the order of the outputs, joined by commas.",
        metavar="A,B,...",
    ),
]
ClientCert: TypeAlias = Annotated[
    str | None,
    optional("TLS certificate that this client shows to the server.", metavar="FILE.pem"),
]
ClientKey: TypeAlias = Annotated[str | None, optional("Key of --client-cert.", metavar="FILE.pem")]
CaCert: TypeAlias = Annotated[
    str | None, optional("TLS certificates to trust, in place of the system's.", metavar="FILE.pem")
]
RetryFor: TypeAlias = Annotated[
    str | None,
    optional("How long to wait for a server that does not answer; default: 60s.", metavar="60s"),
]
Remote: TypeAlias = Annotated[
    bool,
    flag("TARGET is a function that asks a server: treat it as an endpoint.", "--remote"),
]


class Addressed(Protocol):
    """Options that say what is asked, and how."""

    target: str
    request: str | None
    answer: str | None
    header: list[str] | None
    key_env: str | None
    preset: str | None
    endpoint: Path | None
    get: bool
    classes: str | None
    client_cert: str | None
    client_key: str | None
    ca_cert: str | None
    retry_for: str | None


def target_of(options: Addressed) -> Any:
    """Return the target of a command's options: an endpoint, or else its name.

    Raises
    ------
    InputError
        If options make no endpoint, or are for one and the target is another thing.
    FormatError
        If a file cannot be read.
    """
    from revelu.adapters.endpoints import Endpoint, read_profile

    names = (
        *("request", "answer", "key_env", "preset"),
        *("client_cert", "client_key", "ca_cert", "retry_for"),
    )
    given = {name: getattr(options, name) for name in names}
    given |= {
        "headers": dict(map(_header, options.header or ())) or None,
        "classes": classes_of(options),
        "method": "GET" if options.get else None,
    }
    given = {name: value for name, value in given.items() if value}
    is_address = options.target.startswith(("http://", "https://"))
    file = options.endpoint
    if file is None and options.target.lower().endswith(".toml"):
        file = Path(options.target)
    if file is not None:
        if not is_address and options.target not in {f"{file}", f"{options.endpoint}"}:
            raise InputError("--endpoint is for addresses: TARGET is one, or is left out")
        return read_profile(file, **given, **({"url": options.target} if is_address else {}))
    if is_address:
        return Endpoint(options.target, **given)
    given.pop("classes", None)  # of what is no endpoint the oracle knows them
    if given:
        option = {"headers": "header", "method": "get"}.get(name := next(iter(given)), name)
        raise InputError(
            f"--{option.replace('_', '-')} is for addresses, which {options.target} is not"
        )
    return options.target


def classes_of(options: Addressed) -> list[str]:
    """Return the names of classes that options give, in their order."""
    return [name.strip() for name in (options.classes or "").split(",") if name.strip()]


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        # What was given may be a secret.
        raise InputError("--header is 'NAME: $VARIABLE'")
    return name.strip(), value.strip()
