"""The method for networks of any depth, and what tunes it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from revelu.numerics.gauss_newton import Damping, Stop
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.deep.answers import Judging
from revelu.recover.deep.first_rows import FirstRows
from revelu.recover.deep.layers import LayerSearch
from revelu.recover.deep.rough_tower import RoughTower, RoughTowerSearch
from revelu.recover.method import Law, Method, Search
from revelu.recover.refine.network_fit import AUTOMATIC


@dataclass(frozen=True)
class Deep(Method):
    """Any number of hidden layers, of any width, layer by layer."""

    name = "deep"
    purpose = "any number of hidden layers of any width, one after another"
    hidden = (1, None)
    answers = frozenset({Law.FLOAT64, Law.FLOAT32})
    cost = "5 to 100; 25 to 70 in float32"
    max_starts = 3

    max_layers: int = 12
    """Hidden layers after which the climb is given up."""
    max_unsure: int = 1
    """Layers whose signs are not known, at most: above several nothing is to be told, and where no
    layer's are the target has other units than ReLUs."""
    in_box: float = 3.0
    """Half the width of a box, in standard deviations of what is drawn there."""
    first: FirstRows = field(default_factory=FirstRows)
    """Of the first layer."""
    layers: LayerSearch = field(default_factory=LayerSearch)
    """Of the others, and the outputs."""
    judging: Judging = field(default_factory=Judging)
    patience: int = 3
    """Rounds in vain that end the search for what is missing."""
    max_rounds: int = 40
    """Rounds at most."""
    helps: float = 0.1
    """The share of wrong points that a round has to mend, not to be in vain."""
    n_look: int = 2000
    n_look_again: int = 500
    """Fresh points of a look for errors, at least: of the first, and of those after mending, for
    the certificate looks, too."""
    equations: float = 1.5
    """Answers a parameter for the fit of all layers."""
    dense: int = AUTOMATIC.most_parameters
    """Networks of more parameters are fitted to what is right alone, and at last;"""
    vague: float = 1e-7
    """or where the error at most points is larger."""
    dense_top: int = 5500
    """Of those the last two layers are fitted to all if they have no more parameters,"""
    few_wrong: float = 0.03
    """and if no more than this share of the answers is wrong: neurons that are missing come
    first."""
    steps: Stop = field(default_factory=lambda: Stop(15, rtol=0.05, patience=2))
    """When the steps of the fit end."""
    damping: Damping = field(
        default_factory=lambda: Damping(first=1e-9, rises=100.0, falls=100.0, attempts=4)
    )
    """Of the last two layers' steps: most weights are right, and those that few inputs show move
    along directions as faint as the damping is."""
    max_fitted: int = 30
    """Neurons of the last hidden layer that are fitted alone, at most, where errors are small and
    the outputs tell whose they are."""
    max_repairs: int = 4
    """Searches after failed certificates."""
    n_wrong: int = 12
    n_near: int = 3
    """Wrong points that one round looks at, and right ones near each."""
    n_halvings: int = 14
    """Halvings of the way between them."""
    beside: float = 3.0
    """How much further to either side of what they leave a kink is looked for."""
    blank: float = 0.1
    """Where no answer changes around more than this share of the inputs, it is no evidence that no
    hyperplane seems to go on."""
    rough_tower: RoughTower = field(default_factory=RoughTower)
    """How three layers are fitted where answers lack the digits of float64."""

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """It divides differences of answers."""
        if noise.is_exact or (oracle.box is None and Law.of(noise) is Law.FLOAT32):
            return ""
        return (
            f"the answers lack the digits that deep networks need: float64 ones, not {noise.law}; "
            "method fit takes one hidden layer"
        )

    def search_of(self, oracle: Oracle, noise: NoiseFloor) -> Callable[..., Search]:
        """The search that the digits of a target's answers allow."""
        rough = partial(RoughTowerSearch, how=self.rough_tower)
        return super().search_of(oracle, noise) if noise.is_exact else rough

    def within(self, bound: float) -> "Deep":
        """The same where no coordinate of an input may be larger."""
        walk, mending_walk = (
            replace(walk, rays=replace(walk.rays, bound=bound))
            for walk in (self.layers.walk, self.layers.mending_walk)
        )
        outputs = replace(self.layers.outputs, bound=bound)
        layers = replace(
            self.layers, bound=bound, walk=walk, mending_walk=mending_walk, outputs=outputs
        )
        first, judging = replace(self.first, bound=bound), replace(self.judging, bound=bound)
        return replace(self, first=first, layers=layers, judging=judging)
