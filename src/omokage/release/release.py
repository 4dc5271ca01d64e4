"""A release: what leaves, its certificate, and the link to the originals, which leaves only if asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .certificate import Certificate
from .key import Key
from .medium import Writer
from .publish import publish


@dataclass(frozen=True)
class Release:
    """What may leave, with its certificate.

    Attributes
    ----------
    data : what is released, in its order: an array or frame of the type that was given in, or a sequence of pictures
    certificate : Certificate
        Counted in memory; :meth:`write` counts again on the bytes.
    key : Key
        The secret link to the originals; never written unless :meth:`write` is given a place for it.
    """

    data: Any
    certificate: Certificate
    key: Key = field(repr=False)
    writer: Writer = field(repr=False)
    synthesis: Any = field(default=None, repr=False)  # the fitted synthesis map; never written
    group_map: Any = field(default=None, repr=False)  # the fitted group map; never written

    @property
    def through_map(self) -> Callable[[Any], Any] | None:
        """Data sent through the synthesis map and back, as an analyst who knows the map can do; None without a map."""
        if self.synthesis is None:
            return None
        return lambda x: self.synthesis.inverse_transform(self.synthesis.transform(x))

    def write(
        self, path: str | Path, *, key: str | Path | None = None, sign: str | Path | None = None, overwrite: bool = False
    ) -> Path:
        """Write data and certificate into the folder ``path``, whole or not at all.

        Parameters
        ----------
        key : where to write the secret link too; outside of ``path``
        sign : file of a private key (``omokage keygen``) to sign the certificate with
        overwrite : replace an earlier release, and its key, if nothing else lies in its folder
        """
        self.publish(path, key=key, sign=sign, overwrite=overwrite)
        return Path(path)

    def publish(
        self, path: str | Path, *, key: str | Path | None = None, sign: str | Path | None = None, overwrite: bool = False
    ) -> Certificate:
        """:meth:`write`, and give the certificate as it was written: counted on the bytes."""
        return publish(
            Path(path), lambda stage: self.writer.fill(stage, self.certificate, self.key),
            key=None if key is None else Path(key), sign=None if sign is None else Path(sign), overwrite=overwrite,
        )  # fmt: skip
