"""Certificates: what fresh queries say of a recovered network."""

from revelu.verify.certificate import CONFIDENCE, Examination, certify, examine, tolerances

__all__ = ["CONFIDENCE", "Examination", "certify", "examine", "tolerances"]
