"""Tables: reading, writing, column roles, and mixed columns as a matrix."""

from __future__ import annotations

from .read import read_table
from .roles import Roles
from .table import Table

__all__ = ["Roles", "Table", "read_table"]
