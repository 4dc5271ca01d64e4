"""Messages that no test asks for yet, with … for what changes; see test_errors.py. Take off what you have written a test for."""

from __future__ import annotations

UNTESTED: dict[str, set[str]] = {
    "faces/group_photo.py": {
        "k = … needs a crowd of at least … others, but it has …: add photos, or lower k",
    },
    "faces/image.py": {
        "it cannot be decoded (…)",
        "it has … bytes, more than … million",
        "its grey values are not of 8 or 16 bits",
    },
    "faces/maps/__init__.py": {
        "there is no file … to take the … from",
        "… cannot …: choose …, and give … as the group map",
    },
    "faces/maps/attribute.py": {
        "the weights cannot be kept: … holds numbers that are not finite in half precision",
        "there is no backbone …: they are …",
    },
    "faces/maps/inversion.py": {
        "rate=…, perceptual=…, keep=…, refresh=…, patience=…: the rate has to be above 0, the weights 0 or more, the numbers of steps 1 or more",  # noqa: E501
        "… portraits, but … styles to start from",
    },
    "faces/maps/latent.py": {
        "LATENT cannot decode a vector of … numbers: it needs … × …",
        "size=…: LATENT draws … pixels, so the size has to divide …",
        "size=…: the generator draws … pixels: give a divisor of it",
        "the encoder was made for another generator: train one for this",
    },
    "faces/maps/morph.py": {
        "MORPH at … pixels cannot decode a vector of … numbers",
    },
    "faces/recognize/embedding.py": {
        "face recognition",
    },
    "faces/training/attribute_data.py": {
        "framing must be 'find' or 'whole', but it is …",
        "it is … × … pixels, but a crop is square",
        "there is no folder … of images",
    },
    "faces/training/attribute_learning.py": {
        "… is damaged (…): remove it to start anew",
        "… is of another training (other data, epochs, seed or network): ask for the same again, or write to another folder",
    },
    "faces/training/attributes.py": {
        "the folder … cannot be made: …",
        "there is no backbone …: they are …",
        "… is damaged (…): remove it to cut the faces out anew",
    },
    "method/fitting.py": {
        "the map … came back with … of … columns",
    },
    "method/maps/autoencoder.py": {
        "the autoencoder's loss is no longer a number: lower learning_rate",
    },
}
