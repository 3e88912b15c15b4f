"""Certificates, by fresh queries only."""

from revelu.certify.certificate import Standard, certify
from revelu.certify.examination import Examination, examine, examine_given, examine_rows

__all__ = [
    "Examination",
    "Standard",
    "certify",
    "examine",
    "examine_given",
    "examine_rows",
]
