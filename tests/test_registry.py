"""Registries: names, options and users' own classes, and that listing imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from omokage.base.registry import Entry, Registry
from omokage.errors import InputError, MapError
from omokage.faces.maps import FACE_MAPS
from omokage.faces.recognize import RECOGNIZERS
from omokage.method import UNIFIERS
from omokage.method.grouping import GROUPERS, parse_grouper
from omokage.method.maps import MAPS, PCA, parse_map
from omokage.method.maps.parts import Part, rebuild, rebuild_map
from omokage.networks.generators import GENERATORS

REGISTRIES = (MAPS, GROUPERS, UNIFIERS, FACE_MAPS, RECOGNIZERS, GENERATORS)

THEIRS = '''
"""A stranger's module."""
import numpy as np

class Whiten:
    def __init__(self, components=2, eps=0.0, name="none"):
        if components < 1:
            raise ValueError("components must be\\nat least 1")
        self.components, self.eps, self.name = components, eps, name
    def fit(self, x): return self
    def transform(self, x): return x
    def inverse_transform(self, z): return z

class Halves:
    def __init__(self, k, first=0): self.k, self.first = k, first
    def fit_predict(self, z): return np.arange(len(z)) * 2 // len(z)

def run(command): raise SystemExit("a function of the module was called")
NUMBER = 3
'''


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A module ``theirs`` that can be imported, and one that cannot."""
    (tmp_path / "theirs.py").write_text(THEIRS)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "wrong.py").write_text("class (:\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("theirs", "broken", "wrong"):
        sys.modules.pop(name, None)


def small(**options):
    return Registry(
        "box",
        Entry("plain", "builtins:dict", "Nothing."),
        Entry("sized", "builtins:dict", "One number.", argument="size", required=True),
        Entry(
            "rich", "builtins:dict", "All.", title="Rich", argument="size", words={"big": {"size": 9, "deep": True}},
            options={"width": "wide"}, can=frozenset({"shine"}),
        ),
        **options,
    )  # fmt: skip


def test_names_words_numbers_and_options():
    boxes = small()
    assert boxes.make("plain") == {}
    assert boxes.make("sized:50") == {"size": 50}
    assert boxes.make("rich:7,width=3", color="red") == {"size": 7, "wide": 3, "color": "red"}
    assert boxes.make("rich:big") == {"size": 9, "deep": True}
    assert boxes.make(" rich ") == {}
    assert boxes.choices == "plain, sized:N, rich[:N,big,width=N]"
    assert [entry.title for entry in boxes.entries] == ["plain", "sized", "Rich"]
    assert [entry.name for entry in boxes.able("shine")] == ["rich"]
    assert boxes.able("fly") == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("crate", r"there is no box 'crate': choose plain, sized:N, rich.*, or give your own as package.module:Class"),
        ("crate:3", "there is no box 'crate'"),
        ("crate:Wood", "there is no box 'crate'"),  # no module of that name either
        ("", "there is no box ''"),
        ("sized", "the box sized needs a number: write sized:N, for example sized:50"),
        ("sized:", "needs a number"),
        ("sized:big", "the box sized does not take 'big': write sized:N, where N is a whole number"),
        ("sized:-1", "does not take '-1'"),
        ("sized:3,4", "has one option twice"),
        ("rich:big,7", "has one option twice"),
        ("rich:width=x", "does not take 'width=x'"),
        ("rich:height=3", "does not take 'height=3'"),
        ("plain:3", "the box plain does not take '3': write plain$"),
    ],
)
def test_wrong_names_and_options(text, words):
    with pytest.raises(InputError, match=words):
        small().make(text)


def test_a_kind_may_take_no_classes_of_the_users_own():
    with pytest.raises(InputError, match=r"there is no box 'builtins': choose plain, sized:N, rich\[:N,big,width=N\]$"):
        small(own=False).make("builtins:list")
    assert not small(own=False).is_own("builtins:list")


def test_a_kind_without_methods_takes_functions(theirs):
    boxes = small()
    assert boxes.class_of("rich:big") is dict
    assert boxes.class_of("theirs:run").__name__ == "run"
    with pytest.raises(InputError, match="theirs:NUMBER is not a box: give a class or a function"):
        boxes.class_of("theirs:NUMBER")
    with pytest.raises(InputError, match="there is no box 'crate'"):
        boxes.class_of("crate")


def test_as_a_mapping_it_goes_from_names_to_classes():
    assert MAPS["pca"] is PCA
    assert MAPS.get("umap") is None
    assert "pca" in MAPS
    assert list(GROUPERS) == ["mondrian", "mdav", "cells"]
    assert MAPS.name_of(PCA(3)) == MAPS.name_of(PCA) == "pca"
    assert MAPS.name_of(Entry) == "omokage.base.registry:Entry"


def test_a_class_of_ones_own(theirs):
    made = parse_map("theirs:Whiten:3,eps=0.5,name=zca")
    assert (made.components, made.eps, made.name) == (3, 0.5, "zca")
    assert parse_map("theirs:Whiten").components == 2
    chain = parse_map("theirs:Whiten:eps=1e+3+pca:5+theirs:Whiten")
    assert [name for name, _ in chain.steps] == ["Whiten-1", "pca", "Whiten-3"]
    assert chain.steps[0][1].eps == 1000.0
    grouper = parse_grouper("theirs:Halves:first=1", 7)
    assert (grouper.k, grouper.first) == (7, 1)
    assert MAPS.is_own("theirs:Whiten")
    assert not MAPS.is_own("pca:3")
    assert not GROUPERS.is_own("mondrian:variance")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("theirs:Missing", r"the map theirs:Missing cannot be imported: AttributeError"),
        ("theirs.part:Whiten", r"the map theirs\.part:Whiten cannot be imported: ModuleNotFoundError"),
        ("broken:Whiten", r"the map broken:Whiten cannot be imported: ModuleNotFoundError: No module named 'nothing_of"),
        ("wrong:Whiten", r"the map wrong:Whiten cannot be imported: SyntaxError"),
        ("theirs:Whiten:0", r"the map theirs:Whiten does not take these options: ValueError: components must be$"),
        ("theirs:Whiten:size=3", r"does not take these options: TypeError"),
        ("theirs:Halves:3", r"theirs:Halves is not a map: give a class that has fit and transform"),
        ("theirs:run:ls", r"theirs:run is not a map"),  # a function is not even called
        ("theirs:NUMBER", r"theirs:NUMBER is not a map"),
    ],
)
def test_a_class_of_ones_own_that_does_not_work(theirs, text, words):
    with pytest.raises(MapError, match=words):
        parse_map(text)


@pytest.mark.parametrize("name", ["os:system", "theirs:Whiten", "antigravity:Whiten"])
def test_a_certificate_never_causes_an_import(theirs, name):
    """A certificate comes from outside: what it names is looked up among our own parts and nowhere else."""
    before = set(sys.modules)
    with pytest.raises(MapError, match="is not built in"):
        rebuild_map([Part(name)])
    with pytest.raises(MapError, match="is not built in"):
        rebuild(Part(name), GROUPERS)
    with pytest.raises(MapError, match="is not built in"):
        rebuild(Part(name), FACE_MAPS)
    assert GROUPERS.get(name) is None
    assert name not in UNIFIERS
    assert set(sys.modules) == before


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_every_entry_is_whole(registry):
    assert len(registry) == len(registry.entries) > 0
    for entry in registry.entries:
        made = registry[entry.name]
        assert entry.where == f"{made.__module__}:{made.__qualname__}"  # where it is defined, so that its name is found again
        assert registry.name_of(made) == entry.name
        assert entry.help
        assert "\n" not in entry.help
        assert all(hasattr(made, method) for method in registry.methods)


def test_listing_imports_nothing_heavy():
    code = """
import sys
from omokage.faces.maps import FACE_MAPS
from omokage.faces.recognize import RECOGNIZERS
from omokage.method import UNIFIERS
from omokage.method.grouping import GROUPERS
from omokage.method.maps import MAPS
from omokage.networks.generators import GENERATORS
for each in (MAPS, GROUPERS, UNIFIERS, FACE_MAPS, RECOGNIZERS, GENERATORS):
    each.choices, list(each), each.able("cosine")
print([m for m in ("numpy", "scipy", "sklearn", "numba", "polars", "torch", "cv2", "dlib") if m in sys.modules])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
