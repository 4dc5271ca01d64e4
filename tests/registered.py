"""The classes that a package holds, found by looking into its files, to compare with what its registry lists."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType


def classes_in(package: ModuleType, method: str) -> set[type]:
    """Public classes defined anywhere in a package that have such a method, contracts (protocols) left out."""
    modules = [package, *(import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__))]
    found = {
        made
        for module in modules
        for name, made in inspect.getmembers(module, inspect.isclass)
        if made.__module__ == module.__name__ and not name.startswith("_") and hasattr(made, method)
    }
    return {made for made in found if not getattr(made, "_is_protocol", False)}
