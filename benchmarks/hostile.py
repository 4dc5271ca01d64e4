"""Hostile inputs: thousands of damaged and odd files through reading, anonymizing, writing and verifying.

Tables go the whole way; certificates and keys are laid beside a good release, and ``verify`` must refuse them.

    python benchmarks/hostile.py --inputs 5000

Each input may be released or refused with one sentence. Anything else is a fault: a traceback, a crash, a release that does
not verify, more than ten seconds. Inputs are made from a seed, so each fault can be made again: --kind csv --only 17. They run
in processes of their own, because a damaged file may end the process that reads it.
"""

from __future__ import annotations

import argparse
import atexit
import io
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

SLOW, HANGS = 10.0, 300.0  # seconds of processor time, and of waiting for a result on a busy machine
MEMORY = 6 << 30  # bytes a worker may take
TOKENS = [
    b"", b",", b";", b"\t", b'"', b'""', b"\n", b"\r\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"NaN", b"inf", b"-0", b"1e309",
    b"9223372036854775807", b"18446744073709551616", b"1" * 400, b"1e-310", b"0x1F", b"=cmd|' /C calc'!A0", b"^a$", b"*", b"'",
    "ée\u0301\u202e\U0001f600".encode(), b"2020-02-30", b"9999-12-31", b"0000-00-00", b"true", b"null", b"x" * 5000,
]  # fmt: skip
NAMES = ["a", "*", "^a", " b ", "", "c0", "class", "x\ny", "=1+1", "é", "1", "2020-01-01", "a,b", "\0", "value", "j" * 300]
UNIFIERS = ["mean", "median", "mode", "range", "set", "prefix", "suppress"]


# ---------------------------------------------------------------------- making inputs


def frame(rng: np.random.Generator) -> pl.DataFrame:
    """A small table of odd columns."""
    n = int(rng.integers(1, 40))
    columns: dict[str, pl.Series] = {}
    for _ in range(int(rng.integers(1, 6))):
        name = str(rng.choice(NAMES)) if rng.random() < 0.3 else f"column {rng.integers(100)}"
        values = _values(rng, n)
        mask = rng.random(n) < rng.choice([0.0, 0.2, 1.0], p=[0.6, 0.35, 0.05])
        columns[name] = pl.select(pl.when(pl.Series(~mask)).then(values).alias(name)).to_series()
    return pl.DataFrame(columns)


