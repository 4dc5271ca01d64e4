"""Many settings side by side: each is anonymized on the same training rows, attacked, and learned from.

Settings run in processes of their own, as many as memory allows, and every finished one is kept at once in a file of JSON lines,
so an interrupted run resumes when you repeat it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.files import write_whole
from ..base.progress import Progress, silent
from ..base.scratch import scratch
from ..errors import InputError, OmokageError, OutputError
from ..method.anonymizer import Anonymizer
from ..method.grouping import parse_grouper
from ..method.maps import parse_map
from ..method.noise import parse_noise
from .assignment.transport import distinct_rows
from .attacks import ATTACKS
from .disclosure import membership_risk
from .drift import drift
from .linked import Linked, link
from .rulers import raw
from .strongest import Attacks, attack_all
from .utility import fit_model, hold_out, scores, task_of
from .view import view_of

MOST_SECONDS = 900.0  # of a setting's assignments; past it an outcome is marked as not proved, or attacks are left out


@dataclass(frozen=True, order=True)
class Setting:
    """``k`` and a grouping, or noise; and a map, or ``GROUP/SYNTHESIS`` for two."""

    map: str
    k: int | None = None
    grouping: str = "cells"
    noise: str | None = None

    @property
    def name(self) -> str:
        what = f"k={self.k} {self.grouping}" if self.noise is None else f"noise {self.noise}"
        return f"{what} in {self.map}"

    def anonymizer(self, seed: int) -> Anonymizer:
        group, slash, synthesis = self.map.partition("/")
        synthesis = synthesis if slash else group
        return Anonymizer(
            None if self.k is None else _on_one_thread(parse_grouper(self.grouping, self.k)),
            group_map=parse_map(group) if slash else None,
            synthesis_map=None if synthesis == "none" else parse_map(synthesis),
            noise=None if self.noise is None else parse_noise(self.noise),
            random_state=seed,
        )


def _on_one_thread(grouper: Any) -> Any:
    """A grouper that leaves the other cores to other settings, where it has threads at all."""
    threaded = hasattr(grouper, "get_params") and "n_jobs" in grouper.get_params()
    return grouper.set_params(n_jobs=1) if threaded else grouper


@dataclass(frozen=True)
class Outcome:
    """What became of one setting.

    rate, interval, exact : of ``attack``, the strongest. attacks : the rate of every attack, strongest first. missing : attacks
    that were not tried, and why.
    """

    setting: Setting
    attack: str
    rate: float
    interval: tuple[float, float]
    bound: float | None
    exact: bool
    attacked: int
    attacks: dict[str, float]
    missing: dict[str, str]
    membership: float
    loss: float
    scores: dict[str, float]
    scores_through_map: dict[str, float] | None
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """All outcomes, what a model of the originals reaches, and settings that could not be made."""

    target: str
    model: str
    task: str
    rows: int
    columns: int
    original: dict[str, float]
    outcomes: tuple[Outcome, ...]
    failed: tuple[tuple[str, str], ...]

    @property
    def score(self) -> str:
        """What settings are ranked by: macro F, which guessing the largest class does not raise, or R²."""
        return "f" if self.task == "classification" else "r2"

    def frontier(self) -> list[Outcome]:
        """Outcomes that no other beats in both risk and score, by rising risk."""
        best: list[Outcome] = []
        for outcome in sorted(self.outcomes, key=lambda o: (o.rate, -o.scores[self.score])):
            if not best or outcome.scores[self.score] > best[-1].scores[self.score]:
                best.append(outcome)
        return best


def settings_of(ks: Sequence[int], maps: Sequence[str], groupings: Sequence[str], noises: Sequence[str]) -> list[Setting]:
    """Every k in every grouping and map, and every noise in every map with one space."""
    made = [Setting(m, k, g) for m in maps for g in groupings for k in ks]
    made += [Setting(m, noise=n) for m in maps if "/" not in m for n in noises]
    for setting in made:
        setting.anonymizer(0).check()
    if not made:
        raise InputError("there is nothing to compare: give at least one k or one noise")
    return made


def compare(
    x: NDArray[Any],
    y: NDArray[Any],
    settings: Sequence[Setting],
    *,
    target: str,
    keep: Path,
    model: str = "boosting",
    sample: int | None = 5000,
    jobs: int | None = None,
    memory: int = 8 << 30,
    random_state: int = 0,
    progress: Progress = silent,
) -> Comparison:
    """Run the settings that ``keep`` does not hold yet, and return them all.

    Every setting is attacked as by :func:`~omokage.evaluate.evaluation.evaluate`, and ranked by the strongest attack.
    ``memory`` is shared by the processes; ``sample`` limits the rows of a noisy release that are attacked (k-anonymous ones are
    attacked whole). ``progress`` is called with each finished setting.
    """
    mark = _mark(x, y, model, sample, random_state)
    done = _load(keep, mark)
    left = [s for s in settings if s.name not in done]
    workers = max(1, min(jobs or os.cpu_count() or 1, int(memory // _need(x)), len(left) or 1))
    with scratch() as place:
        folder = str(place)
        np.save(place / "x.npy", x)
        np.save(place / "y.npy", y)
        if "original" not in done:
            done["original"] = _original(folder, model, random_state)
            _append(keep, mark, "original", done["original"])
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            waiting = {pool.submit(_run, folder, s, model, sample, memory // workers, random_state, workers): s for s in left}
            for number, future in enumerate(as_completed(waiting), 1):
                name = waiting[future].name
                try:
                    done[name] = future.result()
                except OmokageError as error:
                    done[name] = {"failed": str(error)}
                _append(keep, mark, name, done[name])
                progress(name, number, len(left))
    outcomes = tuple(
        Outcome(**{**done[s.name], "setting": s, "interval": tuple(done[s.name]["interval"])})
        for s in settings
        if "failed" not in done[s.name]
    )
    failed = tuple((s.name, done[s.name]["failed"]) for s in settings if "failed" in done[s.name])
    return Comparison(target, model, task_of(y), len(x), x.shape[1], done["original"]["scores"], outcomes, failed)


def _need(x: NDArray[Any]) -> int:
    """Bytes one process may want: copies of the table, and the attack's lists of candidates."""
    return int(x.nbytes * 12 + len(x) * 4096)


