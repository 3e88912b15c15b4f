"""Certificates, by fresh queries only."""

from revelu.verify.certificate import CONFIDENCE, certify
from revelu.verify.examination import Examination, examine
from revelu.verify.tolerances import tolerances

__all__ = ["CONFIDENCE", "Examination", "certify", "examine", "tolerances"]
