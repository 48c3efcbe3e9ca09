"""Optimisers and learning-rate schedules, named as in PyTorch."""

from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD
