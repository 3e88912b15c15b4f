"""A model of KServe's own server: version 1 of its protocol."""

import sys

from kserve import Model, ModelServer
from served_network import answers


class Served(Model):
    """A network."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ready = True

    def predict(self, payload: dict, _: dict | None = None) -> dict:
        """Answer a batch."""
        return {"predictions": answers(payload["instances"]).tolist()}


if __name__ == "__main__":
    ModelServer(http_port=int(sys.argv[1]), enable_grpc=False).start([Served("model")])
