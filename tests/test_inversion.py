"""Inversion on a generator small enough to be random: the loss falls, the background does not count, a stop is no loss."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("cv2")

from omokage.errors import MapError  # noqa: E402
from omokage.faces.maps.inversion import Inversion, State, fit_head, principal_axes  # noqa: E402
from omokage.faces.portrait import PARTS, Portrait  # noqa: E402
from omokage.networks.mobilestylegan import Generator  # noqa: E402
from omokage.networks.vgg import VGG  # noqa: E402

STYLE, CHANNELS, EXIT = 6, (8, 16, 8, 8), 16  # 64 px, the loss sees 32


def drawn(seed=0):
    """A generator and a VGG with random weights; depthwise convolutions soften little, so that a map shows the picture."""
    torch.manual_seed(seed)
    generator = Generator(STYLE, CHANNELS)
    for name, parameter in generator.synthesis.named_parameters():
        values = torch.randn(parameter.shape)
        if name.endswith(("modulation.bias", "up.bias")):
            values = torch.ones(parameter.shape)
        elif "bias" in name or "noise" in name:
            values = 0.1 * values
        elif name.endswith("depthwise"):
            values = 0.1 * values
            values[:, :, 1, 1] = 1
        elif name.endswith(("modulation.weight", "up.weight")):
            values = 0.4 * values
        elif name != "constant":
            values = values * 1.3 / np.sqrt(parameter[0].numel())
        parameter.copy_(values)
    for parameter in generator.mapping.parameters():
        parameter.copy_(torch.nn.init.orthogonal_(torch.empty(STYLE, STYLE)) if parameter.ndim == 2 else 0 * parameter)
    vgg = VGG(((4, 4), (4, 4), (4, 4, 4), (4, 4, 4)))
    for parameter in vgg.layers.parameters():
        parameter.copy_(torch.randn(parameter.shape) / 3)
    return generator, vgg


def portrait(generator, w):
    image = generator(w[None])[0].clamp(-1, 1).permute(1, 2, 0).numpy()
    parts = np.zeros((*image.shape[:2], len(PARTS)), np.uint8)
    parts[8:, 8:56, PARTS.index("face")] = 255
    return Portrait(np.round((image + 1) * 127.5).astype(np.uint8), np.zeros((68, 2)), parts)


@pytest.fixture(scope="module")
def scene():
    with torch.no_grad():
        generator, vgg = drawn()
        layers = generator.synthesis.styles[0]
        random = torch.Generator().manual_seed(1)
        w = torch.randn(2, layers, STYLE, generator=random)
        w[:, 7:] = 0  # beyond the map of 16 px, where the look has no gradient
        head = fit_head(generator, [0.5 * torch.randn(1, layers, STYLE, generator=random) for _ in range(8)], EXIT)
        portraits = [portrait(generator, one) for one in w]
    return generator, vgg, head, portraits, State.at(torch.zeros(2, layers, STYLE))


def test_the_loss_falls(scene):
    generator, vgg, head, portraits, start = scene
    end = Inversion(generator, vgg, head, exit=EXIT, rate=0.02, keep=0.0, patience=50).run(portraits, start, 30)
    assert end.losses.shape[1] == 2
    assert (end.losses[-1] < 0.9 * end.losses[0]).all()


def test_pixels_alone_do(scene):
    generator, _, head, portraits, start = scene
    end = Inversion(generator, None, head, exit=EXIT, keep=0.0, patience=50).run(portraits, start, 20)
    assert (end.losses[-1] < 0.9 * end.losses[0]).all()


def test_the_look_is_exact_where_it_was_measured(scene):
    generator, vgg, head, _, start = scene
    inversion = Inversion(generator, vgg, head, exit=EXIT)
    w = start.w + 0.3
    true = torch.nn.functional.avg_pool2d(generator(w).clamp(-1, 1), 2)
    torch.testing.assert_close(inversion.look(w) + inversion._unseen(w), true, atol=1e-5, rtol=0)


def test_the_head_is_the_best_linear_look(scene):
    generator, vgg, _, _, start = scene
    w = torch.randn(1, *start.w.shape[1:], generator=torch.Generator().manual_seed(5))
    true = torch.nn.functional.avg_pool2d(generator(w).clamp(-1, 1), 2)
    head = fit_head(generator, [w], EXIT)
    best, worse, constant = head, head.clone(), torch.zeros_like(head)
    worse[:, 0] += 0.05
    constant[:, -1] = torch.nn.functional.pixel_unshuffle(true, 2).mean((0, 2, 3))
    apart = [(Inversion(generator, vgg, each, exit=EXIT).look(w) - true).square().mean() for each in (best, worse, constant)]
    assert apart[0] < apart[1]
    assert apart[0] < 0.9 * apart[2]


def test_steps_are_taken_in_units_of_the_styles_deviation(scene):
    generator = scene[0]
    axes = principal_axes(generator)
    z = torch.randn(20_000, STYLE, generator=torch.Generator().manual_seed(2))
    spread = torch.cov(generator.mapping(z).T)
    torch.testing.assert_close(axes @ axes.T, spread, atol=0.12 * float(spread.diagonal().max()), rtol=0)
    between = axes.T @ axes
    torch.testing.assert_close(between, torch.diag(between.diagonal()), atol=1e-4, rtol=0)


def test_going_on_is_as_good_as_not_stopping(scene):
    generator, vgg, head, portraits, start = scene
    inversion = Inversion(generator, vgg, head, exit=EXIT, refresh=3)
    whole = inversion.run(portraits, start, 6)
    parts = inversion.run(portraits, inversion.run(portraits, start, 3), 3)
    assert torch.equal(whole.w, parts.w)
    np.testing.assert_array_equal(whole.losses, parts.losses)


def test_the_background_does_not_count(scene):
    generator, vgg, head, portraits, start = scene
    inversion = Inversion(generator, vgg, head, exit=EXIT)
    crop = portraits[0].crop.copy()
    crop[:8] = 255 - crop[:8]
    crop[:, 56:] = 7
    other = Portrait(crop, portraits[0].points, portraits[0].parts)
    one, two = (inversion.run([p, portraits[1]], start, 3) for p in (portraits[0], other))
    assert torch.equal(one.w, two.w)


def test_faces_of_a_batch_do_not_touch(scene):
    generator, vgg, head, portraits, start = scene
    inversion = Inversion(generator, vgg, head, exit=EXIT)
    alone = inversion.run(portraits[:1], State.at(start.w[:1]), 3)
    torch.testing.assert_close(inversion.run(portraits, start, 3).w[:1], alone.w, atol=1e-4, rtol=0)


def test_a_face_that_no_longer_gets_better_rests(scene):
    generator, vgg, head, portraits, start = scene
    inversion = Inversion(generator, vgg, head, exit=EXIT, rate=1e-7, patience=2)
    end = inversion.run(portraits, start, 20)
    assert len(end.losses) == 3
    assert end.resting.all()


def test_the_start_is_dear(scene):
    generator, vgg, head, portraits, start = scene
    free, held = (Inversion(generator, vgg, head, exit=EXIT, keep=keep).run(portraits, start, 15) for keep in (0.0, 10.0))
    assert (held.w - start.w).norm() < 0.5 * (free.w - start.w).norm()


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"keep": -1.0}, {"patience": 0}, {"refresh": 0}])
def test_wrong_parameters_are_named(scene, wrong):
    with pytest.raises(MapError, match=next(iter(wrong))):
        Inversion(scene[0], scene[1], scene[2], **wrong)


def test_one_start_for_each_portrait(scene):
    with pytest.raises(MapError, match="1 portraits, but 2"):
        Inversion(*scene[:3], exit=EXIT).run(scene[3][:1], scene[4], 1)
