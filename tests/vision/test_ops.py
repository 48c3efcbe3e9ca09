"""Boxes: overlaps, suppression, conversion, and parts of feature maps."""

import numpy as np
import pytest

import monograph as mg
from monograph.vision import ops


def plain_nms(boxes, scores, threshold):
    """The same, written as the definition says."""
    kept = []
    for n in sorted(range(len(boxes)), key=lambda n: -scores[n]):
        shared = ops.box_iou(mg.tensor(boxes[n : n + 1]), mg.tensor(boxes)).numpy()[0]
        if all(shared[k] <= threshold for k in kept):
            kept.append(n)
    return kept


def test_suppression():
    random = np.random.default_rng(0)
    low = random.random((20, 2), np.float32)
    boxes = np.concatenate([low, low + random.random((20, 2), np.float32)], 1)
    scores = random.random(20, np.float32)
    for threshold in (0.1, 0.3, 0.7):
        expected = plain_nms(boxes, scores, threshold)
        assert ops.nms(mg.tensor(boxes), mg.tensor(scores), threshold).tolist() == expected
    apart = ops.batched_nms(mg.tensor(boxes), mg.tensor(scores), mg.arange(20), 0.1)
    assert len(apart) == 20
    assert ops.nms(mg.zeros(0, 4), mg.zeros(0), 0.5).shape == (0,)


def test_conversion_and_overlap():
    boxes = mg.tensor([[1.0, 2.0, 4.0, 8.0]])
    assert ops.box_convert(boxes, "xyxy", "xywh").tolist() == [[1.0, 2.0, 3.0, 6.0]]
    assert ops.box_convert(boxes, "xyxy", "cxcywh").tolist() == [[2.5, 5.0, 3.0, 6.0]]
    back = ops.box_convert(ops.box_convert(boxes, "xyxy", "cxcywh"), "cxcywh", "xyxy")
    assert back.tolist() == boxes.tolist()
    assert ops.box_iou(boxes, boxes).item() == 1.0
    assert ops.generalized_box_iou(boxes, boxes + 100).item() < 0
    assert ops.clip_boxes_to_image(boxes, (5, 3)).tolist() == [[1.0, 2.0, 3.0, 5.0]]


def test_parts_of_a_map():
    x = mg.arange(64.0).reshape(1, 1, 8, 8).requires_grad_()
    boxes = [mg.tensor([[2.0, 2.0, 6.0, 6.0]])]
    found = ops.roi_align(x, boxes, (2, 2), sampling_ratio=2, aligned=True)
    # The values are linear in the place, so a mean of samples is the value at the bin's centre.
    expected = np.array([[8 * (y - 0.5) + x - 0.5 for x in (3, 5)] for y in (3, 5)])
    assert np.allclose(found.detach().numpy()[0, 0], expected)
    found.sum().backward()
    assert x.grad.sum().item() == pytest.approx(4.0)
    whole = ops.roi_align(x.detach(), boxes, 2, aligned=True)  # as many samples as pixels: 2
    assert mg.allclose(whole, found.detach())


