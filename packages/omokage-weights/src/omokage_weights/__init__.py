"""Trained weights for two of Omokage's face maps; ``attributes.md`` and ``encoder.md`` say what they learned from.

Nothing here runs: ``omokage`` finds the files through ``importlib.resources``.
"""

__version__ = "1.0.0"
