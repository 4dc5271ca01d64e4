"""Evaluation: what an attacker and an analyst can still do with a release, each figure beside its baseline.

Every evaluator takes a :class:`Linked` first, originals and release joined by :func:`link` or :func:`link_files`, and everything
else by name.
"""

from __future__ import annotations

from ..base.intervals import Risk
from .attacks import ATTACKS, Attack
from .disclosure import Disclosure, disclosure
from .drift import Drift, drift
from .evaluation import Evaluation, evaluate
from .linked import Linked, link, link_files
from .reidentification import Reidentification, reidentify
from .rulers import Ruler
from .strongest import Attacks, attack_all
from .utility import MODELS, Utility, hold_out, utility
from .view import View

__all__ = [
    "ATTACKS",
    "MODELS",
    "Attack",
    "Attacks",
    "Disclosure",
    "Drift",
    "Evaluation",
    "Linked",
    "Reidentification",
    "Risk",
    "Ruler",
    "Utility",
    "View",
    "attack_all",
    "disclosure",
    "drift",
    "evaluate",
    "hold_out",
    "link",
    "link_files",
    "reidentify",
    "utility",
]
