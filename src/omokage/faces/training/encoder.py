"""Learning the encoder: draw samples, regress their styles on what their portraits show, keep what predicts.

Closed form, so the same samples give the same encoder. Each block of a description counts by a weight of its own, whatever its
number of features; the ridge's strength is chosen for each group of layers on a tenth of the samples that the regression has not
seen. The whole table of coefficients would be 5,256 × 1,536; the directions in which its predictions vary most are kept.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...base.files import require_file, write_new
from ...base.progress import Progress, silent
from ...errors import InputError
from ...networks.generator import PUBLISHED, FaceGenerator, load_generator
from ..maps.encoder import BLOCKS, PARTS_OF_W, Encoder, widen
from ..maps.inversion import fit_head
from .encoder_samples import LOOKS, SHARD, Sampler, draw_styles

BLOCK_WEIGHTS = {"recognition": 2.0, "landmarks": 1.0, "pixels": 1.0, "parts": 0.5}
STRENGTHS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # of the ridge, to choose from
RANK = 320
HEAD_FACES = 20
WEIGHTS, CARD, TITLE = "encoder.safetensors", "encoder.md", "# Encoder I → W+"
EXIT = 64  # of the generator's inner map that inversion looks at


@dataclass(frozen=True)
class Learned:
    """What a training gave: the encoder, and how much of the styles' variance it explains on samples it has not seen."""

    encoder: Encoder
    explained: tuple[float, ...]  # by group of layers
    strengths: tuple[float, ...]
    samples: int