def _mark(x: NDArray[Any], y: NDArray[Any], *rest: Any) -> str:
    """Ties kept outcomes to their data, conditions and attackers."""
    digest = hashlib.sha256(np.ascontiguousarray(x).tobytes())
    digest.update("\0".join(map(str, y.tolist())).encode() + repr((x.shape, *ATTACKS, *rest)).encode())
    return digest.hexdigest()[:32]


def _load(path: Path, mark: str) -> dict[str, Any]:
    """Outcomes kept by an earlier run of the same data; a file that holds anything else is refused."""
    done: dict[str, Any] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            entry = json.loads(line)
            if entry["mark"] == mark:
                done[entry["name"]] = entry["outcome"]
    except (OSError, ValueError, KeyError, TypeError):
        raise OutputError(f"{path} holds more than finished settings: move it away, or choose another page") from None
    return done


def _append(path: Path, mark: str, name: str, outcome: dict[str, Any]) -> None:
    before = path.read_bytes() if path.exists() else b""
    line = json.dumps({"mark": mark, "name": name, "outcome": outcome}) + "\n"
    write_whole(path, before + line.encode())


def _split(folder: str, seed: int) -> tuple[Any, Any, Any, Any]:
    x, y = np.load(Path(folder) / "x.npy"), np.load(Path(folder) / "y.npy")
    return x, y, *hold_out(y, random_state=seed)


def _original(folder: str, model: str, seed: int) -> dict[str, Any]:
    x, y, train, test = _split(folder, seed)
    task = task_of(y)
    fitted = fit_model(model, task, seed, x[train], y[train])
    return {"scores": scores(y[test], fitted.predict(x[test]), task)}


def _run(folder: str, setting: Setting, model: str, sample: int | None, memory: int, seed: int, workers: int) -> dict[str, Any]:
    """One setting, in a process of its own."""
    import time

    from threadpoolctl import threadpool_limits

    begun = time.perf_counter()
    x, y, train, test = _split(folder, seed)
    task = task_of(y)
    with threadpool_limits(max(1, (os.cpu_count() or 1) // workers)):
        release = setting.anonymizer(seed).release(x[train])
        both = link(x[train], release)
        tried = attack_all(both, sample=sample if setting.k is None else None, memory=memory, max_seconds=MOST_SECONDS)
        best = tried.strongest
        fitted = fit_model(model, task, seed, both.aligned, y[train])
        through = release.through_map
        outcome = Outcome(
            setting,
            best.name,
            best.rate,
            best.interval,
            best.bound,
            best.exact,
            best.rows,
            {name: result.rate for name, result in tried.results.items()},
            tried.missing,
            _membership(both, tried, x[test]),
            drift(both).loss,
            scores(y[test], fitted.predict(x[test]), task),
            None if through is None else scores(y[test], fitted.predict(through(x[test])), task),
            time.perf_counter() - begun,
        )
    kept = asdict(outcome)
    del kept["setting"]
    return kept


def _membership(both: Linked, tried: Attacks, outsiders: NDArray[Any]) -> float:
    """Told by distance who was in the data, measured as the strongest attack measures."""
    ruler = tried.rulers[tried.strongest.name]  # built-in attacks all have one
    outside = None if ruler.outsiders is None else ruler.outsiders(outsiders)
    if outside is None:
        ruler, outside = raw(view_of(both)), outsiders
    centres = ruler.released(np.unique(distinct_rows(both.y)[1], return_index=True)[1])
    return membership_risk(ruler.originals(np.arange(len(both.x))), outside, centres).rate
