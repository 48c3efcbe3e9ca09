"""One model's forward and backward pass, kept in a file or compared with one.

The programs beside this file are ordinary PyTorch programs. `python program.py save FOLDER` keeps
what PyTorch computes; `monograph run program.py check FOLDER NAME DTYPE` loads the same weights and
inputs, computes again, and ends with an error where a number differs.
"""

import os
import sys

import numpy as np
import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:
    # A torchvision that was built for another PyTorch lacks its compiled operators. No model here
    # needs one, but its import, which the libraries go on to, asks for these names.
    operators = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        operators.define(f"{operator}(Tensor dets, Tensor scores, float threshold) -> Tensor")

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def converted(x, dtype):
    return x.to(dtype) if x.is_floating_point() else x


def run(model, inputs, forward, dtype):
    """The outputs, then gradients and buffers by name, of one training step without an update."""
    model.train().to(dtype)
    inputs = {name: converted(value, dtype) for name, value in inputs.items()}
    outputs = forward(model, inputs)
    outputs[0].backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return {
        "outputs": {str(place): x.detach() for place, x in enumerate(outputs)},
        "gradients": gradients,
        "buffers": dict(model.named_buffers()),
    }


def save(cases, folder, names):
    for name in names or cases:
        torch.manual_seed(0)
        build, make_inputs, forward = cases[name]
        model = build()
        with torch.no_grad():
            for parameter in model.parameters():
                # Heads and gates that start at zero would keep gradients from the layers below.
                parameter.add_(torch.randn_like(parameter), alpha=0.02)
        inputs = make_inputs()
        kept = {"state": {k: v.clone() for k, v in model.state_dict().items()}, "inputs": inputs}
        for kind, dtype in DTYPES.items():
            fresh = build()
            fresh.load_state_dict(kept["state"])
            kept[kind] = run(fresh, inputs, forward, dtype)
        torch.save(kept, os.path.join(folder, f"{name}.pt"))


def check(cases, bounds, folder, name, kind):
    build, _, forward = cases[name]
    kept = torch.load(os.path.join(folder, f"{name}.pt"))
    model = build()
    model.load_state_dict(kept["state"])
    found = run(model, kept["inputs"], forward, DTYPES[kind])
    wanted = kept[kind]
    exact = kept["float64"]
    wrong, errors = [], {}
    for part in found:
        assert set(found[part]) == set(wanted[part]), set(found[part]) ^ set(wanted[part])
        for name, x in wanted[part].items():
            assert found[part][name] is None or found[part][name].dtype == x.dtype, name
            error = errors[f"{part} {name}"] = difference(found[part][name], exact[part][name])
            # Where float32 is coarse, so are PyTorch's own results.
            if not error <= max(bounds[kind], 4 * difference(x, exact[part][name])):
                wrong.append(f"{part} {name}")
    for name in sorted(errors, key=lambda name: -errors[name])[:5]:
        print(f"{errors[name]:.1e} {name}")
    if wrong:
        sys.exit(f"{len(wrong)} of {len(errors)} differ: {', '.join(wrong[:8])}")


def difference(found, wanted):
    """The largest error relative to the largest element; infinite where only one is there."""
    if found is None or wanted is None:
        return 0.0 if found is wanted else float("inf")
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    found, wanted = (x.numpy().astype(np.float64) for x in (found, wanted))
    # Gradients that are zero but for rounding, such as those of a bias before batch norm, have no
    # size of their own to compare with.
    size = max(np.abs(wanted).max(), 1e-3)
    return float(np.abs(found - wanted).max() / size)


def main(cases, bounds):
    """Do what the command line says; `bounds` are the largest errors allowed, by dtype."""
    action, folder, *rest = sys.argv[1:]
    if action == "save":
        save(cases, folder, rest)
    else:
        check(cases, bounds, folder, *rest)
