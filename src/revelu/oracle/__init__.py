"""The black box: counts, budgets, batches, box, noise floor, degradations."""

from revelu.oracle.arguments import agreed_dim_in, whole_number
from revelu.oracle.checks import checked_inputs
from revelu.oracle.degradations import (
    Degradation,
    Float32,
    Headed,
    InFloat32,
    Labels,
    Noisy,
    Normalised,
    OnGrid,
    Rounded,
    RoundedLogits,
    TopProbability,
    degrade,
)
from revelu.oracle.domain import Domain
from revelu.oracle.journal import Journal
from revelu.oracle.ledger import PHASES, Ledger
from revelu.oracle.log_ratios import log_ratios, softmax
from revelu.oracle.measuring import measure_noise
from revelu.oracle.noise import NoiseFloor
from revelu.oracle.oracle import BATCH_ROWS, Ask, Oracle

__all__ = [
    "BATCH_ROWS",
    "PHASES",
    "Ask",
    "Degradation",
    "Domain",
    "Float32",
    "Headed",
    "InFloat32",
    "Journal",
    "Labels",
    "Ledger",
    "NoiseFloor",
    "Noisy",
    "Normalised",
    "OnGrid",
    "Oracle",
    "Rounded",
    "RoundedLogits",
    "TopProbability",
    "agreed_dim_in",
    "checked_inputs",
    "degrade",
    "log_ratios",
    "measure_noise",
    "softmax",
    "whole_number",
]
