"""An endpoint as a target, by the protocol that it speaks."""

from typing import Any

from revelu.adapters.endpoints.endpoint import Endpoint
from revelu.adapters.endpoints.target import EndpointTarget
from revelu.adapters.http import HttpTarget
from revelu.errors import InputError


def open_endpoint(
    endpoint: Endpoint,
    dim_in: int | None = None,
    *,
    rate: str | None = None,
    input_name: str | None = None,
    output_name: str | None = None,
) -> HttpTarget | EndpointTarget:
    """Open a model behind an address.

    Arguments and errors are those of :func:`revelu.open_oracle`.
    """
    names: dict[str, Any] = {"input_name": input_name, "output_name": output_name}
    if endpoint.is_v2:
        return HttpTarget(
            endpoint.url,
            endpoint.dim_in if dim_in is None else dim_in,
            rate=endpoint.rate if rate is None else rate,
            connection=endpoint.connection,
            timeout=endpoint.timeout,
            retry_for=endpoint.retry_for,
            **names,
        )
    if given := [name for name, value in names.items() if value is not None]:
        raise InputError(f"{given[0]} is for the preset v2, and {endpoint.name} is asked otherwise")
    return EndpointTarget(endpoint, dim_in, rate=rate)
