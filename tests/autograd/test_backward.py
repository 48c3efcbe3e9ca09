"""backward and grad: accumulation, freed graphs, None, roots, and what they refuse."""

import warnings

import pytest

import monograph as mg
from tests.autograd.both import agree, leaf


def test_the_same_grad_object_is_added_to():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        (x * x).sum().backward()
        first = x.grad
        (x * 3).sum().backward()
        return first is x.grad, x.grad

    agree(program)


def test_with_create_graph_grad_is_a_new_object():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        (x * x).sum().backward(create_graph=True)
        first = x.grad
        (x * x * x).sum().backward(create_graph=True)
        return first is x.grad, x.grad, x.grad.requires_grad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(program)


def test_unused_parameters_have_none():
    def program(library):
        x, y, z = (leaf(library, [1.0]) for _ in range(3))
        ((x * 2).sum() + (z.detach() * y).sum()).backward()
        return x.grad is None, y.grad is None, z.grad is None

    agree(program)


def test_zero_grad():
    def program(library, none):
        layer = library.nn.Linear(2, 1).double() if library is not mg else mg.nn.Linear(2, 1)
        layer.weight.sum().backward()
        before = layer.weight.grad
        layer.zero_grad(set_to_none=none)
        after = layer.weight.grad
        return after is None, after is before, layer.bias.grad is None, before

    agree(lambda library: program(library, True))
    agree(lambda library: program(library, False))


def test_optimizers_zero_the_same_tensor():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    optimiser = mg.optim.SGD([x], lr=0.1)
    (x * x).sum().backward()
    before = x.grad
    optimiser.zero_grad(set_to_none=False)
    assert x.grad is before and x.grad.tolist() == [0.0, 0.0]


def test_second_backward():
    def program(library, **options):
        x = leaf(library, [1.0, 2.0])
        y = (x * x).sum()
        y.backward(**options)
        y.backward()
        return x.grad

    agree(program, "Trying to backward through the graph a second time")
    agree(lambda library: program(library, retain_graph=True))


def test_a_shared_part_is_freed_too():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        h = x.exp()
        (h * 2).sum().backward()
        (h + 3).sum().backward()

    agree(program, "Trying to backward through the graph a second time")


def test_a_shared_part_that_keeps_nothing():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        h = x + 1
        (h * 2).sum().backward()
        (h * 3).sum().backward()
        return x.grad

    agree(program)


def test_grad_frees_only_what_it_passed():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x.exp()
        z = (y * 2).sum()
        (part,) = library.autograd.grad(z, y)
        y.sum().backward()
        return part, x.grad

    agree(program)


def test_grad_frees_what_it_passed():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x.exp().sum()
        library.autograd.grad(y, x)
        library.autograd.grad(y, x)

    agree(program, "Trying to backward through the graph a second time")


def test_several_roots_in_one_pass():
    def program(library):
        x, y = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        h = x * y
        library.autograd.backward([h.sum(), (h * x).sum(), y.sum()])
        return x.grad, y.grad

    agree(program)
    mg.synchronize()
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    h = x * x
    roots = [h.sum(), (h * x).sum()]
    before = mg.stats().pending
    mg.autograd.backward(roots)
    assert mg.stats().pending == before + 1


def test_a_plain_backward_is_one_entry():
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    before = mg.stats().pending
    loss.backward()
    assert mg.stats().pending == before + 1


def test_roots_that_are_not_scalars():
    def program(library):
        x, g = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0]).detach()
        y = x * x
        y.backward(g)
        return x.grad

    agree(program)


def test_gradients_in_the_dtype_of_the_parameter():
    def program(library):
        x = library.ones(2, requires_grad=True)
        y = leaf(library, [1.0, 2.0])
        (x * y).sum().backward()
        return str(x.grad.dtype).split(".")[1], str(y.grad.dtype).split(".")[1]

    agree(program)


def test_a_leaf_as_root():
    def program(library):
        x, g = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0]).detach()
        x.backward(g)
        x.backward(g)
        return x.grad, g, library.autograd.grad(x, x, g)

    agree(program)


def test_backward_to_inputs():
    def program(library):
        x, y, w = leaf(library, [1.0]), leaf(library, [2.0]), leaf(library, [2.0])
        h = x * y
        (h * w).sum().backward(inputs=[h, x])
        return x.grad, y.grad is None, w.grad is None, h.grad

    agree(program)


