"""The black box: counts, budgets, batches, box, noise floor, degradations."""

from revelu.oracle.arguments import checked_inputs, whole_number
from revelu.oracle.degradations import Float32, Labels, Noisy, Rounded, degrade
from revelu.oracle.journal import Journal
from revelu.oracle.ledger import PHASES, Ledger
from revelu.oracle.log_ratios import log_ratios
from revelu.oracle.noise import NoiseFloor, measure_noise
from revelu.oracle.oracle import BATCH_ROWS, Oracle

__all__ = [
    "BATCH_ROWS",
    "PHASES",
    "Float32",
    "Journal",
    "Labels",
    "Ledger",
    "NoiseFloor",
    "Noisy",
    "Oracle",
    "Rounded",
    "checked_inputs",
    "degrade",
    "log_ratios",
    "measure_noise",
    "whole_number",
]
