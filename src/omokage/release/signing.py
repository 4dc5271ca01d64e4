"""Signatures (Ed25519): who certified a release.

The signature is made over the bytes of ``certificate.json``, which names every other file with its hash, and is kept beside it
as 64 raw bytes. Keys are PEM files, so OpenSSL can make and check all of it too::

    openssl pkeyutl -verify -pubin -inkey steward.pub -rawin -in certificate.json -sigfile certificate.sig
"""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ..base.files import require_file, write_new
from ..base.plain import plain
from ..base.reading import read_regular
from ..errors import InputError

LENGTH = 64
_MOST_BYTES = 64 << 10


def keygen(path: Path) -> tuple[Path, Path]:
    """Write a new private key to ``path``, readable by its owner alone, and its public key to ``path`` with ``.pub``."""
    public = path.with_name(path.name + ".pub")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    shown = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    require_file(public, overwrite=False, ours=lambda _: False)
    write_new(path, secret, overwrite=False, ours=lambda _: False, private=True)
    write_new(public, shown, overwrite=False, ours=lambda _: False)
    return path, public


def load_signer(path: Path) -> Ed25519PrivateKey:
    """The private key in a PEM file."""
    try:
        key = serialization.load_pem_private_key(read_regular(path, _MOST_BYTES), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(f"{plain(path.name)} is not a private key without a password: omokage keygen makes one") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(f"{plain(path.name)} is not an Ed25519 key: omokage keygen makes one")
    return key


def load_public(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file."""
    try:
        key = serialization.load_pem_public_key(read_regular(path, _MOST_BYTES))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(f"{plain(path.name)} is not a public key: give the .pub file that omokage keygen wrote") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError(f"{plain(path.name)} is not an Ed25519 key: give the .pub file that omokage keygen wrote")
    return key


def is_signed(public: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    """Whether ``signature`` over ``content`` was made with the private key that belongs to ``public``."""
    try:
        public.verify(signature, content)
    except InvalidSignature:
        return False
    return True
