"""ATTRIBUTE as in MIKU-2020: table 4, table 5 and figure 5, ours beside the paper's.

    python experiments/attributes.py            # all; resumes where it was stopped
    python experiments/attributes.py --train    # first train the compact network anew, and put it into the package
    python experiments/attributes.py --quick    # 60 faces and the shipped network, for the tests; writes nothing

Learned from ``$OMOKAGE_DATA/celeba_half_89x109`` (10,000 faces), tested on ``$OMOKAGE_DATA/celeba_test200`` (4,000 faces of
other people, at twice the resolution). The paper learned from about 160,000 faces at full size; it names neither the side of its
pictures nor the number of steps. Crops and checkpoints are kept in ``--work``; results in ``experiments/results/attributes.*``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from omokage.errors import InputError
from omokage.faces.maps.attribute import GROUP_LABELS, AttributeNet
from omokage.faces.training.attribute_data import Faces, Labels, gather, read_labels
from omokage.faces.training.attribute_learning import Trainer
from omokage.faces.training.attributes import HEAD_EPOCHS, PAPER, Start, build, kept_crops, train_attributes
from omokage.networks.weights import trained

RESULTS = Path(__file__).parent / "results"
TRAIN, TEST = "celeba_half_89x109", "celeba_test200"
STARTS = {"random": "(a) random", "frozen": "(b) frozen", "finetuned": "(c) fine-tuned"}
PAPER_TABLE4 = {  # per cent: accuracy, TP/(TP+FP), TN/(TN+FN), positive ratio
    "5_o_Clock_Shadow": (93.5, 78.9, 95.0, 9.4), "Arched_Eyebrows": (85.1, 72.3, 89.6, 25.9),
    "Attractive": (80.2, 81.3, 79.0, 53.1), "Bags_Under_Eyes": (83.9, 66.8, 86.9, 14.8), "Bald": (98.8, 81.3, 99.0, 1.4),
    "Bangs": (95.2, 85.6, 96.7, 13.8), "Big_Lips": (83.8, 46.6, 88.6, 11.4), "Big_Nose": (82.2, 69.9, 85.0, 18.4),
    "Black_Hair": (89.6, 74.5, 93.9, 21.9), "Blond_Hair": (94.5, 84.7, 96.2, 14.6), "Blurry": (96.7, 70.6, 97.3, 2.5),
    "Brown_Hair": (83.9, 74.9, 85.6, 16.6), "Bushy_Eyebrows": (91.8, 78.2, 93.5, 11.1), "Chubby": (95.2, 70.8, 96.0, 3.3),
    "Double_Chin": (96.1, 73.0, 96.7, 2.4), "Eyeglasses": (99.2, 97.3, 99.4, 6.2), "Goatee": (96.1, 80.9, 97.0, 5.5),
    "Gray_Hair": (97.4, 82.1, 97.9, 3.5), "Heavy_Makeup": (90.2, 87.5, 92.0, 40.0), "High_Cheekbones": (86.5, 85.6, 87.2, 45.3),
    "Male": (97.7, 97.6, 97.7, 41.7), "Mouth_Slightly_Open": (93.2, 93.5, 93.0, 48.1), "Mustache": (95.6, 63.4, 96.4, 2.2),
    "Narrow_Eyes": (93.5, 58.6, 95.6, 5.7), "No_Beard": (95.5, 96.3, 90.9, 84.1), "Oval_Face": (74.2, 58.1, 77.5, 16.8),
    "Pale_Skin": (96.6, 70.7, 97.1, 2.2), "Pointy_Nose": (76.1, 63.5, 78.9, 18.2), "Receding_Hairline": (94.2, 65.0, 95.7, 5.0),
    "Rosy_Cheeks": (94.5, 69.3, 95.6, 3.9), "Sideburns": (96.1, 82.2, 96.8, 4.6), "Smiling": (91.2, 91.7, 90.7, 48.4),
    "Straight_Hair": (83.8, 65.8, 86.8, 14.4), "Wavy_Hair": (85.2, 71.9, 91.0, 30.2),
    "Wearing_Earrings": (90.8, 80.3, 93.0, 16.9), "Wearing_Hat": (98.9, 89.8, 99.2, 3.7),
    "Wearing_Lipstick": (91.8, 88.1, 95.4, 48.9), "Wearing_Necklace": (87.9, 56.9, 88.4, 1.5),
    "Wearing_Necktie": (95.2, 75.3, 96.3, 5.1), "Young": (87.4, 88.2, 83.7, 81.5),
}  # fmt: skip
PAPER_TABLE5 = {  # printed without sign
    "Heavy_Makeup": 0.2134, "Smiling": 0.2058, "Male": 0.1203, "Young": 0.1127, "No_Beard": 0.0618, "Eyeglasses": 0.0606,
    "Gray_Hair": 0.0587, "Blond_Hair": 0.0499, "Brown_Hair": 0.0462, "Wearing_Hat": 0.0462, "Black_Hair": 0.0319,
    "Goatee": 0.0212, "Bald": 0.0108, "Bangs": 0.0016,
}  # fmt: skip


def table4(told: NDArray[Any], truth: NDArray[Any], names: tuple[str, ...]) -> dict[str, list[float | None]]:
    """Per label, in per cent: accuracy, TP/(TP+FP), TN/(TN+FN), share told positive (the paper's last column), share that is."""
    rows = {}
    for at, name in enumerate(names):
        yes, is_so = told[:, at] > 0.5, truth[:, at] > 0.5
        right = yes == is_so
        shares = (right.mean(), _share(right, yes), _share(right, ~yes), yes.mean(), is_so.mean())
        rows[name] = [None if share is None else round(100 * float(share), 2) for share in shares]
    return rows


def _share(right: NDArray[np.bool_], of: NDArray[np.bool_]) -> float | None:
    return float(right[of].mean()) if of.any() else None  # nothing was told so


def table5(labels: Labels) -> dict[str, float]:
    """Correlation of Oval_Face with each label that the map groups by."""
    column = {name: labels.values[:, i] for i, name in enumerate(labels.names)}
    return {name: round(float(np.corrcoef(column["Oval_Face"], column[name])[0, 1]), 4) for name in GROUP_LABELS}


def curve(start: Start, faces: Faces, test: Faces, work: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Figure 5: the losses of the paper's network from one of its starts, on as many faces and steps as a CPU allows."""
    net = build("resnet50", start, faces.names, size=args.size, seed=0)
    trainer = Trainer(net, replace(PAPER, batch=args.batch), epochs=args.epochs, seed=0, checkpoint=work / f"{start}.safetensors")
    chosen = np.random.default_rng(0).permutation(len(faces.crops))[: args.faces]
    watched = np.random.default_rng(1).permutation(len(test.crops))[: args.watched]
    begin = time.process_time()
    history = trainer.run(
        faces.crops[chosen], faces.labels[chosen], held=(test.crops[watched], test.labels[watched]), every=args.every,
        progress=_say(start),
    )  # fmt: skip
    told, truth = net.probabilities(test.crops[watched]), test.labels[watched]
    right = (told > 0.5) == (truth > 0.5)
    rates = faces.labels[chosen].mean(0).clip(1e-3, 1 - 1e-3)  # what knows nothing but how common each label is
    blind = -(truth * np.log(rates) + (1 - truth) * np.log(1 - rates)).mean()
    return {
        "faces": len(chosen), "epochs": args.epochs, "batch": args.batch, "size": args.size, "test faces": len(watched),
        "loss": history.loss, "test": history.held, "accuracy": round(float(right.mean()), 4),
        "base rates": [round(float(blind), 4), round(float(((rates > 0.5) == (truth > 0.5)).mean()), 4)],
        "processor seconds": round(time.process_time() - begin),
    }  # fmt: skip


def _say(what: str) -> Any:
    def say(stage: str, done: int = 0, total: int = 0, /) -> None:
        if done % 10 == 0:
            print(f"{what}: {stage} {done}/{total}", flush=True)

    return say


def train_compact(data: Path, work: Path, fine: int) -> dict[str, Any]:
    """The compact network, trained by its recipe and put into the package; its losses."""
    out = work / "compact"
    out.mkdir(exist_ok=True)
    if (work / "train.safetensors").exists() and not (out / "crops.safetensors").exists():
        shutil.copyfile(work / "train.safetensors", out / "crops.safetensors")
    images, labels = data / TRAIN / "images", data / TRAIN / "labels_derived.csv"
    start: Start = "finetuned" if fine else "frozen"
    made = train_attributes(images, labels, out, start=start, epochs=fine or HEAD_EPOCHS, progress=_say("compact"))
    shutil.copyfile(made, trained("attributes"))
    told: dict[str, Any] = json.loads((out / "training.json").read_text(encoding="utf-8"))
    return told


def run(args: argparse.Namespace, data: Path) -> None:
    """Every part that is not there yet; results are written after each."""
    path = args.results / "attributes.json"
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    args.work.mkdir(parents=True, exist_ok=True)
    args.results.mkdir(parents=True, exist_ok=True)
    listed = {name: read_labels(data / name / "labels_derived.csv") for name in (TRAIN, TEST)}
    faces = {
        name: kept_crops(args.work / f"{short}.safetensors", listed[name], partial(gather, data / name / "images", listed[name]))
        for name, short in ((TRAIN, "train"), (TEST, "test"))
    }
    test = faces[TEST]
    if args.train:
        results["compact"] = train_compact(data, args.work, args.fine)
        results.pop("table 4", None)
    if "table 4" not in results:
        net = AttributeNet.load(trained("attributes"))
        begin = time.process_time()
        told = net.probabilities(test.crops)
        results["table 4"] = {
            "rows": table4(told, test.labels, test.names), "faces": len(test.crops), "without a face": test.faceless,
            "milliseconds a face": round((time.process_time() - begin) / len(test.crops) * 1e3, 1),
        }  # fmt: skip
    results["table 5"] = {name: table5(labels) for name, labels in listed.items()}
    _write(results, args.results)
    for start in args.starts:
        if start not in results:
            results[start] = curve(start, faces[TRAIN], test, args.work, args)
            _write(results, args.results)


def _write(results: dict[str, Any], folder: Path) -> None:
    (folder / "attributes.json").write_text(json.dumps(results, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    (folder / "attributes.md").write_text(markdown(results), encoding="utf-8")
    plot(results, folder / "attributes.png")


def markdown(results: dict[str, Any]) -> str:
    """The tables, ours beside the paper's."""
    found = results["table 4"]
    rows = found["rows"]
    lines = [
        "# ATTRIBUTE: tables 4 and 5, figure 5 of MIKU-2020",
        "",
        f"Ours: the shipped compact network, learned from CelebA training faces at half size, tested on {found['faces']} faces "
        f"of CelebA's test people ({found['without a face']} images, in which no face was found, are left out). Paper: ResNet-50 "
        "(c), learned from the whole of CelebA. *Majority* is the accuracy of always giving the commoner answer.",
        "",
        f"{found['milliseconds a face']} ms of processor time a face.",
        "",
        "## Table 4: ours (paper), per cent",
        "",
        "| label | accuracy | majority | TP/(TP+FP) | TN/(TN+FN) | told positive | is positive |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (accuracy, positive, negative, told, share) in rows.items():
        paper = PAPER_TABLE4[name]
        mark = " *" if name in GROUP_LABELS else ""
        four = (accuracy, positive, negative, told)
        shown = [f"{'–' if ours is None else f'{ours:.1f}'} ({theirs})" for ours, theirs in zip(four, paper, strict=True)]
        lines.append(
            f"| {name}{mark} | {shown[0]} | {max(share, 100 - share):.1f} | {shown[1]} | {shown[2]} | {shown[3]} | {share:.1f} |"
        )
    for title, names in (("mean of 40", tuple(rows)), ("mean of the 14 (*)", GROUP_LABELS)):
        ours, paper_mean = np.mean([rows[n][0] for n in names]), np.mean([PAPER_TABLE4[n][0] for n in names])
        majority = np.mean([max(rows[n][4], 100 - rows[n][4]) for n in names])
        lines.append(f"| **{title}** | {ours:.1f} ({paper_mean:.1f}) | {majority:.1f} | | | | |")
    lines += [
        "",
        "## Table 5: correlation of Oval_Face with the labels of the G map",
        "",
        "The paper prints no signs.",
        "",
        "| label | training faces | test faces | paper |",
        "|---|---|---|---|",
    ]
    for name, value in PAPER_TABLE5.items():
        lines.append(f"| {name} | {results['table 5'][TRAIN][name]:+.4f} | {results['table 5'][TEST][name]:+.4f} | {value} |")
    lines += ["", "## Figure 5: losses of ResNet-50 from the paper's starts", "", "![losses](attributes.png)", ""]
    lines += ["| start | faces × epochs | batch | side | first 10 steps | last 10 steps | test loss | accuracy on test faces |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for start, title in STARTS.items():
        one = results.get(start)
        if one:
            first, last = np.mean(one["loss"][:10]), np.mean(one["loss"][-10:])
            lines.append(
                f"| {title} | {one['faces']} × {one['epochs']} | {one['batch']} | {one['size']} | {first:.3f} | {last:.3f} "
                f"| {one['test'][-1][1]:.3f} | {100 * one['accuracy']:.1f} % ({one['test faces']} faces) |"
            )
    blind = next((results[start]["base rates"] for start in STARTS if start in results), None)
    if blind:
        lines += [
            "",
            f"Knowing nothing but how common each label is gives a test loss of {blind[0]:.3f} and {100 * blind[1]:.1f} %.",
        ]
    if "compact" in results:
        lines += ["", "The compact network's training (held-out faces are of the training set):", ""]
        lines += ["| phase | epochs | first 10 steps | last 10 steps | held-out loss |", "|---|---|---|---|---|"]
        for phase in results["compact"]["phases"]:
            what = "head, trunk frozen" if phase["frozen"] else "all but the first stage"
            first, last = np.mean(phase["loss"][:10]), np.mean(phase["loss"][-10:])
            lines.append(f"| {what} | {phase['epochs']} | {first:.3f} | {last:.3f} | {phase['held'][-1][1]:.3f} |")
    return "\n".join(lines) + "\n"


def plot(results: dict[str, Any], path: Path) -> None:
    """Losses over steps: left the paper's network from three starts, right the compact one."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for (start, title), colour in zip(STARTS.items(), ("C0", "C1", "C2"), strict=True):
        if start in results:
            one = results[start]
            left.plot(*_smooth(one["loss"], 10), color=colour, alpha=0.5)
            left.plot(*zip(*one["test"], strict=True), color=colour, marker="o", markersize=3, label=title)
    left.set(title="ResNet-50 (line: training, dots: test)", xlabel="step", ylabel="binary cross entropy")
    past = 0
    for phase in results.get("compact", {}).get("phases", []):
        x, y = _smooth(phase["loss"], 50)
        right.plot(np.asarray(x) + past, y, color="C3" if phase["frozen"] else "C4", alpha=0.5)
        steps, losses = zip(*phase["held"], strict=True)
        label = "head alone" if phase["frozen"] else "fine-tuned"
        right.plot(
            np.asarray(steps) + past, losses, color="C3" if phase["frozen"] else "C4", marker="o", markersize=3, label=label
        )
        past += len(phase["loss"])
    right.set(title="compact (dots: held out)", xlabel="step")
    for axis in (left, right):
        axis.grid(alpha=0.3)
        if axis.lines:
            axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _smooth(values: list[float], window: int) -> tuple[NDArray[Any], NDArray[Any]]:
    window = min(window, len(values))
    return np.arange(window, len(values) + 1), np.convolve(values, np.full(window, 1 / window), "valid")


def quick(data: Path) -> None:
    """Table 4 on 60 faces and table 5, printed."""
    listed = read_labels(data / TEST / "labels_derived.csv")
    few = Labels(listed.images[:60], listed.names, listed.values[:60])
    faces = gather(data / TEST / "images", few)
    rows = table4(AttributeNet.load(trained("attributes")).probabilities(faces.crops), faces.labels, faces.names)
    print(f"mean accuracy of {len(faces.crops)} faces: {np.mean([row[0] for row in rows.values()]):.1f} %")
    print(f"correlation of Oval_Face: {table5(listed)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="60 faces, nothing is written")
    parser.add_argument("--train", action="store_true", help="train the compact network and put it into the package")
    parser.add_argument(
        "--fine", type=int, default=1, help="epochs of fine-tuning the compact network after its head has learned"
    )
    parser.add_argument("--starts", nargs="*", default=list(get_args(Start)), choices=get_args(Start), help="curves of figure 5")
    parser.add_argument("--faces", type=int, default=4000, help="training faces for figure 5")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=96, help="side of the pictures for figure 5")
    parser.add_argument("--watched", type=int, default=500, help="test faces for the test curve")
    parser.add_argument("--every", type=int, default=50, help="steps between points of the test curve")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "omokage-attributes")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    folder = os.environ.get("OMOKAGE_DATA")
    if not folder:
        raise InputError(f"set OMOKAGE_DATA to the folder that holds {TRAIN} and {TEST} (see docs/data.md)")
    quick(Path(folder)) if args.quick else run(args, Path(folder))


if __name__ == "__main__":
    main()
