"""Where an optional part is not installed, one sentence says which, and the command that installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from omokage.errors import MissingExtra

BARE = ("cv2", "PIL", "torch", "dlib", "onnxruntime", "platformdirs", "pandas", "safetensors", "opendp", "dp_accounting",
        "jinja2", "matplotlib")  # fmt: skip
PICTURES_ONLY = tuple(name for name in BARE if name not in ("cv2", "PIL"))
MISSING = [  # what is not installed, a statement, what it is needed for, the extra
    (BARE, "from omokage.faces import image", "photo support", "faces"),
    (BARE, "from omokage import networks; networks.home()", "the model zoo", "faces"),
    (BARE, "from omokage.networks.fetch import ZOO, _converter; _converter(ZOO['inception'])", "the model inception", "faces"),
    (BARE, "from omokage.method.maps.autoencoder import _torch; _torch()", "the autoencoder", "neural"),
    (BARE, "from omokage.learn.accounting import dp_accounting as a; a('pld')", "privacy accounting (dp-accounting)", "dp"),
    (BARE, "from omokage.learn.saving import safetensors; safetensors()", "support for model files (safetensors)", "dp"),
    (BARE, "from omokage.learn.noise import opendp; opendp()", "secure noise (OpenDP)", "dp"),
    (BARE, "from omokage.report.page import _render; _render('x')", "support for reports", "report"),
    (BARE, "from omokage.report.plots import _figure; _figure(1, 1)", "support for reports", "report"),
    (BARE, "from omokage.tables.table import as_table; as_table(Frame())", "support for pandas frames", "pandas"),
    (BARE, "from omokage.faces import find", "photo support", "faces"),
    (BARE, "from omokage.faces import recognize; recognize.ArcFace()", "face recognition", "faces"),
    (PICTURES_ONLY, "from omokage.faces import find", "face detection", "faces"),
    (PICTURES_ONLY, "from omokage.faces import parse", "face parsing", "faces"),
    (PICTURES_ONLY, "from omokage.faces.maps import attribute", "the attribute map", "faces"),
]  # fmt: skip


@pytest.fixture(scope="module")
def bare() -> list[str]:
    """What each of these says in an interpreter without the optional parts."""
    code = (
        "import json, sys\n"
        "class Gone:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in missing: raise ModuleNotFoundError(name, name=name)\n"
        "class Frame:\n"
        "    def reset_index(self, drop): import pandas\n"
        "sys.meta_path.insert(0, Gone())\n"
        "told = []\n"
        "for missing, statement, *_ in json.loads(sys.argv[1]):\n"
        "    try: exec(statement)\n"
        "    except Exception as error: told.append(f'{type(error).__name__}: {error}')\n"
        "    else: told.append('nothing')\n"
        "print(json.dumps(told))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMOKAGE_HOME"}
    command = [sys.executable, "-c", code, json.dumps(MISSING)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(MISSING)), ids=[f"{what}-{extra}" for *_, what, extra in MISSING])
def test_a_missing_extra_says_what_to_install(bare, number):
    *_, what, extra = MISSING[number]
    assert bare[number] == f"MissingExtra: {MissingExtra(what, extra)}"
    assert bare[number].endswith(f"pip install 'omokage[{extra}]'")
