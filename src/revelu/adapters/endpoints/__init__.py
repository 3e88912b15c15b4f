"""Any address that answers JSON: what it is asked with, and where its answers are."""

from revelu.adapters.endpoints.endpoint import Endpoint
from revelu.adapters.endpoints.profile import read_profile
from revelu.adapters.endpoints.target import EndpointTarget

__all__ = ["Endpoint", "EndpointTarget", "read_profile"]
