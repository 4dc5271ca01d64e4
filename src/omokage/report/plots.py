"""Plots as SVG text to stand inside a page. Names from the data are drawn as plain text, never as markup."""

from __future__ import annotations

import io
import re
from textwrap import fill
from typing import Any

import numpy as np

from ..errors import MissingExtra
from ..evaluate.comparison import Comparison
from ..evaluate.drift import Drift
from ..evaluate.faces.figures import FaceEvaluation
from ..evaluate.faces.recognition import Linkage
from ..evaluate.reidentification import Reidentification
from ..release.certificate import Found

INK, SOFT, SAFE, WARN = "#1c2733", "#9aa7b4", "#2a7f8e", "#c4552d"
SERIES = ("#2a7f8e", "#c4552d", "#6a4c93", "#c99700", "#3d7a3d", "#8a5a44", "#476a9c", "#b23a67", "#5f6c37", "#555555")


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("support for reports", "report") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def _svg(figure: Any, title: str) -> str:
    """The figure as an <svg> element whose words stay text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "omokage"}):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(
        r'<svg [^>]*?width="[^"]*" height="[^"]*"',
        lambda m: re.sub(r' (width|height)="[^"]*"', "", m.group(0)),
        text,
        count=1,
    )
    return text.replace("<svg", f'<svg role="img" aria-label="{title}"', 1)


def _plain(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(SOFT)
    ax.tick_params(colors=INK, labelsize=9)


def class_sizes(found: Found, k: int | None, unit: str) -> str:
    """How many classes there are of each size."""
    figure = _figure(6.2, 2.6)
    ax = figure.subplots()
    sizes, counts = zip(*sorted(found.sizes.items()), strict=True)
    if len(sizes) > 60:
        ax.hist(sizes, bins=40, weights=counts, color=SAFE)
    else:
        ax.bar(sizes, counts, color=SAFE, width=0.8)
    if k is not None:
        ax.axvline(k - 0.5, color=WARN, linewidth=1.5)
        ax.annotate(f"k = {k}", (k - 0.5, 1), xycoords=("data", "axes fraction"), xytext=(-4, -10), textcoords="offset points",
                    color=WARN, fontsize=9, ha="right")  # fmt: skip
        ax.set_xlim(left=min(k - 2.5, min(sizes) - 2))
    ax.set_xlabel(f"{unit} that share the same quasi-identifiers", fontsize=9)
    ax.set_ylabel("classes", fontsize=9)
    _plain(ax)
    return _svg(figure, "class sizes")


def attacks(results: list[tuple[str, Reidentification]]) -> str:
    """Rates with their intervals, beside chance and 1/k."""
    figure = _figure(6.2, 1.1 + 0.5 * len(results))
    ax = figure.subplots()
    for line, (_, result) in enumerate(results):
        ax.barh(line, result.rate, color=SAFE, height=0.55)
        ax.plot(result.interval, [line, line], color=INK, linewidth=1.5)
    shown = [fill(f"{name}: {result.rate:.2%}", 36, break_long_words=False) for name, result in results]
    ax.set_yticks(range(len(results)), shown, fontsize=8)
    ax.invert_yaxis()
    first = results[0][1]
    if first.bound is not None:
        ax.axvline(first.bound, color=WARN, linewidth=1.5)
        ax.annotate(f"1/k = {first.bound:.3g}", (first.bound, 1), xycoords=("data", "axes fraction"), xytext=(4, -4),
                    textcoords="offset points", color=WARN, fontsize=9)  # fmt: skip
    ax.axvline(first.baseline, color=SOFT, linewidth=1, linestyle=":")
    ax.set_xlim(0, max([r.rate for _, r in results] + [first.bound or 0.0, 1e-6]) * 1.25)
    ax.set_xlabel("share of people linked to their own record (dotted: by chance)", fontsize=9)
    _plain(ax)
    return _svg(figure, "re-identification")


def column_drift(drift: Drift, names: list[str]) -> str:
    """The columns whose spread changed most."""
    ratio = np.array(drift.deviation_ratio)
    names = names if len(names) == len(ratio) else [f"coordinate {j + 1}" for j in range(len(ratio))]
    order = np.argsort(np.abs(np.log(np.maximum(ratio, 1e-6))))[::-1][:20]
    figure = _figure(6.2, 0.9 + 0.21 * len(order))
    ax = figure.subplots()
    ax.barh(range(len(order)), ratio[order], color=[SAFE if 0.8 <= r <= 1.25 else WARN for r in ratio[order]], height=0.65)
    ax.set_yticks(range(len(order)), [""] * len(order))
    for line, j in enumerate(order):
        shown = names[j] if len(names[j]) <= 28 else names[j][:27] + "…"
        ax.text(-0.01, line, shown, transform=ax.get_yaxis_transform(), ha="right", va="center", fontsize=8, parse_math=False)
    ax.invert_yaxis()
    ax.axvline(1.0, color=INK, linewidth=1)
    ax.set_xlabel("standard deviation after / before; the 20 columns that changed most", fontsize=9)
    _plain(ax)
    return _svg(figure, "column drift")


def frontier(comparison: Comparison) -> str:
    """Risk against utility: each setting a point, the settings that nothing beats joined by a line."""
    figure = _figure(8.6, 5.2)
    ax = figure.subplots()
    score = comparison.score
    floor = 0.5 / max(comparison.rows, 1)
    groups: dict[str, list[Any]] = {}
    for outcome in comparison.outcomes:
        s = outcome.setting
        groups.setdefault(f"{s.map}, {s.grouping}" if s.noise is None else f"{s.map}, noise", []).append(outcome)
    for number, (name, outcomes) in enumerate(groups.items()):
        colour = SERIES[number % len(SERIES)]
        rates = [max(o.rate, floor) for o in outcomes]
        noisy = outcomes[0].setting.noise is not None
        ax.plot(
            rates,
            [o.scores[score] for o in outcomes],
            "s" if noisy else "o",
            color=colour,
            label=name,
            markersize=6,
            alpha=0.9,
        )
        for outcome, rate in zip(outcomes, rates, strict=True):
            label = f"k={outcome.setting.k}" if not noisy else outcome.setting.noise.split(":")[1]
            ax.annotate(label, (rate, outcome.scores[score]), xytext=(5, 3), textcoords="offset points", fontsize=7, color=colour)
    best = comparison.frontier()
    ax.step([max(o.rate, floor) for o in best], [o.scores[score] for o in best], where="post", color=INK, linewidth=1, zorder=0)
    ax.axhline(comparison.original[score], color=SOFT, linewidth=1, linestyle="--")
    ax.annotate("learned from the originals", (0.01, comparison.original[score]), xycoords=("axes fraction", "data"),
                xytext=(0, 3), textcoords="offset points", fontsize=8, color=SOFT)  # fmt: skip
    ax.set_xscale("log")
    ticks = [t for t in (1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if ax.get_xlim()[0] <= t <= ax.get_xlim()[1]]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlabel("share linked by the strongest attack (further left is safer)", fontsize=9)
    ax.set_ylabel(f"{'macro F' if score == 'f' else 'R²'} on originals held out (higher is more useful)", fontsize=9)
    ax.legend(fontsize=8, frameon=False, loc="lower right")
    _plain(ax)
    return _svg(figure, "risk and utility")


def recognition(rows: list[tuple[str, Linkage, Linkage | None]], k: int) -> str:
    """Who is named right by each attacker: in the release, and by the synthesis map alone; beside 1/k and chance."""
    bars = [(name, who, SAFE) for name, who, _ in rows]
    bars += [(f"{name}, not averaged", who, SOFT) for name, _, who in rows[:1] if who is not None]
    figure = _figure(6.2, 1.1 + 0.45 * len(bars))
    ax = figure.subplots()
    for line, (_, who, colour) in enumerate(bars):
        ax.barh(line, who.rate, color=colour, height=0.55)
        ax.plot(who.interval, [line, line], color=INK, linewidth=1.5)
    ax.set_yticks(range(len(bars)), [f"{name}\n{who.rate:.1%}" for name, who, _ in bars], fontsize=9)
    ax.invert_yaxis()
    ax.axvline(1 / k, color=WARN, linewidth=1.5)
    ax.annotate(f"1/k = {1 / k:.3g}", (1 / k, 1), xycoords=("data", "axes fraction"), xytext=(4, -4),
                textcoords="offset points", color=WARN, fontsize=9)  # fmt: skip
    ax.axvline(bars[0][1].chance, color=SOFT, linewidth=1, linestyle=":")
    ax.set_xlim(0, min(1.0, max([who.interval[1] for _, who, _ in bars] + [1 / k]) * 1.1))
    ax.set_xlabel("share of photos named right (dotted: by chance)", fontsize=9)
    _plain(ax)
    return _svg(figure, "recognition")


def fid_parts(result: FaceEvaluation) -> str:
    """FID in its two parts: the release, the synthesis map alone, and the floor of as many real faces."""
    bars = [("released", result.released.fid.mean_part, result.released.fid.covariance_part)]
    bars.append((f"floor of {result.released.pictures}\nreal faces", 0.0, result.released.floor.value))
    if result.unaveraged is not None:
        bars.append(("not averaged", result.unaveraged.fid.mean_part, result.unaveraged.fid.covariance_part))
    figure = _figure(6.2, 1.1 + 0.45 * len(bars))
    ax = figure.subplots()
    for line, (name, mean, covariance) in enumerate(bars):
        floor = name.startswith("floor")
        ax.barh(line, mean, color=SAFE, height=0.55, label="μ part" if line == 0 else None)
        ax.barh(
            line, covariance, left=mean, color=SOFT if floor else "#9ccbd2", height=0.55, label="Σ part" if line == 0 else None
        )
        ax.text(mean + covariance, line, f" {mean + covariance:.1f}", va="center", fontsize=9, color=INK)
    ax.set_yticks(range(len(bars)), [name for name, _, _ in bars], fontsize=9)
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_xlabel("FID to the originals, lower is nearer", fontsize=9)
    ax.legend(fontsize=8, frameon=False, loc="lower right")
    _plain(ax)
    return _svg(figure, "FID in parts")
