"""Messages that no test asks for yet, with … for what changes; see test_errors.py. Take off what you have written a test for."""

from __future__ import annotations

UNTESTED: dict[str, set[str]] = {
    "base/files.py": {
        "… appeared while it was being written, and was left as it is",
    },
    "base/reading.py": {
        "… grew while it was read: try again",
    },
    "base/workers.py": {
        "a worker process was stopped, perhaps for want of memory: try --workers 1",
    },
    "evaluate/rulers.py": {
        "the noise's likelihood is measured in steps of up to 4096 coordinates, and there are …",
    },
    "evaluate/spaces.py": {
        "the map has no place for these rows",
    },
    "faces/group_photo.py": {
        "k = … needs a crowd of at least … others, but it has …: add photos, or lower k",
    },
    "faces/image.py": {
        "it cannot be decoded (…)",
        "it has … bytes, more than … million",
        "its grey values are not of 8 or 16 bits",
    },
    "faces/recognize.py": {
        "face recognition",
    },
    "faces/training/attribute_data.py": {
        "framing must be 'find' or 'whole', but it is …",
        "it is … × … pixels, but a crop is square",
        "the list of labels … is not a text file in UTF-8",
        "there is no folder … of images",
        "… names a column twice",
    },
    "faces/training/attribute_learning.py": {
        "… is damaged (…): remove it to start anew",
        "… is of another training (other data, epochs, seed or network): ask for the same again, or write to another folder",
    },
    "faces/training/attributes.py": {
        "the folder … cannot be made: …",
        "there is no backbone …: they are …",
        "… holds the faces of another list of labels: write to another folder",
        "… is damaged (…): remove it to cut the faces out anew",
    },
    "learn/accounting.py": {
        "epsilon=… is so large that hardly any noise is left; take a smaller one",
    },
    "learn/classifier.py": {
        "…, got ……",
    },
    "learn/descent.py": {
        "… rows are too many to add up exactly enough at once; take a smaller batch_size",
    },
    "learn/loading.py": {
        "columns without names must be numbers without cuts",
        "the layers are not those of the schema and the settings",
        "the privacy statement is about another network",
        "the settings are not those of …",
        "the weights hold other tensors than the layers need",
        "…: the weights are not those that the privacy statement was made for",
        "…: … must say format …: learn the model anew with this version",
    },
    "learn/network.py": {
        "training diverged: a parameter is not finite after …; take a smaller learning_rate",
    },
    "learn/schema.py": {
        "column …: bounds of whole numbers must lie within ±2**53",
    },
    "method/fitting.py": {
        "the map … came back with … of … columns",
    },
    "method/maps/autoencoder.py": {
        "the autoencoder's loss is no longer a number: lower learning_rate",
    },
    "networks/checkpoints.py": {
        "it is a TensorFlow network; convert it with the legacy.py of NVIDIA's PyTorch version first",
        "it names …, and only tensors are readits pickle is broken",
        "its layers' conv_clamp is not one positive number or None for all",
        "its modules are not of version … of NVIDIA's format",
        "its pickle remembers more objects than it can hold",
        "its records are compressed or overlap, and torch writes them plainly",
        "the bytes of a storage are not a storage",
        "the filter … is not [1, 3, 3, 1], as it is in StyleGAN2",
        "…… is not …, as it is in StyleGAN2",
    },
    "networks/fetch.py": {
        "… is fetched with …, which is not installed here",
        "…; OMOKAGE_HOME sets another place for models",
    },
    "networks/generator.py": {
        "size=…, batch=…: the size has to divide …, the batch be 1 or more",
    },
    "networks/mobilestylegan.py": {
        "exit=…: the generator has maps of 8, 16, … … px",
    },
    "networks/mobilestylegan_ir.py": {
        "…: larger than … bytes, so this is not the published graph",
    },
    "networks/stylegan2.py": {
        "exit=…: the generator has maps of 4, 8, … … px",
        "the tensor … is missing or has not … dimensions",
    },
    "networks/torchscript.py": {
        "a record is compressed, and TorchScript writes them uncompressed",
        "a storage has not the type or the length that its tensor says",
        "it has not exactly one data.pkl",
        "its numbers are not little-endian",
        "its pickle remembers more objects than it can hold",
        "its records overlap",
        "its tree has names over … letters or more than … attributes",
    },
    "release/key.py": {
        "no key was begun",
    },
    "release/verify.py": {
        "the key links … records, but the release has …",
    },
    "tables/datasets.py": {
        "set OMOKAGE_DATA to the folder that holds otto/train.csv.zip (see docs/data.md)",
    },
    "tables/header.py": {
        "a column name that was given is empty: give a name for each column",
    },
    "tables/roles.py": {
        "person must be the name of one column, such as 'patient'",
    },
}
