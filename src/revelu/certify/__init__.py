"""Certificates, by fresh queries only."""

from revelu.certify.certificate import CONFIDENCE, certify
from revelu.certify.examination import Examination, examine
from revelu.certify.given import examine_given
from revelu.certify.tolerances import tolerances

__all__ = ["CONFIDENCE", "Examination", "certify", "examine", "examine_given", "tolerances"]
