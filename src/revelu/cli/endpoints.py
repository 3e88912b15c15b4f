"""The options of endpoints, and the endpoint that they name."""

from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias

from revelu.cli.options import flag, optional
from revelu.errors import InputError

Request: TypeAlias = Annotated[
    str | None,
    optional("What is sent; $rows is a batch, $row one row a request.", metavar="JSON"),
]
Answer: TypeAlias = Annotated[str | None, optional("Where the answers are.", metavar="JSONPATH")]
Headers: TypeAlias = Annotated[
    list[str] | None,
    optional(
        "A header, in single quotes, its secret in the environment; may be given again.",
        metavar="'NAME: $VARIABLE'",
    ),
]
KeyEnv: TypeAlias = Annotated[
    str | None,
    optional("The environment variable with a key (Bearer).", metavar="VARIABLE"),
]
PresetName: TypeAlias = Annotated[
    str | None,
    optional("v2, kserve-v1, tfserving, mlflow, vertex, torchserve or bentoml.", metavar="NAME"),
]
EndpointFile: TypeAlias = Annotated[
    Path | None,
    optional("All of it in a file, which may stand for TARGET.", metavar="FILE.toml"),
]
Get: TypeAlias = Annotated[
    bool,
    flag("Ask by GET, with the members of the request as parameters.", "--get"),
]
Classes: TypeAlias = Annotated[
    str | None, optional("Names of the classes answered, in order.", metavar="A,B,...")
]
ClientCert: TypeAlias = Annotated[str | None, optional("Certificate to show.", metavar="FILE.pem")]
ClientKey: TypeAlias = Annotated[str | None, optional("Its key.", metavar="FILE.pem")]
CaCert: TypeAlias = Annotated[
    str | None, optional("Certificates to trust, and no others.", metavar="FILE.pem")
]
RetryFor: TypeAlias = Annotated[
    str | None,
    optional("Wait so long for a service that is away; a minute by default.", metavar="60s"),
]
Remote: TypeAlias = Annotated[
    bool,
    flag("TARGET asks elsewhere: it is asked as an endpoint is.", "--remote"),
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
        "classes": [name.strip() for name in (options.classes or "").split(",") if name.strip()],
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
    if given:
        option = {"headers": "header", "method": "get"}.get(name := next(iter(given)), name)
        raise InputError(
            f"--{option.replace('_', '-')} is for addresses, which {options.target} is not"
        )
    return options.target


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        # What was given may be a secret.
        raise InputError("--header is 'NAME: $VARIABLE'")
    return name.strip(), value.strip()
