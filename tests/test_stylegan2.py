"""StyleGAN2: its parts in use; that its pictures are the network's, ``test_checkpoints`` shows for both layouts."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from small_stylegan2 import STYLE, Z, check_against_reference, reference_mapping, write_nvidia  # noqa: E402

from omokage.errors import InputError  # noqa: E402
from omokage.networks.checkpoints import read_generator  # noqa: E402
from omokage.networks.stylegan2 import StyleGAN2  # noqa: E402


@pytest.fixture
def small(tmp_path):
    write_nvidia(tmp_path / "faces.pkl")
    return read_generator(tmp_path / "faces.pkl")


def test_maps_are_clamped_where_the_network_was(tmp_path):
    state = write_nvidia(tmp_path / "faces.pkl", clamp=0.5)
    found = read_generator(tmp_path / "faces.pkl")
    check_against_reference(found, state, clamp=0.5)
    assert found(torch.randn(2, STYLE), exit=8).abs().max() == 0.5


def test_mean_style_is_estimated_where_the_file_has_none(tmp_path):
    state = write_nvidia(tmp_path / "faces.pkl", lambda root: root.mapping._buffers.pop("w_avg"))
    found = read_generator(tmp_path / "faces.pkl")
    w = reference_mapping(state, torch.randn(20_000, Z))
    torch.testing.assert_close(found.w_mean, w.mean(0), atol=0.06, rtol=0)
    torch.testing.assert_close(found.w_std, w.std(0), atol=0, rtol=0.1)
    torch.testing.assert_close(found.w_norm, (w - w.mean(0)).norm(dim=1).mean(), atol=0, rtol=0.05)


def test_gradients_reach_every_row_of_styles_and_no_weight(small):
    w = small.w_mean.repeat(2, small.styles[0], 1).requires_grad_()
    small(w).square().sum().backward()
    assert (w.grad.norm(dim=2) > 0).all()
    assert not any(weight.requires_grad or weight.grad is not None for weight in small.parameters())


def test_gradient_is_the_slope(small):
    small = small.double()
    w = torch.randn(1, small.styles[0], STYLE, dtype=torch.double, generator=torch.Generator().manual_seed(2), requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: small(w)[0, :, 3, 5:7], w)


def test_sampling(small):
    assert (small.styles[0], small.size, small.synthesis.styles) == (6, 16, (6, STYLE))
    assert torch.equal(small.sample_w(3, 7), small.sample_w(3, 7))
    assert not torch.equal(small.sample_w(3, 7), small.sample_w(3, 8))
    torch.testing.assert_close(small.sample_w(2, 7, truncation=0), small.w_mean.expand(2, -1))
    batches = list(small.sample(3, 7, size=8, batch=2))
    assert [batch.shape for batch in batches] == [(2, 8, 8, 3), (1, 8, 8, 3)]
    image = small(small.sample_w(3, 7)).clamp(-1, 1)[2]
    expected = image.unflatten(1, (8, 2)).unflatten(3, (8, 2)).mean((2, 4)).permute(1, 2, 0)
    np.testing.assert_allclose(batches[1][0], (expected + 1) * 127.5, atol=0.51)


@pytest.mark.parametrize(
    "call",
    [
        lambda net: net(torch.zeros(1, 5, STYLE)),
        lambda net: net(torch.zeros(1, STYLE + 1)),
        lambda net: net(torch.zeros(1, STYLE), exit=32),
        lambda net: net.sample_w(0, 1),
        lambda net: net.sample_w(1, 1, truncation=2),
        lambda net: net.sample(1, 1, size=5),
    ],
)
def test_wrong_calls_say_so(small, call):
    with pytest.raises(InputError):
        call(small)


def test_1024_pixels_have_18_rows():
    with torch.device("meta"):
        net = StyleGAN2()
        image = net(torch.zeros(1, 18, 512))
    assert (net.styles[0], math.prod(net.synthesis.styles), net.size, image.shape) == (18, 9216, 1024, (1, 3, 1024, 1024))
    assert sum(weight.numel() for weight in net.parameters()) == 30_370_060  # config F, mapping included
