"""A service of BentoML."""

import bentoml
import numpy as np
from served_network import answers


@bentoml.service
class Served:
    """A network."""

    @bentoml.api
    def predict(self, input_data: np.ndarray) -> np.ndarray:
        """Answer a batch."""
        return answers(input_data)
