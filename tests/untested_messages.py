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
    "evaluate/linked.py": {
        "… has …, but the key links …: read it as you did for the release",
    },
    "faces/recognize/embedding.py": {
        "face recognition",
    },
    "learn/loading.py": {
        "its layers do not match the schema and the settings",
        "its privacy statement is about another network",
        "its settings are not those of …",
        "its weights hold tensors that the layers do not have",
        "… is damaged (…): learn the model again",
        "…: … does not have the format …: learn the model again with this version",
        "…: … is damaged (…): learn the model again",
    },
    "networks/checkpoints.py": {
        "it is a TensorFlow network; convert it with the legacy.py of NVIDIA's PyTorch version first",
        "it names …, and only tensors are readits pickle is broken",
        "its layers' conv_clamp is not one positive number or None for all",
        "its modules are not of version … of NVIDIA's format",
        "its records are compressed or overlap, and torch writes them plainly",
        "the bytes of a storage are not a storage",
        "the filter … is not [1, 3, 3, 1], as it is in StyleGAN2",
        "…… is not …, as it is in StyleGAN2",
    },
    "networks/fetch.py": {
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
        "the tensor … holds values that are not finite numbers",
        "the tensor … is missing or has not … dimensions",
    },
    "networks/torchscript.py": {
        "a record is compressed, and TorchScript writes them uncompressed",
        "a storage has not the type or the length that its tensor says",
        "it has not exactly one data.pkl",
        "its numbers are not little-endian",
        "its records overlap",
        "its tree has names over … letters or more than … attributes",
    },
    "networks/unpickling.py": {
        "its pickle refers to records that such a file does not have",
        "its pickle remembers more objects than it can hold",
    },
    "release/key.py": {
        "no key was begun",
    },
    "tables/datasets.py": {
        "set OMOKAGE_DATA to the folder that holds otto/train.csv.zip (see docs/data.md)",
    },
    "tables/roles.py": {
        "person must be the name of one column, such as 'patient'",
    },
}