@pytest.mark.parametrize(
    "program, message",
    [
        (lambda m, x: (x * 2).backward(), "grad can be implicitly created only for scalar"),
        (lambda m, x: x.detach().sum().backward(), "does not require grad and does not have"),
        (lambda m, x: m.autograd.grad(x * 2, x, m.ones(3)), "Mismatch in shape"),
        (lambda m, x: m.autograd.grad((x * 2).sum(), m.ones(3)), "does not require grad"),
        (lambda m, x: m.autograd.grad((x * 2).sum(), leaf(m, [1.0])), "allow_unused=True"),
        (lambda m, x: (x * 2).sum().backward(inputs=[]), "cannot be empty"),
        (lambda m, x: (x * 2).requires_grad_(False), "you can only change requires_grad flags"),
        (lambda m, x: m.arange(3).requires_grad_(), "floating point"),
        (lambda m, x: x[:1].detach_(), "Can't detach views in-place"),
        (lambda m, x: setattr(x, "grad", m.ones(5, dtype=m.float64)), "assign a gradient of size"),
        (lambda m, x: setattr(x, "grad", m.ones(2)), "assign a gradient with dtype"),
        (lambda m, x: setattr(x, "grad", 3), "assigned grad"),
    ],
)  # fmt: skip
def test_what_is_refused(program, message):
    agree(lambda library: program(library, leaf(library, [1.0, 2.0])), message)


def test_unused_and_materialised():
    def program(library):
        x, y = leaf(library, [1.0, 2.0]), leaf(library, [[1.0]])
        loss = (x * x).sum()
        first = library.autograd.grad(loss, [x, y], retain_graph=True, allow_unused=True)
        second = library.autograd.grad(loss, [x, y], materialize_grads=True)
        return first[0], first[1] is None, second

    agree(program)


def test_what_a_tensor_says_of_itself():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = x * 2
        z = y.detach()
        with library.no_grad():
            w = x * 2
        seen = [(t.is_leaf, t.requires_grad, t.grad_fn is None, t.output_nr) for t in (x, y, z, w)]
        kept = y.detach_()
        return seen, kept is y, y.is_leaf, y.requires_grad, y.grad_fn is None

    agree(program)


def test_grad_of_a_result_warns():
    x = mg.tensor([1.0], requires_grad=True)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None and x.grad is None


def test_the_graph():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        y = (x * 2).exp()
        node = y.grad_fn
        (inner, number), *_ = node.next_functions
        names = [
            node.name(),
            inner.name(),
            inner.next_functions[0][0].name().split("::")[-1],
            number,
        ]
        constant = inner.next_functions[1]
        ends = inner.next_functions[0][0].variable is x
        return names, constant, ends, y.grad_fn is node, bool(node)

    agree(program)


def test_versions_count_writes():
    def program(library):
        x = library.zeros(3)
        seen = [x._version]
        x.add_(1)
        x[0] = 5
        seen.append(x[1:]._version)
        x.detach().mul_(2)
        seen.append(x._version)
        return seen

    agree(program)


def test_reads_between_forward_and_backward():
    def program(library):
        x = leaf(library, [1.0, 2.0, 3.0])
        h = (x * x).sin()
        h.sum().item()
        loss = (h * x).sum()
        loss.item()
        loss.backward()
        return x.grad

    agree(program)


def test_a_parameter_that_changed_but_is_not_needed():
    # add keeps nothing: what was there before may be gone.
    def program(library):
        x, y = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        loss = (x + y).sum()
        loss.item()
        with library.no_grad():
            x.add_(1)
        x.detach().tolist()
        loss.backward()
        return x.grad, y.grad

    agree(program)


def test_a_parameter_that_changed_and_is_needed():
    def program(library):
        x, y = leaf(library, [1.0, 2.0]), leaf(library, [3.0, 4.0])
        loss = (x * y).sum()
        loss.item()
        with library.no_grad():
            x.add_(1)
        x.detach().tolist()
        loss.backward()

    agree(program, "modified by an inplace operation")


def test_backward_after_the_step():
    def program(library):
        x = leaf(library, [1.0, 2.0])
        optimiser = library.optim.SGD([x], lr=0.1)
        loss = (x * x).sum()
        loss.backward(retain_graph=True)
        optimiser.step()
        loss.backward()

    agree(program, "modified by an inplace operation")


def test_views_of_plain_data_that_was_written():
    def program(library):
        data, w = leaf(library, [1.0, 2.0, 3.0]).detach(), leaf(library, [3.0, 4.0])
        loss = (data[1:] * w).sum()
        data.zero_()
        loss.backward()

    agree(program, "modified by an inplace operation")
