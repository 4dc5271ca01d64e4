"""Evaluation: what an attacker and an analyst can still do with a release, each figure beside its baseline."""

from __future__ import annotations

from ..base.intervals import Risk
from .attacks import Attacks, attack_all
from .disclosure import Disclosure, disclosure
from .drift import Drift, drift
from .linked import Linked, link, link_files
from .reidentification import Reidentification, reidentify
from .rulers import RULERS
from .utility import MODELS, Utility, utility

__all__ = [
    "MODELS",
    "RULERS",
    "Attacks",
    "Disclosure",
    "Drift",
    "Linked",
    "Reidentification",
    "Risk",
    "Utility",
    "attack_all",
    "disclosure",
    "drift",
    "link",
    "link_files",
    "reidentify",
    "utility",
]
