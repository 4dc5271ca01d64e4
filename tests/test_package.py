"""The package itself: public names, light imports, one-way imports, and that the docs do not lie."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import omokage

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "omokage"

# Imports point downwards: a folder may import itself and those above it in this list. The method imports no medium, and no
# medium imports another. What stands in a registry is named by text and imported when it is used.
LAYERS = [
    {"errors"},
    {"base"},
    {"networks", "release"},
    {"method"},
    {"tables", "faces"},
    {"learn"},
    {"evaluate"},
    {"report"},
    {"cli"},
]


def level(part: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def imports_of(path: Path) -> set[str]:
    """Parts of this package that a module imports."""
    found = set()
    depth = len(path.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level == depth:
                found |= {module.split(".")[0]} if module else {alias.name for alias in node.names}
            elif module.startswith("omokage"):
                found |= {module.split(".")[1]} if "." in module else set()
    return {name for name in found if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()}


def test_imports_point_one_way():
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imports_of(path):
            allowed = other == part or level(other) < level(part)
            assert allowed, f"{path.relative_to(PACKAGE)} imports {other}"


def test_a_medium_knows_maps_and_means_but_neither_groupers_nor_the_pipeline():
    """A group photo is no medium: it looks for the nearest group of a crowd itself."""
    for folder in ("tables", "faces"):
        for path in (PACKAGE / folder).rglob("*.py"):
            found = {
                node.module.split("method.")[1].split(".")[0]
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.ImportFrom) and node.level and (node.module or "").startswith("method.")
            }
            assert found <= {"maps", "fitting", "unify"} or path.name == "group_photo.py", f"{path.name} imports {found}"


def test_no_file_says_nothing_by_its_name():
    vague = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert not [p for p in PACKAGE.rglob("*.py") if p.name in vague]


def test_public_names():
    assert set(omokage.__all__) == {
        "Anonymizer", "Cells", "Certificate", "LDiversity", "Laplace", "MDAV", "Mondrian", "Release", "Roles", "TCloseness",
        "__version__", "read_table", "verify",
    }  # fmt: skip
    for name in omokage.__all__:
        assert getattr(omokage, name) is not None
    with pytest.raises(AttributeError):
        _ = omokage.nothing


def test_importing_is_light_and_quick():
    """Under 0.3 s of processor time (best of three, so that a busy machine does not decide), without the heavy libraries."""
    code = (
        "import sys, time; t = time.process_time(); import omokage; t = time.process_time() - t; "
        "print(t); print([m for m in ('torch', 'dask', 'matplotlib', 'sklearn', 'numba', 'polars') if m in sys.modules])"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(3)
    ]
    assert min(float(r[0]) for r in runs) < 0.3
    assert runs[0][1] == "[]"


def test_anonymizing_a_table_needs_neither_torch_nor_matplotlib():
    code = (
        "import sys, numpy as np; from omokage import Anonymizer, Mondrian; from omokage.method.maps import PCA; "
        "import omokage.cli; "
        "Anonymizer(Mondrian(2), synthesis_map=PCA(1)).release(np.random.rand(9, 3)); "
        "print([m for m in ('torch', 'dask', 'matplotlib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_version_is_the_packages():
    from importlib.metadata import version

    assert omokage.__version__ == version("omokage")
