"""Networks that you may give away: four ways to learn one under differential privacy, and what each promises.

Start with ``DPSGD`` for the best predictions at an (ε, δ), ``AnonymizedLearning`` for a pure ε,
``AnonymizingFirst`` if you want a synthetic table as well. ``LearningFirst`` is the paper's; its guarantee
for the whole model is poor at every useful accuracy.
"""

from omokage.learn.anonymized_learning import AnonymizedLearning
from omokage.learn.anonymizing_first import AnonymizingFirst
from omokage.learn.attacking import Attack, attack
from omokage.learn.auditing import Audit, audit
from omokage.learn.classifier import NotPrivateWarning
from omokage.learn.dp_sgd import DPSGD
from omokage.learn.learning_first import LearningFirst
from omokage.learn.loading import load_model
from omokage.learn.privacy import Privacy
from omokage.learn.saving import APPROACHES, save_model
from omokage.learn.schema import Categorical, Numeric, Schema, load_schema

__all__ = [
    "APPROACHES",
    "DPSGD",
    "AnonymizedLearning",
    "AnonymizingFirst",
    "Attack",
    "Audit",
    "Categorical",
    "LearningFirst",
    "NotPrivateWarning",
    "Numeric",
    "Privacy",
    "Schema",
    "attack",
    "audit",
    "load_model",
    "load_schema",
    "save_model",
]
