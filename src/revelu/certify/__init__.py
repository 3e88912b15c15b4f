"""Certificates, by fresh queries only."""

from revelu.certify.certificate import FACTOR, MOST_FAILURES, certify
from revelu.certify.examination import Examination, examine, examine_given, examine_rows

__all__ = [
    "FACTOR",
    "MOST_FAILURES",
    "Examination",
    "certify",
    "examine",
    "examine_given",
    "examine_rows",
]
