"""Transforms of pictures and tensors, named as in `torchvision.transforms`."""

from . import functional
from .augmentation import (
    RandAugment,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomPosterize,
    RandomSolarize,
    TrivialAugmentWide,
)
from .classes import (
    CenterCrop,
    ColorJitter,
    Compose,
    ConvertImageDtype,
    FiveCrop,
    GaussianBlur,
    Grayscale,
    Lambda,
    Normalize,
    Pad,
    PILToTensor,
    RandomAffine,
    RandomApply,
    RandomChoice,
    RandomCrop,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomInvert,
    RandomOrder,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    TenCrop,
    ToDtype,
    ToImage,
    ToPILImage,
    ToTensor,
)
from .functional import InterpolationMode
from .policies import AugMix, AutoAugment, AutoAugmentPolicy
from .warps import ElasticTransform, LinearTransformation, RandomPerspective
