"""PyTorch's names for what is done to whole models, to their weights, and to sequences."""

from ..clip import clip_grad_norm_, clip_grad_value_, get_total_norm
from . import parametrizations, parametrize, prune, rnn
from .convert import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    parameters_to_vector,
    vector_to_parameters,
)
from .norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm
from .skipping import skip_init
