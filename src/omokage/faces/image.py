"""Photos in and pictures out: any common format, bounded in size, upright, and without what else a file may carry."""

from __future__ import annotations

import io
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtra, PhotoError

try:
    from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError
except ImportError:
    raise MissingExtra("photo support", "faces") from None

Picture = NDArray[np.uint8]

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff"}
FORMATS = ("JPEG", "PNG", "WEBP", "TIFF")
MOST_BYTES = 1_000_000_000  # of a file
MOST_PIXELS = 100_000_000  # decoded: 300 MB
LONGEST = 6000  # a longer side is brought down to this before faces are looked for


def read_photo(path: Path) -> Picture:
    """A photo as RGB (h, w, 3), turned upright as its EXIF says; huge JPEGs are decoded at a fraction of their size.

    Raises
    ------
    PhotoError
        If the file is damaged, of another format, or too large. The message says which rule it broke, not what it shows.
    """
    try:
        with _own_limit(), _regular(path) as file, Image.open(file, formats=FORMATS) as image:
            image.draft("RGB", (LONGEST // 2, LONGEST // 2))  # JPEG only: not below this, and only by 2, 4 or 8
            across, down = image.size
            if across * down > MOST_PIXELS:
                most = MOST_PIXELS // 1_000_000
                raise PhotoError(f"it has {across} × {down} pixels, more than {most} million: a decompression bomb?")
            if min(across, down) < 2:
                raise PhotoError("it is less than two pixels wide or high")
            picture = _rgb(ImageOps.exif_transpose(image))
    except PhotoError:
        raise
    except UnidentifiedImageError:
        raise PhotoError("it is not a JPEG, PNG, WebP or TIFF picture") from None
    except FileNotFoundError:
        raise PhotoError("it is not there") from None
    except PermissionError:
        raise PhotoError("you may not read it") from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  decoders raise many kinds for a damaged file
        raise PhotoError(f"it is damaged and cannot be decoded ({type(error).__name__})") from None
    if max(picture.size) > LONGEST:
        picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return np.asarray(picture)


@contextmanager
def _regular(path: Path) -> Iterator[IO[bytes]]:
    """A regular file, opened; a link to one is followed. A pipe or a device is refused at once: nothing can make this wait."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise PhotoError("it is not a regular file")
        if state.st_size > MOST_BYTES:
            raise PhotoError(f"it has {state.st_size:,} bytes, more than {MOST_BYTES // 1_000_000:,} million")
        yield file


@contextmanager
def _own_limit() -> Iterator[None]:
    """Pillow refuses by the size a file states; here a JPEG of that size is decoded at a fraction of it instead."""
    before, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata is of no concern
            yield
    finally:
        Image.MAX_IMAGE_PIXELS = before


def _rgb(image: Any) -> Any:
    """Eight bits of red, green and blue, whatever came."""
    if image.mode in ("I;16", "I;16B", "I;16L", "I"):
        deep = np.asarray(image).astype(np.float64)
        if deep.min() < 0 or deep.max() > 65535:
            raise PhotoError("its grey values are not of 8 or 16 bits")
        return Image.fromarray(np.round(deep / 257).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise PhotoError("its values are floating-point numbers: there is no telling what is white")
    profile = image.info.get("icc_profile")
    if profile and image.mode in ("RGB", "CMYK"):
        try:
            there = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            return ImageCms.profileToProfile(image, there, ImageCms.createProfile("sRGB"), outputMode="RGB")
        except (ImageCms.PyCMSError, OSError):
            pass  # a broken profile is as good as none
    if image.mode in ("RGBA", "LA", "PA", "P") or "transparency" in image.info:
        layered = image.convert("RGBA")
        white = Image.new("RGBA", layered.size, "white")
        return Image.alpha_composite(white, layered).convert("RGB")
    return image.convert("RGB")


def encode_picture(picture: Picture, suffix: str, quality: int = 95) -> bytes:
    """The bytes of a picture file that holds pixels and nothing else: no EXIF, no time, no profile."""
    sink = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(picture))
    match suffix.lower():
        case ".png":
            image.save(sink, "PNG", optimize=False, compress_level=6)
        case ".jpg" | ".jpeg":
            image.save(sink, "JPEG", quality=quality, subsampling=0)
        case ".webp":
            image.save(sink, "WEBP", quality=quality)
        case ".tif" | ".tiff":
            image.save(sink, "TIFF", compression="tiff_lzw")
        case other:
            raise PhotoError(f"pictures are written as .png, .jpg, .webp or .tif, not as {other!r}")
    return sink.getvalue()


def decoded(content: bytes) -> Picture:
    """The pixels of a picture that we have written; anything more than pixels in the file is refused."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            image.load()
            extra = set(image.info) - {"jfif", "jfif_version", "jfif_unit", "jfif_density", "dpi", "resolution", "compression",
                                       "loop", "background", "timestamp", "duration"}  # fmt: skip
            if image.getexif() and image.format != "TIFF":
                extra.add("exif")
            if extra:
                raise PhotoError(f"the file carries more than pixels: {', '.join(sorted(map(str, extra)))}")
            return np.asarray(image.convert("RGB"))
    except PhotoError:
        raise
    except Exception as error:  # noqa: BLE001
        raise PhotoError(f"it cannot be decoded ({type(error).__name__})") from None
