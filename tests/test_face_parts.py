"""Recognizers and generators: one contract for every entry of their registries."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

import numpy as np
import pytest

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")
pytest.importorskip("dlib")

from registered import classes_in  # noqa: E402
from small_stylegan2 import write_nvidia  # noqa: E402

from omokage import networks  # noqa: E402
from omokage.errors import InputError  # noqa: E402
from omokage.faces import recognize  # noqa: E402
from omokage.faces.recognize import RECOGNIZERS, recognizer  # noqa: E402
from omokage.networks.generator import FaceGenerator, load_generator  # noqa: E402
from omokage.networks.generators import GENERATORS, generator_choices  # noqa: E402
from omokage.networks.mobilestylegan import Generator  # noqa: E402
from omokage.networks.stylegan2 import StyleGAN2  # noqa: E402

PEOPLE = 5

# ------------------------------------------------------------------------------------------ recognizers


@pytest.fixture(scope="module")
def people(judges):
    """Two photos of each of five people who do not exist: as drawn, and smaller, darker and from the other side of a mirror."""
    from omokage.faces.crowd import drawn_faces
    from omokage.faces.find import Finder
    from omokage.faces.image import read_photo

    folder, finder, found = drawn_faces(PEOPLE, lambda *_: None), Finder(), []
    for number in range(PEOPLE):
        picture = np.asarray(read_photo(folder / f"{number:04d}.png"))
        other = cv2.resize(picture[:, ::-1], (320, 320), interpolation=cv2.INTER_AREA)
        pair = (picture, np.round(other * 0.75).astype(np.uint8))
        found.append([(each, finder.find(each)[0].points) for each in pair])
    return found


def apart(name, one, other):
    """How far two embeddings are, as the recognizer's entry says they are compared."""
    if "cosine" in RECOGNIZERS.entry(name).can:
        return 1.0 - float(one @ other)
    return float(np.linalg.norm(one - other))


def test_every_recognizer_says_how_it_is_compared():
    for entry in RECOGNIZERS.entries:
        assert len(entry.can & {"cosine", "distance"}) == 1, entry.name


@pytest.mark.parametrize("name", RECOGNIZERS)
def test_contract_of_recognizers(name, people):
    made, again = recognizer(name), recognizer(name)
    views = np.array([[made.embed(*view) for view in pair] for pair in people])
    picture, points = people[0][0]
    before = picture.copy(), points.copy()
    assert views.dtype == np.float32
    assert views.ndim == 3
    assert np.isfinite(views).all()
    if "cosine" in RECOGNIZERS.entry(name).can:
        np.testing.assert_allclose(np.linalg.norm(views, axis=2), 1.0, atol=1e-5)
    for other in (made, again):  # nothing is remembered from other faces
        np.testing.assert_array_equal(other.embed(picture, points), views[0, 0])
    assert (picture == before[0]).all()
    assert (points == before[1]).all()
    same = [apart(name, first, second) for first, second in views]
    others = [apart(name, views[i, a], views[j, b]) for i in range(PEOPLE) for j in range(i) for a in (0, 1) for b in (0, 1)]
    assert max(same) < min(others)


def test_dlibs_own_rule(people):
    made = recognizer("dlib")
    for pair in people:
        first, second = (made.embed(*view) for view in pair)
        assert apart("dlib", first, second) <= 0.6


def test_every_public_recognizer_is_listed():
    assert classes_in(recognize, "embed") == set(RECOGNIZERS.values())
    with pytest.raises(InputError, match="there is no recognizer 'eigenfaces': choose arcface, facenet, dlib"):
        recognizer("eigenfaces")