def drawn(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def sampled(plane, y, x):
    """A map between its pixels, and 0 outside."""
    made = 0.0
    top, left = int(np.floor(y)), int(np.floor(x))
    for row in (top, top + 1):
        for column in (left, left + 1):
            if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
                made += plane[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return made


def aligned_by_hand(x, box, bins):
    """One sample for each pixel of a bin."""
    left, top, right, bottom = box - 0.5
    counts = [int(np.ceil((bottom - top) / bins)), int(np.ceil((right - left) / bins))]
    made = np.zeros((bins, bins))
    for i, j in np.ndindex(bins, bins):
        for a, b in np.ndindex(*counts):
            y = top + (i + (a + 0.5) / counts[0]) * (bottom - top) / bins
            across = left + (j + (b + 0.5) / counts[1]) * (right - left) / bins
            made[i, j] += sampled(x, y, across)
    return made / (counts[0] * counts[1])


def test_as_many_samples_as_a_bin_has_pixels():
    x = drawn(1, 1, 12, 15)
    boxes = np.array([[1.2, 2.1, 11.4, 9.5], [3.0, 1.0, 5.0, 2.5]], np.float32)
    found = ops.roi_align(mg.tensor(x), [mg.tensor(boxes)], 2, aligned=True).numpy()
    for n, box in enumerate(boxes):
        assert np.allclose(found[n, 0], aligned_by_hand(x[0, 0], box, 2), atol=1e-5)
    assert ops.RoIAlign(2, 1.0, -1, aligned=True)(mg.tensor(x), [mg.zeros(0, 4)]).shape == (
        0,
        1,
        2,
        2,
    )


def pooled_by_hand(x, box, bins, scale):
    left, top, right, bottom = [int(np.floor(v * scale + 0.5)) for v in box]
    high, wide = max(bottom - top + 1, 1) / bins[0], max(right - left + 1, 1) / bins[1]
    made = np.zeros(bins)
    for i, j in np.ndindex(*bins):
        rows = [int(np.floor(i * high)) + top, int(np.ceil((i + 1) * high)) + top]
        columns = [int(np.floor(j * wide)) + left, int(np.ceil((j + 1) * wide)) + left]
        part = x[slice(*np.clip(rows, 0, x.shape[0])), slice(*np.clip(columns, 0, x.shape[1]))]
        made[i, j] = part.max() if part.size else 0.0
    return made


def test_greatest_values_in_boxes():
    x = drawn(2, 3, 9, 11)
    boxes = np.array(
        [[0, 1, 1, 15, 14], [1, 4.4, 2.6, 9.1, 3], [1, 20, 5, 30, 8], [0, 3, 3, 2, 1]], np.float32
    )
    variable = mg.tensor(x, requires_grad=True)
    found = ops.roi_pool(variable, mg.tensor(boxes), (2, 3), 0.6)
    for n, (image, *box) in enumerate(boxes):
        for channel in range(3):
            plane = x[int(image), channel]
            expected = pooled_by_hand(plane, box, (2, 3), 0.6)
            assert np.allclose(found[n, channel].detach().numpy(), expected)
    found.sum().backward()  # each bin that is not empty hands 1 to one pixel
    assert variable.grad.sum().item() == (found.detach() != 0).sum().item()
    assert mg.equal(ops.RoIPool((2, 3), 0.6)(variable, mg.tensor(boxes)), found)
    with pytest.raises(AssertionError, match="Tensor\\[K, 5\\]"):
        ops.roi_pool(variable, mg.tensor(boxes[:, 1:]), 2)


def deformed_by_hand(x, offset, weight, stride, padding, dilation, mask, groups):
    outer, inner, kh, kw = weight.shape
    made = np.zeros((outer, *offset.shape[-2:]))
    shift = offset.reshape(groups, kh * kw, 2, *offset.shape[-2:])
    share = mask.reshape(groups, kh * kw, *offset.shape[-2:])
    for o, i, j, c, k in np.ndindex(*made.shape, inner, kh * kw):
        channel = c + inner * (o // (outer // (len(x) // inner)))
        group = channel // (len(x) // groups)
        y = i * stride - padding + k // kw * dilation + shift[group, k, 0, i, j]
        across = j * stride - padding + k % kw * dilation + shift[group, k, 1, i, j]
        value = sampled(x[channel], y, across) * share[group, k, i, j]
        made[o, i, j] += weight[o, c, k // kw, k % kw] * value
    return made


@pytest.mark.parametrize("weight_groups, offset_groups", [(1, 2), (2, 1)])
def test_deformed_kernels(weight_groups, offset_groups):
    x, weight = drawn(1, 4, 6, 5), drawn(2, 4 // weight_groups, 3, 2)
    points = 6 * offset_groups
    offset, mask = 2 * drawn(1, 2 * points, 2, 3), np.abs(drawn(1, points, 2, 3))
    settings = {"stride": 2, "padding": 1, "dilation": 2}
    found = ops.deform_conv2d(
        *[mg.tensor(a) for a in (x, offset, weight)], mg.ones(2), mask=mg.tensor(mask), **settings
    )
    expected = deformed_by_hand(x[0], offset[0], weight, *settings.values(), mask[0], offset_groups)
    assert np.allclose(found[0].numpy(), expected + 1, atol=1e-4)


def test_gradients_of_deformed_kernels():
    with mg.config.override(backend="reference"):  # nothing to compile
        x, offset, weight, mask = [
            mg.tensor(drawn(*shape).astype(np.float64), requires_grad=True)
            for shape in ((1, 1, 3, 3), (1, 8, 1, 1), (1, 1, 2, 2), (1, 4, 1, 1))
        ]

        def convolved(x, offset, weight, mask):
            return ops.deform_conv2d(x, 0.3 * offset.tanh() + 0.45, weight, mask=mask, stride=2)

        assert mg.autograd.gradcheck(convolved, (x, offset, weight, mask))


def test_layer_of_deformed_kernels():
    layer = ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
    assert layer.weight.shape == (6, 2, 3, 3) and layer.bias.shape == (6,)
    x = mg.tensor(drawn(1, 4, 5, 5))
    plain = mg.nn.functional.conv2d(x, layer.weight, layer.bias, padding=1, groups=2)
    assert mg.allclose(layer(x, mg.zeros(1, 18, 5, 5)), plain, atol=1e-5)
    with pytest.raises(RuntimeError, match="multiple of 2"):
        layer(x, mg.zeros(1, 17, 5, 5))
    with pytest.raises(ValueError, match="divisible by groups"):
        ops.DeformConv2d(4, 6, 3, groups=3)


def test_pyramids():
    from monograph.vision.pyramid import LastLevelMaxPool, LastLevelP6P7

    widths = [2, 3]
    maps = {str(n): mg.tensor(drawn(1, w, 8 >> n, 8 >> n)) for n, w in enumerate(widths)}
    net = ops.FeaturePyramidNetwork(widths, 4, LastLevelMaxPool())
    made = net(maps)
    assert {name: tuple(x.shape[1:]) for name, x in made.items()} == {
        "0": (4, 8, 8), "1": (4, 4, 4), "pool": (4, 2, 2)
    }  # fmt: skip
    top = net.inner_blocks[1](maps["1"])
    side = net.inner_blocks[0](maps["0"]) + top.repeat_interleave(2, 2).repeat_interleave(2, 3)
    assert mg.allclose(made["0"], net.layer_blocks[0](side), atol=1e-5)
    older = {name.replace(".0.weight", ".weight").replace(".0.bias", ".bias"): value
             for name, value in net.state_dict().items()}  # fmt: skip
    assert "inner_blocks.0.weight" in older
    other = ops.FeaturePyramidNetwork(widths, 4)
    other.load_state_dict(older)
    assert mg.equal(other.layer_blocks[1][0].weight, net.layer_blocks[1][0].weight)
    more = ops.FeaturePyramidNetwork(widths, 4, LastLevelP6P7(4, 4))(maps)
    assert list(more) == ["0", "1", "p6", "p7"] and more["p7"].shape == (1, 4, 1, 1)


def test_boxes_are_cut_from_the_map_that_fits():
    maps = {"a": mg.tensor(drawn(1, 2, 32, 32)), "b": mg.tensor(drawn(2, 2, 16, 16)[:1])}
    small, large = [4.0, 4.0, 20.0, 20.0], [8.0, 2.0, 120.0, 110.0]
    layer = ops.MultiScaleRoIAlign(["a", "b"], 2, 2, canonical_scale=56, canonical_level=3)
    found = layer(maps, [mg.tensor([small, large])], [(128, 128)])
    for n, (name, scale) in enumerate((("a", 0.25), ("b", 0.125))):
        box = [mg.tensor([[small, large][n]])]
        assert mg.allclose(found[n], ops.roi_align(maps[name], box, 2, scale, 2)[0])


def test_focal_loss_is_less_for_what_is_easy():
    logits, targets = mg.tensor([4.0, 0.0]), mg.tensor([1.0, 1.0])
    easy, hard = ops.sigmoid_focal_loss(logits, targets).tolist()
    assert easy < 1e-4 < hard