def train_encoder(
    out: Path,
    samples: int = 4096,
    seed: int = 7,
    generator: str | Path = PUBLISHED,
    cache: Path | None = None,
    progress: Progress = silent,
) -> Learned:
    """Make the encoder and its card in the folder ``out``, for the zoo's generator or for a StyleGAN2 in a file.

    Samples are kept in ``cache`` (``out/samples``), for resuming.
    """
    if samples < 2 * SHARD:
        raise InputError(f"samples={samples}: at least {2 * SHARD} are needed")
    for name, ours in ((WEIGHTS, _our_weights), (CARD, _our_card)):
        require_file(out / name, overwrite=True, ours=ours)  # before the work that would be lost
    began = time.monotonic()
    net = load_generator(generator)
    if net.size < 4 * EXIT:
        raise InputError(f"the generator draws {net.size} pixels, and an encoder needs at least {4 * EXIT}")
    sampler = Sampler(net, cache or out / f"samples{_mark(generator)}", seed)
    shards = -(-samples // SHARD)
    found = []
    for number in range(shards):
        found.append(sampler.shard(number))
        progress("samples", (number + 1) * SHARD, shards * SHARD)
    learned = learn(
        np.concatenate([shard["descriptions"] for shard in found])[:samples],
        np.concatenate([shard["styles"] for shard in found])[:samples],
        net.w_mean.numpy(),
    )
    progress("regression", 1, 2)
    learned.encoder.groups = torch.tensor(net.groups)
    learned.encoder.head = head_for(net, seed)
    out.mkdir(parents=True, exist_ok=True)
    write_new(out / WEIGHTS, learned.encoder.save, overwrite=True, ours=_our_weights)
    progress("regression", 2, 2)
    told = card(learned, seed, time.monotonic() - began, str(generator))
    write_new(out / CARD, told.encode(), overwrite=True, ours=_our_card)
    return learned


def _our_weights(content: bytes) -> bool:
    """Whether a safetensors file holds the tensors of an encoder."""
    try:
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return set(header) - {"__metadata__"} == set(Encoder(1, 1, 1).state_dict())
    except (ValueError, TypeError):
        return False


def _our_card(content: bytes) -> bool:
    return content.startswith(TITLE.encode())


def _mark(generator: str | Path) -> str:
    """Samples of another generator's lie in another folder."""
    return "" if str(generator) == PUBLISHED else f"-{hashlib.sha256(Path(generator).read_bytes()).hexdigest()[:12]}"


def head_for(generator: FaceGenerator, seed: int) -> torch.Tensor:
    """The linear look for inversion, fitted on faces that are no samples of this seed."""
    styles = (torch.from_numpy(draw_styles(generator, seed + 1, i))[None] for i in range(HEAD_FACES))
    return fit_head(generator, [widen(w, torch.tensor(generator.groups)) for w in styles], EXIT)


def learn(
    descriptions: NDArray[Any],
    styles: NDArray[Any],
    w_mean: NDArray[Any],
    blocks: Iterable[int] = BLOCKS.values(),
    rank: int = RANK,
) -> Learned:
    """The encoder from descriptions (n, looks, f) and styles (n, 3, s)."""
    number = len(descriptions)
    unseen = np.arange(number) % 10 == 9
    ridge = _Ridge(descriptions[~unseen].astype(np.float32), styles[~unseen], tuple(blocks))
    seen = descriptions[unseen, 0].astype(np.float32)
    truth = styles[unseen].astype(np.float64)
    strengths, explained = [], []
    for group in range(PARTS_OF_W):
        scores = [_explained(ridge.predict(seen, strength, group), truth[:, group]) for strength in STRENGTHS]
        strengths.append(STRENGTHS[int(np.argmax(scores))])
        explained.append(max(scores))
    single = [ridge.predict(seen, strength, group) for group, strength in enumerate(strengths)]
    guessed = np.stack([np.linalg.norm(w - w_mean, axis=-1).mean() for w in single])
    drawn = np.linalg.norm(truth - w_mean, axis=-1).mean(0)
    norm = np.sqrt(guessed * drawn)  # a guess falls short of the truth; half way between them faces looked best and FID was least
    whole = _Ridge(descriptions.astype(np.float32), styles, tuple(blocks))
    encoder = _shortened(whole, strengths, rank)
    encoder.norm = torch.from_numpy(norm.astype(np.float32))
    return Learned(encoder, tuple(explained), tuple(strengths), number)


class _Ridge:
    """Ridge regression for every strength at once, by the eigenvectors of the smaller Gram matrix."""

    def __init__(self, descriptions: NDArray[np.float32], styles: NDArray[Any], blocks: tuple[int, ...]) -> None:
        number, looks, features = descriptions.shape
        rows = descriptions.reshape(-1, features)
        self.shift = rows.mean(0)
        self.scale = np.concatenate(
            [
                np.full(part.shape[1], np.sqrt(weight / max(float(np.square(part).sum(1).mean()), 1e-12)), np.float32)
                for part, weight in zip(
                    np.split(rows - self.shift, np.cumsum(blocks)[:-1], 1), BLOCK_WEIGHTS.values(), strict=False
                )
            ]
        )
        x = (rows - self.shift) * self.scale
        y = np.repeat(styles.reshape(number, -1), looks, 0).astype(np.float64)
        self.mean = y.mean(0)
        self.rows, self.groups = len(x), styles.shape[1]
        wide = features > len(x)
        gram = (x @ x.T if wide else x.T @ x).astype(np.float64)
        values, vectors = np.linalg.eigh(gram)
        chosen = values > 1e-7 * values[-1]
        self.values = values[chosen]
        if wide:
            self.axes = x.T.astype(np.float64) @ (vectors[:, chosen] / np.sqrt(self.values))  # (f, m)
        else:
            self.axes = vectors[:, chosen]
        self.products = (self.axes.T @ x.T.astype(np.float64)) @ (y - self.mean)  # (m, groups · s)

    def coefficients(self, strength: float, group: int) -> NDArray[np.float64]:
        """(f, s), for centred and scaled descriptions."""
        own = np.split(self.products, self.groups, 1)[group]
        return np.asarray(self.axes @ (own / (self.values + strength * self.rows)[:, None]))

    def predict(self, description: NDArray[np.float32], strength: float, group: int) -> NDArray[np.float64]:
        x = (description - self.shift) * self.scale
        return np.asarray(x @ self.coefficients(strength, group) + np.split(self.mean, self.groups)[group])


def _shortened(ridge: _Ridge, strengths: list[float], rank: int) -> Encoder:
    """The encoder of this rank whose predictions come nearest to the ridge's."""
    table = np.concatenate([ridge.coefficients(strength, group) for group, strength in enumerate(strengths)], 1)  # (f, 3 s)
    spread = np.sqrt(ridge.values)[:, None] * (ridge.axes.T @ table)  # its Gram is that of the predictions
    _, vectors = np.linalg.eigh(spread.T @ spread)
    kept = np.ascontiguousarray(vectors[:, ::-1][:, :rank])  # (3 s, r)
    encoder = Encoder(len(table), kept.shape[1], table.shape[1] // ridge.groups)
    encoder.shift = torch.from_numpy(ridge.shift.astype(np.float32))
    with torch.no_grad():
        encoder.into.weight.copy_(torch.from_numpy((ridge.scale[:, None] * (table @ kept)).T))
        encoder.out.weight.copy_(torch.from_numpy(kept))
        encoder.out.bias.copy_(torch.from_numpy(ridge.mean))
    return encoder


def _explained(guess: NDArray[Any], truth: NDArray[Any]) -> float:
    return float(1 - np.square(guess - truth).sum() / np.square(truth - truth.mean(0)).sum())


def card(learned: Learned, seed: int, seconds: float, generator: str = PUBLISHED) -> str:
    """What the weights are, how they were made and what they are not good for."""
    explained = ", ".join(f"{share:.0%}" for share in learned.explained)
    strengths = ", ".join(map(str, learned.strengths))
    whose, licence = f"the StyleGAN2 of {Path(generator).name}", "that of the generator it was made from"
    limits = "those of the generator; ArcFace, needed to run it, is for non-commercial research"
    if generator == PUBLISHED:
        whose, licence = "MobileStyleGAN", "Apache-2.0 like Omokage; derived from MobileStyleGAN (Apache-2.0), trained on FFHQ"
        limits = "FFHQ's terms exclude commercial use of its photos; ArcFace, needed to run it, is for non-commercial research"
    again = f"--generator {Path(generator).name} --samples {learned.samples} --seed {seed} -o encoder/"
    return f"""{TITLE} for {whose}

| | |
|---|---|
| what | low-rank ridge regression from a portrait (ArcFace embedding, landmarks, 32² pixels, 16² parts) to 3 × 512 styles |
| samples | {learned.samples:,} faces drawn by the generator, {LOOKS} degraded looks of each, seed {seed}; no photo of a person |
| ridge | strength {strengths} for the coarse, middle and fine layers, chosen on a tenth of the samples |
| variance of w explained | {explained} (coarse, middle, fine), on that tenth |
| time | {seconds / 60:.0f} minutes in the last run, samples that were there before not counted |
| made again by | `omokage faces train-encoder {again}` |
| licence | {licence} |
| limits | {limits} |

It carries pose, expression, rough age, sex, hair and colours; identity only in part. Hats, hands and rare glasses are lost.
"""
