"""Certificates, by fresh queries only."""

from revelu.certify.certificate import certify
from revelu.certify.examination import Examination, examine, examine_given

__all__ = ["Examination", "certify", "examine", "examine_given"]
