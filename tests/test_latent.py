"""LATENT: its encoder learns from samples, its spread is a function of the mean alone, what it decodes has the right form."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("cv2")
pytest.importorskip("dlib")
pytest.importorskip("onnxruntime")

from omokage import networks  # noqa: E402
from omokage.base.parts import part_of  # noqa: E402
from omokage.errors import InputError, MapError, ModelError  # noqa: E402
from omokage.faces.maps import FACE_MAPS, Networks, make_face_map  # noqa: E402
from omokage.faces.maps.encoder import BLOCKS, WEIGHTS, Encoder, describe, widen  # noqa: E402
from omokage.faces.maps.inversion import Inversion, fit_head  # noqa: E402
from omokage.faces.maps.latent import Latent  # noqa: E402
from omokage.faces.portrait import PARTS, Portrait  # noqa: E402
from omokage.faces.training import encoder as encoder_training  # noqa: E402
from omokage.faces.training.encoder import learn, train_encoder  # noqa: E402
from omokage.faces.training.encoder_samples import SIDE, Sampler, as_photo, draw_styles  # noqa: E402
from omokage.networks.mobilestylegan import Generator  # noqa: E402
from omokage.networks.stylegan2 import StyleGAN2  # noqa: E402

STYLE = 4
GROUPS = (7, 6, 10)  # layers of MobileStyleGAN up to 16 px, up to 64 px, beyond
NEEDED = ("mobilestylegan", "arcface", "scrfd", "dlib-68", "bisenet")


class Recognizer:
    def embed(self, picture, points):
        return np.resize(picture.mean((0, 1)) / 255, 512).astype(np.float32)


@pytest.fixture(scope="module")
def tiny():
    """A generator of 23 layers and 1024 px, but four channels; an encoder of random weights."""
    torch.manual_seed(0)
    generator = Generator(STYLE, (4,) * 8)
    for parameter in generator.synthesis.parameters():
        parameter.copy_(torch.rand(parameter.shape) - 0.3)
    generator.w_mean.copy_(torch.tensor([0.5, -0.25, 0.0, 1.0]))
    encoder = Encoder(rank=3, style=STYLE)
    encoder.into.weight.copy_(torch.randn(encoder.into.weight.shape) / 50)
    encoder.out.weight.copy_(torch.randn(encoder.out.weight.shape))
    encoder.norm.copy_(torch.tensor([2.0, 2.0, 1.0]))
    return generator, encoder


def latent(tiny, **settings):
    made = Latent(64, generator=tiny[0], encoder=tiny[1], **settings)
    made.__dict__["_recognizer"] = Recognizer()
    return made


def portrait(seed=0, size=64):
    random = np.random.default_rng(seed)
    crop = random.integers(0, 256, (size, size, 3), np.uint8)
    parts = np.zeros((size, size, len(PARTS)), np.uint8)
    parts[size // 4 :, size // 4 : -size // 4, 0] = 255
    return Portrait(crop, random.uniform(0, size, (68, 2)), parts)


def test_there_and_back_have_the_contract_of_a_face_map(tiny):
    made = latent(tiny).fit([])
    vector = made.encode(portrait())
    assert (vector.shape, vector.dtype) == ((23 * STYLE,), np.float32)
    face = made.decode(vector)
    assert (face.shape, face.dtype) == ((64, 64, 3), np.uint8)
    np.testing.assert_array_equal(face, made.decode(vector))
    assert face.std() > 0


def test_several_at_once_are_as_one_by_one(tiny):
    made, two = latent(tiny), [portrait(0), portrait(1)]
    np.testing.assert_allclose(made.transform(two), [made.encode(one) for one in two], atol=1e-5)


def test_the_background_is_not_seen():
    one = portrait()
    crop = one.crop.copy()
    crop[: one.size // 4] = 0
    seen, other = (describe(each, Recognizer()) for each in (one, Portrait(crop, one.points, one.parts)))
    np.testing.assert_array_equal(seen[512:], other[512:])
    assert len(seen) == sum(BLOCKS.values())


def test_equal_means_give_equal_faces_whoever_the_members_are(tiny):
    made = latent(tiny)
    random = np.random.default_rng(0)
    a, b, c = (random.integers(-64, 64, 23 * STYLE).astype(np.float32) / 32 for _ in range(3))
    one, other = np.mean([a, b], 0), np.mean([(a + b) / 2 + c, (a + b) / 2 - c], 0)
    np.testing.assert_array_equal(made.decode(one), made.decode(other))


def test_spread_lengthens_each_group_to_a_single_faces_norm_and_no_further(tiny):
    mean = tiny[0].w_mean.numpy()
    apart = np.repeat(np.array([[1.0, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 3.0, 0]], np.float32), GROUPS, 0)
    for spread, norms in ((0.0, (1, 0.5, 3)), (1.0, (2, 1.5, 3)), (0.5, (np.sqrt(2), 1, 3))):  # 4 is past the cap of 3
        out = latent(tiny, spread=spread).widened((apart + mean).ravel()).reshape(23, STYLE) - mean
        np.testing.assert_allclose(np.linalg.norm(out, axis=1)[[0, 7, 13]], norms, rtol=1e-5)
        np.testing.assert_allclose(
            out / np.linalg.norm(out, axis=1, keepdims=True), apart / apart.sum(1, keepdims=True), atol=1e-6
        )


def test_the_mean_style_itself_has_nothing_to_lengthen(tiny):
    mean = np.tile(tiny[0].w_mean.numpy(), 23)
    np.testing.assert_allclose(latent(tiny).widened(mean), mean, atol=1e-6)


def test_deviations_are_lengthened_from_the_centre(tiny):
    random = np.random.default_rng(0)
    centre, step = random.standard_normal((2, 23 * STYLE)).astype(np.float32) / 20
    made = latent(tiny, centre=centre, spread=1.0)
    np.testing.assert_allclose(made.widened(centre), centre, atol=1e-6)
    longer = made.widened(centre + step) - centre
    np.testing.assert_allclose(longer.reshape(23, STYLE)[0], 3 * step.reshape(23, STYLE)[0], atol=1e-5)


@pytest.mark.parametrize("wrong", [{"spread": 1.5}, {"steps": -1}, {"size": 100}])
def test_wrong_parameters_are_named(wrong):
    with pytest.raises(MapError, match=next(iter(wrong))):
        Latent(**wrong)


def test_a_vector_of_another_length_is_refused(tiny):
    with pytest.raises(MapError, match="23 × 4"):
        latent(tiny).decode(np.zeros(7, np.float32))


# ---------------------------------------------------------------------- another generator


@pytest.fixture(scope="module")
def papers():
    """A StyleGAN2 of 256 px with few channels, and an encoder for it, both random."""
    torch.manual_seed(1)
    generator = StyleGAN2((3,) * 7, STYLE, (STYLE,) * 2)
    for parameter in generator.parameters():
        parameter.copy_(torch.randn(parameter.shape))
    encoder = Encoder(rank=3, style=STYLE, groups=generator.groups)
    encoder.into.weight.copy_(torch.randn(encoder.into.weight.shape) / 50)
    encoder.out.weight.copy_(torch.randn(encoder.out.weight.shape))
    return generator, encoder


def test_layers_are_told_apart_by_the_size_of_their_maps(tiny, papers):
    assert tiny[0].groups == GROUPS
    assert papers[0].groups == (5, 4, 5)  # 4 px: 1; 8, 16 px: 2 each | 32, 64 px | 128, 256 px, and the last RGB
    for generator, _ in (tiny, papers):
        w = torch.zeros(1, *generator.styles)
        coarse, middle, _ = generator.groups
        for exit, inside in ((16, coarse), (64, coarse + middle)):
            moved = torch.cat([w, w])
            moved[1, inside:] = 3.0
            one, other = generator(moved, exit=exit)
            assert torch.equal(one, other)  # what comes later does not reach the map,
            moved[1, inside - 1] = 3.0
            one, other = generator(moved, exit=exit)
            assert not torch.equal(one, other)  # and the last of the group does


def test_the_papers_generator_makes_a_map_too(papers):
    generator, encoder = papers
    made = Latent(64, steps=2, generator=generator, encoder=encoder)
    head = fit_head(generator, [torch.randn(1, *generator.styles)], 64)
    made.__dict__ |= {"_recognizer": Recognizer(), "_inversion": Inversion(generator, None, head)}
    plain = Latent(64, generator=generator, encoder=encoder)
    plain.__dict__["_recognizer"] = Recognizer()
    vector = made.encode(portrait(size=256))
    assert vector.shape == (14 * STYLE,)
    assert (vector != plain.encode(portrait(size=256))).any()
    assert made.decode(vector).shape == (64, 64, 3)
    with pytest.raises(MapError, match="14 × 4"):
        made.decode(vector[:-1])


def test_an_encoder_belongs_to_its_generator(tiny, papers):
    with pytest.raises(MapError, match="another generator"):
        Latent(64, generator=papers[0], encoder=tiny[1]).fit([])
    with pytest.raises(MapError, match="256 pixels"):
        Latent(512, generator=papers[0], encoder=papers[1])


def test_a_generator_of_something_else_is_refused(papers, tmp_path):
    class Blind:
        def find(self, picture):
            assert picture.shape == (SIDE, SIDE, 3)
            return []

    sampler = Sampler(papers[0], tmp_path, 0)
    sampler._finder = Blind()
    with pytest.raises(InputError, match="no face was found"):
        sampler.shard(0)
    assert not list(tmp_path.iterdir())


def test_networks_of_ones_own_are_named_by_their_content(papers, tmp_path):
    papers[1].save(tmp_path / "encoder.safetensors")
    by_folder, by_file = Networks(encoder=tmp_path), Networks(encoder=tmp_path / "encoder.safetensors")
    assert by_folder == by_file
    recorded = part_of(make_face_map("latent", networks=by_folder), FACE_MAPS)
    assert recorded == part_of(make_face_map("latent", networks=by_file), FACE_MAPS)
    assert list(recorded.options) == ["encoder"]
    (tmp_path / "encoder.safetensors").write_bytes(b"other")
    assert part_of(make_face_map("latent", networks=by_file), FACE_MAPS) != recorded
    with pytest.raises(InputError, match="no file"):
        Networks(attributes=tmp_path / "none")
    with pytest.raises(InputError, match="needs its encoder"):
        Networks(generator=tmp_path / "encoder.safetensors")


# ---------------------------------------------------------------------- learning


def linear_world(number=400, looks=2, features=(6, 4, 8, 5), seed=0):
    """Descriptions that are a noisy linear view of the styles."""
    random = np.random.default_rng(seed)
    styles = random.standard_normal((number, 3, STYLE)).astype(np.float32) + 1
    view = random.standard_normal((3 * STYLE, sum(features)))
    seen = np.repeat((styles.reshape(number, -1) @ view)[:, None], looks, 1)
    return (seen + 0.3 * random.standard_normal(seen.shape)).astype(np.float16), styles, features


def test_the_encoder_learns_what_can_be_learned(tmp_path):
    seen, styles, features = linear_world()
    learned = learn(seen[:300], styles[:300], np.ones(STYLE), features, rank=12)
    assert min(learned.explained) > 0.8
    guess = learned.encoder(torch.from_numpy(seen[300:, 0].astype(np.float32))).numpy()
    error = np.linalg.norm(guess - np.repeat(styles[300:], GROUPS, 1), axis=2).mean()
    assert error < 0.5 * np.linalg.norm(styles[300:] - 1, axis=2).mean()
    learned.encoder.save(tmp_path / "encoder.safetensors")
    again = Encoder.load(tmp_path / "encoder.safetensors")(torch.from_numpy(seen[300:, 0].astype(np.float32))).numpy()
    np.testing.assert_allclose(again, guess, atol=0.02)


def test_both_ways_through_the_gram_matrix_agree():
    seen, styles, features = linear_world(number=8)  # 16 rows, 23 features: wide
    wide = encoder_training._Ridge(seen.astype(np.float32), styles, features)
    x = (seen.reshape(-1, sum(features)).astype(np.float64) - wide.shift) * wide.scale
    y = np.repeat(styles.reshape(8, -1), 2, 0) - wide.mean
    by_hand = np.linalg.solve(x.T @ x + 0.01 * len(x) * np.eye(x.shape[1]), x.T @ y)[:, STYLE : 2 * STYLE]
    np.testing.assert_allclose(wide.coefficients(0.01, 1), by_hand, atol=1e-4)


def test_a_lower_rank_keeps_most():
    seen, styles, features = linear_world()
    x = torch.from_numpy(seen[:, 0].astype(np.float32))
    whole, half, one = (learn(seen, styles, np.ones(STYLE), features, rank=rank).encoder(x) for rank in (12, 9, 1))
    spread = (whole - whole.mean(0)).square().mean()
    assert (half - whole).square().mean() < 0.3 * spread < (one - whole).square().mean()


def test_groups_become_layers():
    wide = widen(torch.arange(3.0)[None, :, None].expand(1, 3, 2), torch.tensor(GROUPS))
    assert wide[0, :, 0].tolist() == [0.0] * 7 + [1.0] * 6 + [2.0] * 10


def test_samples_are_functions_of_seed_and_number(tiny):
    drawn = [draw_styles(tiny[0], 3, i) for i in range(40)]
    np.testing.assert_array_equal(drawn[7], draw_styles(tiny[0], 3, 7))
    assert (draw_styles(tiny[0], 4, 7) != drawn[7]).any()


def test_half_of_the_samples_are_mixed():
    torch.manual_seed(0)
    generator = Generator(STYLE, (4,) * 8)
    for parameter in generator.mapping.parameters():
        parameter.copy_(torch.randn(parameter.shape))
    mixed = sum(bool((w[0] != w[2]).any()) for w in (draw_styles(generator, 0, i) for i in range(200)))
    assert 70 < mixed < 130


def test_poor_photos_are_pictures_of_many_sizes():
    clean = np.random.default_rng(0).integers(0, 256, (256, 256, 3), np.uint8)
    photos = [as_photo(clean, np.random.default_rng(i)) for i in range(20)]
    assert all(photo.dtype == np.uint8 and photo.shape[0] == photo.shape[1] for photo in photos)
    assert {photo.shape[2] for photo in photos} == {3}
    assert min(map(len, photos)) < 150 < 200 < max(map(len, photos)) <= 256


@pytest.mark.parametrize(("wrong", "word"), [({"samples": 3}, "samples=3"), ({"generator": "other"}, "other")])
def test_training_names_what_is_wrong(tmp_path, wrong, word):
    with pytest.raises(InputError, match=word):
        train_encoder(tmp_path, **wrong)


def test_a_file_that_is_no_encoder_is_named(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match=r"x\.safetensors"):
        Encoder.load(tmp_path / "x.safetensors")


def test_the_encoder_that_ships_is_small_and_whole():
    encoder = Encoder.load()
    assert WEIGHTS.stat().st_size <= 20_000_000
    assert encoder(torch.zeros(1, sum(BLOCKS.values()))).shape == (1, 23, 512)
    assert encoder.head.shape[0] == 12
    assert (encoder.norm > 1).all()
    assert WEIGHTS.with_suffix(".md").exists()


@pytest.mark.skipif(any(networks.cached(name) is None for name in NEEDED), reason="the networks were not fetched")
def test_the_encoder_that_ships_comes_nearer_than_the_mean_style(tmp_path):
    generator = Generator.load(networks.get("mobilestylegan"))
    sampler = Sampler(generator, tmp_path, 20)
    sampler._load()
    made, encoder = [], Encoder.load()
    for number in range(4):
        styles = draw_styles(generator, 20, number)
        clean = generator.picture(torch.from_numpy(np.repeat(styles, GROUPS, 0))[None], SIDE)
        looks = sampler._looks(clean, np.random.default_rng(number))
        seen = np.stack([describe(look, sampler._recognizer) for look in looks[:1]])
        guess = encoder(torch.from_numpy(seen)).numpy()[0]
        truth = np.repeat(styles, GROUPS, 0)
        made.append((np.square(guess - truth).sum(), np.square(generator.w_mean.numpy() - truth).sum()))
    apart, mean = np.sum(made, 0)
    assert apart < 0.92 * mean
