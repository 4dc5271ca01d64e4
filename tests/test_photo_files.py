"""Photo files: every common kind is read upright as RGB, every broken one is named, and what is written holds pixels alone."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from omokage.errors import PhotoError
from omokage.faces.image import LONGEST, decoded, encode_picture, read_photo


def picture(height: int = 40, width: int = 60) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 4, y * 6, np.full_like(x, 90)], -1).astype(np.uint8)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tif"])
def test_common_formats(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(picture()).save(path)
    got = read_photo(path)
    assert got.shape == (40, 60, 3)
    assert np.abs(got.astype(int) - picture()).mean() < 4


def test_exif_orientation_is_followed(tmp_path):
    upright = picture()
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: the stored picture must be turned clockwise
    Image.fromarray(np.rot90(upright)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read_photo(tmp_path / "a.png"), upright)


def test_grey_palette_alpha_and_cmyk(tmp_path):
    whole = Image.fromarray(picture())
    whole.convert("L").save(tmp_path / "grey.png")
    whole.convert("P").save(tmp_path / "palette.png")
    whole.convert("CMYK").save(tmp_path / "cmyk.jpg", quality=95)
    see_through = whole.convert("RGBA")
    see_through.putalpha(0)
    see_through.save(tmp_path / "alpha.png")
    for name in ("grey.png", "palette.png", "cmyk.jpg"):
        got = read_photo(tmp_path / name)
        assert got.shape == (40, 60, 3)
        assert got.dtype == np.uint8
    assert np.abs(read_photo(tmp_path / "cmyk.jpg").astype(int) - picture()).mean() < 12
    assert (read_photo(tmp_path / "alpha.png") == 255).all()


def test_sixteen_bits_keep_their_range(tmp_path):
    deep = np.linspace(0, 65535, 40 * 60).reshape(40, 60).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    Image.fromarray(deep).save(tmp_path / "deep.tif")
    for name in ("deep.png", "deep.tif"):
        got = read_photo(tmp_path / name)
        assert got[0, 0, 0] == 0
        assert got[-1, -1, 0] == 255
        assert np.abs(got[..., 0] - deep / 257).max() <= 0.51


def test_a_twenty_thousand_pixel_photo_is_read_small(tmp_path):
    Image.new("RGB", (20_000, 12_000), "red").save(tmp_path / "huge.jpg", quality=30)
    got = read_photo(tmp_path / "huge.jpg")
    assert max(got.shape) <= LONGEST
    assert got.shape[1] / got.shape[0] == pytest.approx(20 / 12, rel=0.01)


def png(width: int, height: int, data: bytes) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("bomb.png", png(60_000, 60_000, b"\0" * 1000), "60000 × 60000 pixels.*decompression bomb"),
        ("large.png", png(12_000, 11_000, b"\0" * 1000), "12000 × 11000 pixels, more than 100 million"),
        ("cut.png", png(40, 40, b"\0" * 4000)[:60], "damaged"),
        ("text.jpg", b"this is not a picture", "not a JPEG, PNG, WebP or TIFF"),
        ("empty.png", b"", "not a JPEG"),
        ("thin.png", png(1, 1, b"\0\1\1\1"), "less than two pixels"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PhotoError, match=reason):
        read_photo(tmp_path / name)


def test_other_kinds_are_refused(tmp_path):
    Image.fromarray(picture()).save(tmp_path / "a.gif")
    with pytest.raises(PhotoError, match="not a JPEG"):
        read_photo(tmp_path / "a.gif")
    Image.fromarray(np.zeros((9, 9), np.float32)).save(tmp_path / "float.tif")
    with pytest.raises(PhotoError, match="floating-point"):
        read_photo(tmp_path / "float.tif")
    half = encode_picture(picture(300, 300), ".jpg")
    (tmp_path / "half.jpg").write_bytes(half[: len(half) // 2])
    with pytest.raises(PhotoError, match="damaged"):
        read_photo(tmp_path / "half.jpg")


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif"])
def test_written_files_hold_pixels_alone(suffix):
    content = encode_picture(picture(), suffix)
    got = decoded(content)
    assert got.shape == (40, 60, 3)
    if suffix in (".png", ".tif"):
        assert np.array_equal(got, picture())
    assert content == encode_picture(picture(), suffix)


def test_anything_more_in_a_written_file_is_found(tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "who and where"
    for suffix in ("png", "jpg", "webp"):
        Image.fromarray(picture()).save(tmp_path / f"a.{suffix}", exif=exif)
        with pytest.raises(PhotoError, match="more than pixels"):
            decoded((tmp_path / f"a.{suffix}").read_bytes())
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Author", "somebody")
    Image.fromarray(picture()).save(tmp_path / "t.png", pnginfo=note)
    with pytest.raises(PhotoError, match="more than pixels: Author"):
        decoded((tmp_path / "t.png").read_bytes())
