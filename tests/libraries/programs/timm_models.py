"""Image classifiers of timm at small sizes."""

from copy import deepcopy
from functools import partial

import torch
import torch.nn.functional as F
from comparison import main
from torch import nn

# isort: split
from timm.layers import get_act_layer
from timm.models import (
    convnext,
    deit,
    densenet,
    efficientnet,
    mlp_mixer,
    mobilenetv3,
    regnet,
    resnet,
    swin_transformer,
    vision_transformer,
)
from timm.models._efficientnet_blocks import SqueezeExcite
from timm.models._efficientnet_builder import decode_arch_def

SIZE = 32  # of the images


def case(kind, *args, **options):
    def build():
        return kind(*deepcopy(args), num_classes=10, **options)  # timm empties lists of stages

    def inputs():
        return {"images": torch.randn(4, 3, SIZE, SIZE), "labels": torch.tensor([1, 7, 0, 3])}

    def forward(model, given):
        logits = model(given["images"])
        return [F.cross_entropy(logits, given["labels"]), logits]

    return build, inputs, forward


# Stages in timm's notation: kind of block, repeats, kernel, stride, expansion, channels, gate.
B0 = [["ds_r1_k3_s1_e1_c8_se0.25"], ["ir_r2_k3_s2_e6_c12_se0.25"], ["ir_r1_k5_s2_e6_c16_se0.25"]]
SMALL = [["ds_r1_k3_s2_e1_c8_se0.25_nre"], ["ir_r2_k5_s2_e4_c16_se0.25"], ["cn_r1_k1_s1_c48"]]

VIT = {"img_size": SIZE, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3}
REGNET = {"depth": 4, "w0": 16, "wa": 16.0, "wm": 1.4, "group_size": 8}
CASES = {
    "resnet": case(resnet.ResNet, resnet.BasicBlock, (1, 1, 1, 1), channels=(8, 12, 16, 24)),
    "efficientnet": case(
        efficientnet.EfficientNet, decode_arch_def(B0), num_features=48, stem_size=8,
        act_layer=get_act_layer("silu"),
    ),
    "mobilenetv3": case(
        mobilenetv3.MobileNetV3, decode_arch_def(SMALL), num_features=64, stem_size=8,
        act_layer=get_act_layer("hard_swish"),
        se_layer=partial(SqueezeExcite, gate_layer="hard_sigmoid", force_act_layer=nn.ReLU),
    ),
    "convnext": case(convnext.ConvNeXt, depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)),
    "vit": case(vision_transformer.VisionTransformer, **VIT),
    "deit": case(deit.VisionTransformerDistilled, **VIT),
    "swin": case(
        swin_transformer.SwinTransformer, img_size=SIZE, patch_size=2, window_size=4, embed_dim=24,
        depths=(2, 2), num_heads=(2, 4), drop_path_rate=0.0,
    ),
    "mixer": case(mlp_mixer.MlpMixer, img_size=SIZE, patch_size=8, embed_dim=48, num_blocks=2),
    "regnet": case(regnet.RegNet, regnet.RegNetCfg(**REGNET)),
    "regnet_se": case(regnet.RegNet, regnet.RegNetCfg(**REGNET, se_ratio=0.25)),
    "densenet": case(densenet.DenseNet, growth_rate=8, block_config=(2, 2, 2)),
}  # fmt: skip

if __name__ == "__main__":
    # PyTorch's derivative of hardsigmoid has the sixth rounded to float32, in float64 too.
    main(CASES, {"float32": 1e-4, "float64": 1e-7})