def _values(rng: np.random.Generator, n: int) -> pl.Series:
    few = rng.integers(0, max(2, n // 3), n)
    kinds: list[Callable[[], pl.Series]] = [
        lambda: pl.Series(few),
        lambda: pl.Series(rng.integers(-(2**63), 2**63 - 1, n)),
        lambda: pl.Series(rng.integers(0, 2**64 - 1, n, dtype=np.uint64)),
        lambda: pl.Series(few, dtype=pl.Int8, strict=False),
        lambda: pl.Series(rng.normal(size=n) * 10.0 ** rng.integers(-320, 300)),
        lambda: pl.Series(
            rng.choice([0.0, -0.0, 1e-310, 1e300, float("nan"), float("inf")], n, p=[0.4, 0.3, 0.2, 0.06, 0.02, 0.02])
        ),
        lambda: pl.Series(few * 1.5, dtype=pl.Float32),
        lambda: pl.Series([f"{v:05d}" for v in few]),
        lambda: pl.Series([f"word {v}" for v in few]),
        lambda: pl.Series([TOKENS[v % len(TOKENS)].decode("utf-8", "replace") for v in few]),
        lambda: pl.Series(few % 2 == 0),
        lambda: pl.Series(few * 400 - 700_000).cast(pl.Date),
        lambda: pl.Series(few * 10**9).cast(pl.Datetime("us")),
        lambda: pl.Series(few * 10**9).cast(pl.Datetime("ns", "Europe/Berlin")),
        lambda: pl.Series(rng.integers(-(2**31), 2**31 - 1, n)).cast(pl.Int32).cast(pl.Date),
        lambda: pl.Series(rng.integers(-(2**62), 2**62, n)).cast(pl.Datetime("ms")),
        lambda: pl.Series([f"c{v}" for v in few], dtype=pl.Categorical),
        lambda: pl.Series([f"e{v}" for v in few], dtype=pl.Enum([f"e{v}" for v in range(n + 2)])),
        lambda: pl.Series(few).cast(pl.Decimal(20, 2)),
        lambda: pl.Series([[1, 2]] * n),
        lambda: pl.Series([b"\xff"] * n),
        lambda: pl.Series([None] * n),
        lambda: pl.Series(few).cast(pl.Time),
        lambda: pl.Series(few).cast(pl.Duration("us")),
        lambda: pl.Series([int(v) << 70 for v in few], dtype=pl.Int128),
    ]
    return kinds[int(rng.integers(len(kinds)))]()


def csv(rng: np.random.Generator, separator: str = ",") -> bytes:
    table = frame(rng)
    as_text = pl.selectors.categorical() | pl.selectors.enum() | pl.selectors.temporal()
    unwritable = pl.selectors.nested() | pl.selectors.binary() | pl.selectors.duration()
    plain = table.select(pl.selectors.exclude(unwritable)).with_columns(as_text.to_physical())
    plain = plain if plain.width else pl.DataFrame({"a": [1, 2, 3]})
    content = plain.write_csv(separator=separator, include_header=bool(rng.random() < 0.9)).encode()
    return content.replace(b"7", b"2020-01-0") if rng.random() < 0.1 else content


def parquet(rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    packing: Any = str(rng.choice(["zstd", "snappy", "uncompressed", "lz4"]))
    frame(rng).write_parquet(out, compression=packing)
    return out.getvalue()


def feather(rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    packing: Any = str(rng.choice(["zstd", "lz4", "uncompressed"]))
    frame(rng).write_ipc(out, compression=packing)
    return out.getvalue()


def _array(rng: np.random.Generator) -> np.ndarray:
    n, d = int(rng.integers(0, 30)), int(rng.integers(0, 5))
    kinds = [
        "<f8",
        ">f8",
        "<f4",
        "<f2",
        "<i8",
        "<u8",
        "|i1",
        "|b1",
        "<U3",
        "|S3",
        "<M8[D]",
        "<M8[s]",
        "<m8[s]",
        "<c16",
        "longdouble",
    ]
    shape = [(n, d), (n,), (), (n, 2, 2)][int(rng.choice(4, p=[0.7, 0.2, 0.05, 0.05]))]
    return rng.integers(-9, 99, shape).astype(str(rng.choice(kinds)))


def npy(rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    array = np.asarray(_array(rng))
    np.save(out, np.asfortranarray(array) if rng.random() < 0.3 else array)
    return out.getvalue()


def npz(rng: np.random.Generator) -> bytes:
    out = io.BytesIO()
    arrays = {str(rng.choice(["x", "y", "x_1", "é", "a/b", "^a$", " "])): _array(rng) for _ in range(int(rng.integers(1, 4)))}
    save: Any = np.savez_compressed if rng.random() < 0.5 else np.savez
    save(out, **arrays)
    return out.getvalue()


@lru_cache(maxsize=1)
def good_release() -> Path:
    """A release with its key, made once in a process: what certificates and keys are taken from, and judged beside."""
    from omokage import Anonymizer, LDiversity, Mondrian, Roles, read_table

    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    rows = "".join(f"p{i // 2:03d},{20 + i % 37},{'flu' if i % 3 else 'cold'}\n" for i in range(120))
    (place / "in.csv").write_text("who,age,ill\n" + rows)
    anonymizer = Anonymizer(Mondrian(4, n_jobs=1), constraints=[LDiversity(2)], random_state=0)
    release = anonymizer.release(read_table(place / "in.csv"), roles=Roles(quasi=["age"], sensitive=["ill"], person="who"))
    release.write(place / "out", key=place / "key.json")
    return place


JUDGED = {"certificate": "out/certificate.json", "key": "key.json"}
KINDS: dict[str, Callable[[np.random.Generator], bytes]] = {
    "csv": csv, "tsv": lambda rng: csv(rng, "\t"), "parquet": parquet, "feather": feather, "npy": npy, "npz": npz,
    **{kind: lambda rng, file=file: (good_release() / file).read_bytes() for kind, file in JUDGED.items()},  # type: ignore[misc]
}  # fmt: skip


def damaged(content: bytes, rng: np.random.Generator, other: bytes) -> bytes:
    """The bytes flipped, cut, spliced, or with something odd in them."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(out) + 1))
        end = min(len(out), at + int(rng.integers(1, 64)))
        way = int(rng.integers(7))
        if way == 0 and out:
            out[at % len(out)] ^= 1 << int(rng.integers(8))
        elif way == 1:
            del out[at:end]
        elif way == 2:
            out[at:at] = out[at:end] * int(rng.integers(1, 4))
        elif way == 3:
            out[at:end] = other[at : at + int(rng.integers(1, 400))]
        elif way == 4:
            out[at:at] = TOKENS[int(rng.integers(len(TOKENS)))]
        elif way == 5:
            out[at:end] = rng.bytes(end - at)
        elif rng.random() < 0.3:
            del out[at:]
    return bytes(out)


def made(kind: str, number: int, seed: int) -> tuple[bytes, np.random.Generator]:
    """Input ``number`` of a kind, and the generator that goes on to choose how it is anonymized."""
    rng = np.random.default_rng([seed, number, sorted(KINDS).index(kind)])
    content = KINDS[kind](rng)
    if kind in JUDGED or rng.random() < 0.6:
        content = damaged(content, rng, KINDS[str(rng.choice(sorted(KINDS)))](rng))
    return content, rng


# ---------------------------------------------------------------------- what becomes of them


def outcome(kind: str, number: int, seed: int, folder: Path) -> str:
    """``released``, ``refused``, or the fault."""
    from omokage.errors import OmokageError

    content, rng = made(kind, number, seed)
    source = folder / f"in.{kind}"
    source.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _judged(kind, content, folder) if kind in JUDGED else _through(source, folder / f"out{number}", rng)
    except OmokageError as error:
        return "refused" if "Traceback" not in str(error) else "traceback in a message"
    except MemoryError:
        return "memory"
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 - that is what is looked for
        return "traceback: " + traceback.format_exc().strip().replace("\n", " | ")[-400:]


def _through(source: Path, out: Path, rng: np.random.Generator) -> str:
    from omokage import Anonymizer, Laplace, Mondrian, Roles, read_table, verify
    from omokage.tables.containers import raw_parts
    from omokage.tables.unify import UNIFIERS as FITTING

    header = (None, None, True, False)[rng.integers(4)] if source.suffix in (".csv", ".tsv") else None
    table = read_table(source, header=header)
    columns = table.frame.columns
    quasi = columns if rng.random() < 0.5 else columns[: 1 + len(columns) // 2]
    unify = {name: str(rng.choice(UNIFIERS)) for name in quasi if rng.random() < 0.4}
    unify = {name: how for name, how in unify.items() if table.kinds[name] in FITTING[how].kinds}
    person = columns[-1] if rng.random() < 0.2 and columns[-1] not in quasi else None
    settings: dict[str, Any] = {
        "digits": int(rng.integers(1, 20)) if rng.random() < 0.5 else None,
        "rare": str(rng.choice(["hide", "show"], p=[0.8, 0.2])),
        "escape_formulas": bool(rng.random() < 0.3),
    }
    if rng.random() < 0.1:
        anonymizer, unify = Anonymizer(noise=Laplace(1.0), random_state=0), {}
    else:
        anonymizer = Anonymizer(Mondrian(int(rng.integers(2, 4)), n_jobs=1), random_state=0)
    rest: Any = str(rng.choice(["keep", "drop", "sensitive"]))
    roles = Roles(quasi=quasi, person=person, rest=rest)
    key = out.with_suffix(".json")
    release = anonymizer.release(table, roles=roles, unify=unify, **settings)
    release.write(out, key=key)
    file = next(out.glob("data.*"))
    list(raw_parts(file.name, file.read_bytes()))
    return "released" if verify(out, key=key).passed else "fault: released but not verified"


def _judged(kind: str, content: bytes, folder: Path) -> str:
    """Whether ``verify`` lets a damaged certificate or key pass."""
    from omokage import verify

    place, good = folder / "judged", (good_release() / JUDGED[kind]).read_bytes()
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(good_release(), place)
    (place / JUDGED[kind]).write_bytes(content)
    passed = verify(place / "out", key=place / "key.json").passed
    return "refused" if not passed else "released" if kind == "key" or content == good else "fault: a forged certificate passed"


# ---------------------------------------------------------------------- running them


def work(kind: str, numbers: range, seed: int) -> None:
    """A worker: a line for each input, before and after it."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    good_release()  # compiles what is compiled once
    with tempfile.TemporaryDirectory() as folder:
        outcome("csv", 0, 3, Path(folder))  # compiles the kernels, which is no input's fault
        for number in numbers:
            begun = time.process_time()
            result = outcome(kind, number, seed, Path(folder))
            print(f"{number}\t{time.process_time() - begun:.3f}\t{result}", flush=True)


def run(kind: str, inputs: int, seed: int) -> list[tuple[int, float, str]]:
    """All inputs of a kind, by workers that are started again after one that ended."""
    results: list[tuple[int, float, str]] = []
    while len(results) < inputs:
        begin = len(results)
        command = [sys.executable, __file__, "--worker", kind, str(begin), str(inputs), "--seed", str(seed)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert worker.stdout is not None
        buffer = b""
        while len(results) < inputs:
            ready, _, _ = select.select([worker.stdout], [], [], HANGS)
            piece = os.read(worker.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                break
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                number, seconds, result = line.decode("utf-8", "replace").split("\t", 2)
                results.append((int(number), float(seconds), result))
        if worker.poll() is None and len(results) < inputs:
            os.kill(worker.pid, signal.SIGKILL)
        code = worker.wait()
        if len(results) < inputs:
            what = f"hang: more than {HANGS:g} s" if not ready else f"crash: the process ended with {code}"
            results.append((len(results), HANGS if not ready else 0.0, what))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--inputs", type=int, default=5000, help="in all, shared by the kinds")
    parser.add_argument("--kind", choices=sorted(KINDS), action="append", help="only these kinds")
    parser.add_argument("--only", type=int, help="make this one input again, in this process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        kind, begin, end = options.worker
        work(kind, range(int(begin), int(end)), options.seed)
        return 0
    kinds = options.kind or sorted(KINDS)
    if options.only is not None:
        with tempfile.TemporaryDirectory() as folder:
            print(outcome(kinds[0], options.only, options.seed, Path(folder)).replace(" | ", "\n"))
        return 0
    total: Counter[str] = Counter()
    print(f"{'kind':10}{'inputs':>8}{'released':>10}{'refused':>9}{'faults':>8}{'slow':>6}{'slowest':>9}")
    for kind in kinds:
        results = run(kind, -(-options.inputs // len(kinds)), options.seed)
        faults = [r for r in results if r[2] not in ("released", "refused")]
        counts = Counter(r[2] for r in results)
        slow = sum(seconds > SLOW for _, seconds, _ in results)
        total.update(
            {"inputs": len(results), "faults": len(faults), "slow": slow, **{w: counts[w] for w in ("released", "refused")}}
        )
        slowest = max(seconds for _, seconds, _ in results)
        print(
            f"{kind:10}{len(results):8}{counts['released']:10}{counts['refused']:9}{len(faults):8}{slow:6}{slowest:8.1f}s",
            flush=True,
        )
        for number, _, what in faults[:20]:
            print(f"    {kind} {number}: {what}")
    print(f"{'all':10}{total['inputs']:8}{total['released']:10}{total['refused']:9}{total['faults']:8}{total['slow']:6}")
    return 1 if total["faults"] or total["slow"] else 0


if __name__ == "__main__":
    sys.exit(main())
