"""no_grad and its relatives, inference mode, anomaly mode, checkpoint."""

import threading

import numpy as np
import pytest
from torch.utils.checkpoint import checkpoint as torch_checkpoint

import monograph as mg
from monograph.recorder import current
from tests.autograd.both import agree, leaf

# --- gradient modes -------------------------------------------------------------------------------


def test_modes_nest():
    def program(library):
        seen = [library.is_grad_enabled()]
        with library.no_grad():
            seen.append(library.is_grad_enabled())
            with library.enable_grad():
                seen.append(library.is_grad_enabled())
                with library.set_grad_enabled(False):
                    seen.append(library.is_grad_enabled())
                seen.append(library.is_grad_enabled())
            seen.append(library.is_grad_enabled())
        library.set_grad_enabled(False)
        seen.append(library.is_grad_enabled())
        library.set_grad_enabled(True)
        return seen

    agree(program)


@pytest.mark.parametrize("mode", ["no_grad", "enable_grad", "inference_mode"])
@pytest.mark.parametrize("called", [True, False])
def test_as_decorators(mode, called):
    def program(library):
        decorator = getattr(library, mode)

        def function(n):
            return [n, library.is_grad_enabled()]

        wrapped = decorator()(function) if called else decorator(function)
        with library.no_grad():
            within = wrapped(1)
        return within, wrapped(n=2), library.is_grad_enabled(), wrapped.__name__

    agree(program)


def test_set_grad_enabled_as_a_decorator():
    def program(library):
        @library.set_grad_enabled(False)
        def function():
            return library.is_grad_enabled()

        return function(), library.is_grad_enabled()

    agree(program)


def test_on_generators():
    def program(library):
        log = []

        @library.no_grad()
        def numbers():
            for k in range(3):
                log.append(library.is_grad_enabled())
                sent = yield k
                log.append([sent, library.is_grad_enabled()])
            return "end"

        made = numbers()
        seen = [next(made), library.is_grad_enabled(), made.send("a"), library.is_grad_enabled()]
        made.close()
        return seen, log

    agree(program)


def test_a_mode_is_left_by_an_exception():
    with pytest.raises(KeyError), mg.no_grad():
        raise KeyError
    assert mg.is_grad_enabled()


def test_modes_are_of_one_thread():
    seen = []
    with mg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(mg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# --- inference mode -------------------------------------------------------------------------------


def test_inference_tensors():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        with library.inference_mode():
            within = library.is_inference_mode_enabled()
            made = library.ones(2, dtype=library.float64)
            computed = x * 2
            made.add_(1)
            data = library.tensor([1.0])
            shown = x[0]
        outside = [t.is_inference() for t in (x, made, computed, data, shown, made[:1])]
        outside += [made.clone().is_inference(), (made + made).is_inference()]
        summed = made + x  # keeps neither
        return within, library.is_inference_mode_enabled(), outside, computed.requires_grad, summed

    agree(program)


def test_inference_mode_may_be_off():
    def program(library):
        with library.inference_mode(), library.inference_mode(False):
            return library.is_inference_mode_enabled(), library.is_grad_enabled()

    agree(program)


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda m, t, x: t.mul_(2), "Inplace update to inference tensor outside InferenceMode"),
        (lambda m, t, x: t * x, "Inference tensors cannot be saved for backward"),
        (lambda m, t, x: (x * 1).mul_(t), "Inference tensors cannot be saved for backward"),
        (lambda m, t, x: t.requires_grad_(), "Setting requires_grad=True on inference tensor"),
        (lambda m, t, x: t._version, "Inference tensors do not track version counter"),
    ],
)  # fmt: skip
def test_what_inference_tensors_refuse(use, message):
    def program(library):
        with library.inference_mode():
            made = library.ones(2, dtype=library.float64)
        return use(library, made, leaf(library, [1.0, 2.0]))

    agree(program, message)


def test_attention_ends_with_the_last_inference_tensor():
    with mg.inference_mode():
        made = mg.ones(2)
    assert mg.ones(2) is not None and current.recorder.attention
    del made
    assert mg.ones(2) is not None and not current.recorder.attention


# --- anomaly mode ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_the_function_that_gave_nan():
    def program(library):
        with library.autograd.detect_anomaly():
            x = leaf(library, [0.0, 1.0])
            (x * 0).sqrt().sum().backward()

    agree(program, "Function 'MulBackward0' returned nan values in its 0th output.")


def test_the_line_that_gave_nan():
    x = mg.tensor([-1.0, 1.0], requires_grad=True)
    with mg.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        root = x.sqrt()
        (root * 2).sum().backward()
    text = str(caught.value)
    assert "'SqrtBackward0' returned nan" in text and __file__ in text


def test_anomaly_mode_changes_no_gradients():
    def program(library):
        library.autograd.set_detect_anomaly(True)
        try:
            x, w = leaf(library, [[1.0, 2.0]]), leaf(library, [[3.0], [4.0]])
            ((x @ w).tanh() * x + x).sum().backward()
        finally:
            library.autograd.set_detect_anomaly(False)
        return x.grad, w.grad

    agree(program)
    assert not mg.autograd.is_anomaly_enabled()


# --- checkpoint -----------------------------------------------------------------------------------


def saving(library):
    if library is mg:
        return mg.autograd.checkpoint
    return lambda *args, **kwargs: torch_checkpoint(*args, use_reentrant=False, **kwargs)


def test_checkpoint():
    def program(library):
        generator = np.random.default_rng(0)
        x, w, v = (leaf(library, generator.normal(size=(3, 3))) for _ in range(3))
        runs = []

        def part(x, scale=1.0):
            runs.append(1)
            h = (x @ w).tanh() * scale
            return h, (h + x).sin()

        h = x * v  # a result from outside, used within and without
        a, b = saving(library)(part, h, scale=2.0)
        ((a * b).sum() + h.sum()).backward()
        return x.grad, w.grad, v.grad, len(runs)

    agree(program)


def test_checkpoint_of_what_is_closed_over():
    def program(library):
        x, w = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        h = w.exp()
        y = saving(library)(lambda x: (x * h).sin(), x.detach())
        return library.autograd.grad(y.sum(), w)

    agree(program)


def test_checkpoint_twice_differentiated():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = saving(library)(lambda x: (x * x).sin(), x)
        (first,) = library.autograd.grad(y.sum(), x, create_graph=True)
        return first, library.autograd.grad(first.sum(), x)

    agree(program)


def test_checkpoint_draws_the_same_random_numbers():
    x = mg.ones(1000, requires_grad=True)
    mg.manual_seed(0)
    y = mg.autograd.checkpoint(lambda x: mg.nn.functional.dropout(x * 2, 0.5), x)
    after = mg.rand(1).item()
    y.sum().backward()
    assert np.array_equal(x.grad.numpy(), y.detach().numpy())
    mg.manual_seed(0)
    mg.nn.functional.dropout(x * 2, 0.5)
    assert mg.rand(1).item() == after


def test_checkpoint_that_reads():
    x = mg.tensor([1.0, 2.0], requires_grad=True)

    def part(x):
        h = x * x
        return h * h.sum().item()

    mg.autograd.checkpoint(part, x).sum().backward()
    assert x.grad.tolist() == [10.0, 20.0]
