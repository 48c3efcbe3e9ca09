"""The newer models compute what torchvision's do.

Small ones are filled with numbers that follow from the place of each weight, in both. What
torchvision 0.28 gives for them is written down here.
"""

import numpy as np
import pytest

import monograph as mg
from monograph.vision.models import (
    convnext,
    efficientnet,
    mnasnet,
    regnet,
    swin,
    vision_transformer,
)

WINDOWS = ([2, 2], 8, [2, 1], [2, 2], [3, 3])
SECOND = {"block": swin.SwinTransformerBlockV2, "downsample_layer": swin.PatchMergingV2}
SMALL = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "mlp_dim": 12}
EXPECTED = {
    "swin": [[0.15278, 0.40711, 0.60728], [0.04701, 0.32665, 0.56263]],
    "swin_v2": [[0.26842, 0.70303, 1.04470], [0.53651, 0.70448, 0.77933]],
    "vit": [[0.24758, 0.07386, 0.06320], [0.25195, 0.07034, 0.06077]],
    "convnext": [[0.13713, -0.05860, 0.41145], [0.30826, -0.20974, 0.42307]],
    "efficientnet": [[0.29693, -0.74443, -1.68863], [-0.21931, -0.62602, -0.95101]],
    "regnet": [[2.81179, 5.08830, 4.77205], [2.50505, 4.22987, 3.79528]],
    "mnasnet": [[21.27060, 18.47952, -48.11562], [21.27059, 18.47952, -48.11561]],
}


def build(name):
    if name.startswith("swin"):
        return swin.SwinTransformer(
            *WINDOWS, num_classes=3, **(SECOND if name == "swin_v2" else {})
        )
    if name == "vit":
        return vision_transformer.VisionTransformer(
            16, 8, num_classes=3, representation_size=5, **SMALL
        )
    if name == "convnext":
        stages = [convnext.CNBlockConfig(4, 6, 1), convnext.CNBlockConfig(6, None, 2)]
        return convnext.ConvNeXt(stages, num_classes=3)
    if name == "efficientnet":
        blocks = [
            efficientnet.FusedMBConvConfig(1, 3, 1, 8, 8, 1),
            efficientnet.FusedMBConvConfig(4, 3, 2, 8, 8, 1),
            efficientnet.MBConvConfig(4, 3, 1, 8, 8, 2),
        ]
        return efficientnet.EfficientNet(blocks, 0.1, num_classes=3, last_channel=16)
    if name == "mnasnet":
        return mnasnet.MNASNet(0.1, num_classes=3)
    sizes = regnet.BlockParams.from_init_params(3, 8, 8.0, 2.0, 4, se_ratio=0.25)
    return regnet.RegNet(sizes, num_classes=3, stem_width=4)


def filled(state):
    made = {}
    for n, (name, old) in enumerate(state.items()):
        if name.endswith(("num_batches_tracked", "position_index", "coords_table")):
            made[name] = old
            continue
        wave = np.sin(np.arange(old.numel()) * 0.37 + n).reshape(tuple(old.shape))
        near_one = name.endswith("running_var") or (name.endswith("weight") and wave.ndim == 1)
        wave = 1 + wave / 2 if near_one or name.endswith("layer_scale") else wave / 4
        made[name] = mg.tensor(wave.astype(np.float32))
    return made


@pytest.mark.parametrize("name", EXPECTED)
def test_results(name):
    with mg.device("meta"):  # no numbers are drawn
        model = build(name).eval()
    model.load_state_dict(filled(model.state_dict()), assign=True)
    rows = 14 if name.startswith("swin") else 16  # windows of 3 do not fit
    x = np.sin(np.arange(2 * 3 * 16 * 16) ** 1.3 * 0.11).reshape(2, 3, 16, 16)[:, :, :rows]
    with mg.no_grad(), mg.config.override(backend="reference"):  # nothing to compile
        found = model(mg.tensor(x.astype(np.float32))).numpy()
    assert np.allclose(found, EXPECTED[name], rtol=1e-5, atol=2e-5)


def test_weights_of_older_files_fit():
    model = build("vit")
    state = model.state_dict()
    older = {
        name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): value
        for name, value in state.items()
    }
    assert older.keys() != state.keys()
    other = build("vit")
    other.load_state_dict(older)
    assert mg.equal(other.encoder.layers[0].mlp[3].weight, model.encoder.layers[0].mlp[3].weight)


def test_places_for_images_of_another_size():
    state = build("vit").state_dict()
    wider = vision_transformer.interpolate_embeddings(32, 8, state)
    model = vision_transformer.VisionTransformer(
        32, 8, num_classes=3, representation_size=5, **SMALL
    )
    model.load_state_dict(wider)
    with pytest.raises(AssertionError, match="Wrong image height! Expected 32 but got 16!"):
        model(mg.zeros(1, 3, 16, 16))


@pytest.mark.parametrize("name", ["efficientnet_v2_s", "swin_t", "convnext_tiny", "vit_b_32"])
def test_models_in_training(name):
    """Whole models, in shapes alone: blocks that are left out at random, dropout, shifts."""
    with mg.device("meta"):
        model = getattr(mg.vision.models, name)(num_classes=4)
        x = mg.zeros(2, 3, 224, 224)
    assert model(x).shape == (2, 4)