def test_an_evaluation_measures_with_every_recognizer():
    """The attack of each is named in the figures, and its numbers have a place in what is measured."""
    from omokage.evaluate.faces.figures import Measured, calibrations, figures

    rng, groups = np.random.default_rng(0), np.repeat(np.arange(4), 3)
    said = {name: rng.normal(size=(12, 8)).astype(np.float32) for name in ("inception", *RECOGNIZERS)}
    originals = Measured(found=np.ones(12, bool), **said)
    means = {name: each.reshape(4, 3, 8).mean(axis=1) for name, each in said.items()}
    found = figures(originals, Measured(found=np.ones(4, bool), **means), groups, np.arange(12), np.arange(12))
    assert list(found.attacks) == [entry.name for entry in RECOGNIZERS.able("cosine")]
    assert list(found.codes) == [entry.name for entry in RECOGNIZERS.able("distance")]
    assert list(calibrations(originals, np.arange(12) // 2)) == list(found.attacks)


# ------------------------------------------------------------------------------------------ generators


def small_mobile(folder):
    generator, source = Generator(6, (8, 16, 8, 4)), torch.Generator().manual_seed(0)
    for weight in generator.parameters():
        weight.normal_(0, 0.5, generator=source)
    return generator


def small_stylegan2(folder):
    write_nvidia(folder / "faces.pkl")
    return load_generator(folder / "faces.pkl")


SMALL = {"mobilestylegan": small_mobile, "stylegan2": small_stylegan2}


def test_every_generator_is_listed():
    modules = [import_module(f"omokage.networks.{each.name}") for each in pkgutil.iter_modules(networks.__path__)]
    found = {made for module in modules for _, made in inspect.getmembers(module, inspect.isclass)}
    assert {made for made in found if issubclass(made, FaceGenerator)} - {FaceGenerator} == set(GENERATORS.values())
    assert set(SMALL) == set(GENERATORS)


@pytest.mark.parametrize("name", GENERATORS)
def test_contract_of_generators(name, tmp_path):
    generator = SMALL[name](tmp_path)
    assert isinstance(generator, GENERATORS[name])
    layers, style = generator.styles
    assert sum(generator.groups) == layers
    w = generator.sample_w(3, seed=1)
    assert w.shape == (3, style)
    assert torch.equal(w, generator.sample_w(3, seed=1))
    assert not torch.equal(w, generator.sample_w(3, seed=2))
    torch.testing.assert_close(generator.sample_w(2, seed=1, truncation=0.0), generator.w_mean.expand(2, -1))
    drawn = generator(w)
    assert drawn.shape == (3, 3, generator.size, generator.size)
    torch.testing.assert_close(generator(w[:, None].expand(3, layers, style)), drawn)  # W+ of equal rows is W
    assert generator(w, exit=8).shape[2:] == (8, 8)
    (pictures,) = generator.sample(2, seed=1, size=generator.size // 2)
    assert pictures.shape == (2, generator.size // 2, generator.size // 2, 3)
    assert pictures.dtype == np.uint8
    wanted = w.clone().requires_grad_()
    generator(wanted).square().sum().backward()
    assert (wanted.grad.norm(dim=1) > 0).all()
    assert not any(weight.requires_grad for weight in generator.parameters())


@pytest.mark.parametrize("entry", GENERATORS.able("fetch"), ids=lambda entry: entry.name)
def test_generators_of_the_zoo_are_loaded_by_name(entry, fetch):
    fetch(entry.name)
    assert type(load_generator(entry.name)) is entry.load()


@pytest.mark.parametrize("entry", [each for each in GENERATORS.entries if each.files], ids=lambda entry: entry.name)
def test_generators_of_ones_own_are_loaded_from_files(entry, tmp_path):
    write_nvidia(tmp_path / "faces.pkl")
    (tmp_path / "faces.bin").write_bytes((tmp_path / "faces.pkl").read_bytes())  # the content decides, not the name
    for name in ("faces.pkl", "faces.bin"):
        assert type(load_generator(tmp_path / name)) is StyleGAN2
    for name in (entry.name, "biggan", tmp_path / "nothing.pkl"):
        with pytest.raises(InputError, match=r"give mobilestylegan, or the file of a StyleGAN2 \(\.pkl, \.pt\)$"):
            load_generator(name)
    assert generator_choices() == "mobilestylegan, or the file of a StyleGAN2 (.pkl, .pt)"
