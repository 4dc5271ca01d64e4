"""A folder of faces through the same pipeline as a table: people who do not exist, so no photo of anybody is needed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from omokage import Anonymizer, Cells, verify
from omokage.faces import FaceFolder
from omokage.faces.crowd import drawn_faces
from omokage.faces.maps.morph import Morph
from omokage.faces.maps.recognition import Recognition

PEOPLE = 12


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        photos, out = Path(place) / "photos", Path(place) / "out"
        photos.mkdir()
        for number in range(PEOPLE):  # drawn by a generator, once, and kept beside the networks
            shutil.copy(drawn_faces(PEOPLE) / f"{number:04d}.png", photos)
        anonymizer = Anonymizer(Cells(k=4), group_map=Recognition(), synthesis_map=Morph(128), random_state=0)
        release = anonymizer.release(FaceFolder(photos, workers=1))
        release.write(out)
        print(f"{len(release.data)} faces, {release.certificate.found.groups} different pictures of {release.data[0].shape}")
        print(f"{release.certificate.promised()}: {'kept' if verify(out).passed else 'broken'}")


if __name__ == "__main__":
    main()
