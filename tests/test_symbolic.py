"""Sizes that vary: few compilations, the values of the reference and of PyTorch, and no program run
where what it assumes does not hold."""

import numpy as np
import pytest
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F
from monograph import nn
from monograph.backends.cpu.program import NativeProgram
from monograph.compiler import family
from monograph.compiler.sizes import Structure, forms_of

GENERATOR = np.random.default_rng(0)


def numbers(*shape):
    return GENERATOR.standard_normal(shape).astype(np.float32)


@pytest.fixture(autouse=True)
def _counted():
    """Counters from zero, and no program of another test."""
    mg.synchronize()
    held = mg.record.programs
    mg.record.programs = type(held)()
    mg.stats.reset()
    with mg.config.override(backend="cpu", tier0_limit=0, disk_cache=False):
        yield
    mg.record.programs = held


def settle():
    """Run what is pending, and count from here."""
    mg.synchronize()
    mg.stats.reset()


def compilations():
    return mg.stats().compilations


def same(ours, theirs, tolerance=1e-4):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def agree(function, shapes, most, tolerance=1e-4):
    """The function of arrays of these shapes, on the CPU and by the reference."""
    compiled = 0
    for several in shapes:
        arrays = [numbers(*shape) for shape in several]
        before = compilations()
        made = [y.numpy() for y in listed(function(*map(mg.tensor, arrays)))]
        compiled += compilations() - before
        with mg.config.override(backend="reference"):
            expected = [y.numpy() for y in listed(function(*map(mg.tensor, arrays)))]
        for a, b in zip(made, expected, strict=True):
            assert a.shape == b.shape
            same(a, b, tolerance)
    assert compiled <= most


def listed(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


# --- counts -------------------------------------------------------------------------------------

SIZES = [32, 48, 17, 64, 100, 2, 31, 128, 5, 33, 70, 16, 7, 96, 3, 64, 50, 1, 200, 0]


def test_training_with_varying_batches():
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))
    ours = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5))
    ours.load_state_dict({k: mg.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    mine = mg.optim.Adam(ours.parameters(), lr=1e-2)
    other = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    settle()
    counts = []
    for n in [*range(40, 60), *[s for s in SIZES if s]]:
        x, t = numbers(n, 20), GENERATOR.integers(0, 5, n)
        loss = F.cross_entropy(ours(mg.tensor(x)), mg.tensor(t))
        mine.zero_grad()
        loss.backward()
        mine.step()
        expected = TF.cross_entropy(theirs(torch.tensor(x)), torch.tensor(t))
        other.zero_grad()
        expected.backward()
        other.step()
        same(loss.item(), expected.item())
        counts.append(compilations())
    assert counts[2] == counts[-1] <= 3  # nothing after the third step
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        same(a.detach().numpy(), b.detach().numpy(), 1e-3)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mix(self.before(x)).split(width, 2)
        q, k, v = [
            p.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for p in parts
        ]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.after(x))))


class Language(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(64, width)
        self.block, self.norm = Block(width, 4), nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(mg.arange(tokens.shape[1]))
        return self.head(self.norm(self.block(x)))


@pytest.mark.parametrize("vary", ["batch", "both"])
def test_a_language_model_with_varying_sizes(vary):
    mg.manual_seed(0)
    net = Language(30, 16)
    optimizer = mg.optim.AdamW(net.parameters(), lr=1e-3)
    settle()
    counts = []
    lengths = {"batch": [16] * 12, "both": [16, 20, 33, 8, 64, 2, 17, 40, 5, 31, 63, 12]}[vary]
    for n, length in zip([4, 6, 8, 1, 12, 2, 9, 5, 7, 10, 1, 11], lengths, strict=True):
        tokens = GENERATOR.integers(0, 30, (n, length + 1))
        inputs, targets = tokens[:, :-1].copy(), tokens[:, 1:].copy()
        loss = F.cross_entropy(
            net(mg.tensor(inputs)).view(n * length, 30), mg.tensor(targets).view(n * length)
        )
        optimizer.zero_grad()
        loss.backward()
        gradient = net.block.mix.weight.grad.numpy()
        optimizer.step()
        counts.append(compilations())
        assert np.isfinite(loss.item()) and np.isfinite(gradient).all()
    assert counts[2] == counts[-1] <= 4


def test_a_language_model_has_the_gradients_of_the_reference():
    net = Language(30, 16)
    mg.synchronize()
    for n, length in [(2, 7), (5, 9), (3, 16), (1, 12), (4, 2), (3, 1), (6, 33), (1, 1)]:
        tokens = GENERATOR.integers(0, 30, (n, length))
        found = {}
        for backend in ("cpu", "reference"):
            with mg.config.override(backend=backend):
                net.zero_grad()
                loss = F.cross_entropy(
                    net(mg.tensor(tokens)).view(n * length, 30), mg.tensor(tokens).view(n * length)
                )
                loss.backward()
                found[backend] = [p.grad.numpy().copy() for p in net.parameters()]
        for a, b in zip(found["cpu"], found["reference"], strict=True):
            same(a, b, 1e-3)
    assert mg.stats().instantiations >= 4


def test_a_growing_sequence():
    w = mg.tensor(numbers(16, 16))
    other = torch.tensor(w.numpy())
    settle()
    sequence = expected = None
    counts = []
    for _ in range(60):
        token = numbers(2, 1, 16)
        mine, theirs = mg.tensor(token), torch.tensor(token)
        sequence = mine if sequence is None else mg.cat([sequence, mine], 1)
        expected = theirs if expected is None else torch.cat([expected, theirs], 1)
        y = F.scaled_dot_product_attention(sequence[:, -1:] @ w, sequence @ w, sequence)
        z = TF.scaled_dot_product_attention(expected[:, -1:] @ other, expected @ other, expected)
        same(y.numpy(), z.numpy())
        counts.append(compilations())
    assert counts[2] == counts[-1] <= 4


def test_a_count_that_changes():
    w = mg.tensor(numbers(8, 4)).requires_grad_()
    other = torch.tensor(w.detach().numpy()).requires_grad_()
    settle()
    counts = []
    for n in [20, 41, 33, 2, 64, 1, 3, *range(4, 50), 0]:
        x = numbers(64, 8)
        rows = np.sort(GENERATOR.permutation(64)[:n])
        chosen = mg.tensor(x)[mg.tensor(rows)]
        y = (mg.relu(chosen * 2.0 - 0.5) @ w).tanh()
        w.grad = other.grad = None
        (y.sum() + y.mean()).backward() if n else y.sum().backward()
        picked = torch.tensor(x)[torch.tensor(rows)]
        z = (torch.relu(picked * 2.0 - 0.5) @ other).tanh()
        (z.sum() + z.mean()).backward() if n else z.sum().backward()
        same(w.grad.numpy(), other.grad.numpy())
        counts.append(compilations())
    assert counts[2] == counts[-2] <= 2
    assert counts[-1] <= 3


def test_a_slice_that_moves():
    x = numbers(50, 6)
    held = mg.tensor(x)
    settle()
    for start in range(3, 40):
        same((held[start : start + 7] * 2).sum(0).numpy(), (x[start : start + 7] * 2).sum(0))
    assert compilations() <= 4


def test_a_slice_that_ends_before_the_end():
    """What is cut off at the end varies as what is cut off in front does."""

    def cut(x, front, back, functional=F):
        padded = functional.pad(x, (front, back), mode="reflect")
        return padded[:, front:-back] * 2, padded[:, -back:], padded[:, :-1].mean()

    with mg.config.override(bounds_checks=True):
        settle()
        for front, back in [(3, 5), (2, 9), (7, 4), (1, 1), (4, 6), (9, 2), (3, 3), (5, 12)]:
            x = numbers(3, 20)
            made = [part.numpy() for part in cut(mg.tensor(x), front, back)]
            theirs = [part.numpy() for part in cut(torch.tensor(x), front, back, TF)]
            for ours, other in zip(made, theirs, strict=True):
                assert ours.shape == other.shape
                same(ours, other)
        assert compilations() <= 4


def test_images_of_any_size_are_sampled():
    sizes = [(9, 7), (12, 11), (8, 20), (15, 9), (31, 10)]
    shapes = [[(2, 3, h, w), (2, h, w, 2)] for h, w in sizes]
    for padding in ("zeros", "border", "reflection"):
        for aligned in (False, True):
            agree(
                lambda x, grid, padding=padding, aligned=aligned: F.grid_sample(
                    x, grid, padding_mode=padding, align_corners=aligned
                ),
                shapes, 2, 2e-3,
            )  # fmt: skip


def test_a_shape_given_as_it_is():
    def normalised(x):
        return mg.nn.functional.layer_norm(x, x.shape)

    agree(normalised, [[(n, 6)] for n in (40, 64, 7, 100, 33)], most=2)


def test_convolutions_with_varying_batches():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 4, 3), nn.Flatten(), nn.Linear(4 * 2 * 2, 3),
    )  # fmt: skip
    settle()
    counts = []
    for n in (4, 6, 9, 3, 1, 12, 2):
        x, t = numbers(n, 3, 8, 8), GENERATOR.integers(0, 3, n)
        found = {}
        for backend in ("cpu", "reference"):
            before = compilations()
            with mg.config.override(backend=backend):
                net.zero_grad()
                F.cross_entropy(net(mg.tensor(x)), mg.tensor(t)).backward()
                found[backend] = [p.grad.numpy().copy() for p in net.parameters()]
            counts.append(compilations() - before)
        for a, b in zip(found["cpu"], found["reference"], strict=True):
            same(a, b, 1e-3)
    assert sum(counts[::2][3:]) == 0


# --- values -------------------------------------------------------------------------------------

ROWS = [[(n, 16)] for n in (7, 20, 33, 64, 2, 100, 1000, 1, 3)]
COLUMNS = [[(12, n)] for n in (7, 20, 33, 64, 2, 100, 1000, 1, 3)]
BOTH = [
    [(n, m)] for n, m in ((7, 9), (20, 33), (65, 2), (2, 400), (130, 130), (1, 5), (3, 1), (1, 1))
]

FUNCTIONS = {
    "pointwise": lambda x: F.gelu(x * 2 + 1),
    "softmax": lambda x: F.softmax(x, 1),
    "softmax down": lambda x: F.softmax(x, 0),
    "layer norm": lambda x: F.layer_norm(x, (x.shape[1],)),
    "row sum": lambda x: (x * x).sum(1),
    "column sum": lambda x: (x * x).sum(0),
    "total": lambda x: (x * x).sum(),
    "mean and variance": lambda x: (x.mean(), x.var(1), x.mean(0)),
    "transposed": lambda x: x.T * 2.0,
    "argmax": lambda x: (x.argmax(1), x.argmax(), x.max(0)[0]),
    "product": lambda x: x @ x.T,
    "flattened": lambda x: x.reshape(-1)[1:] - x.flatten()[:-1],
    "padded": lambda x: F.pad(x, (1, 2)).sum(1),
    "joined": lambda x: mg.cat([x, x[:1], x * 2], 0).flip(0),
    "triangle": lambda x: mg.tril(x @ x.T).sum(1),
    "logsumexp": lambda x: x.logsumexp(0),
    "gathered": lambda x: x[mg.arange(x.shape[0]) // 2],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("sizes", ["rows", "columns", "both"])
def test_values(name, sizes):
    shapes = {"rows": ROWS, "columns": COLUMNS, "both": BOTH}[sizes]
    # The transpose of one row or column lies as the leaf does, and needs no operator.
    agree(FUNCTIONS[name], shapes, 4 if sizes == "both" else 3, 1e-3)


@pytest.mark.parametrize("name", ["softmax", "layer norm", "row sum", "column sum", "product",
                                  "joined", "total", "padded", "mean and variance"])  # fmt: skip
def test_derivatives(name):
    def function(x):
        x = x.requires_grad_()
        total = 0.0
        for n, y in enumerate(listed(FUNCTIONS[name](x))):
            total = total + (y * y * (0.3 + 0.1 * n)).sum()
        return mg.autograd.grad(total, x)

    # Of one number a variance has no derivative: that is another program.
    agree(function, BOTH, 5 if name == "mean and variance" else 3, 2e-3)


def test_long_reductions_and_many_pieces():
    shapes = [[(n,)] for n in (20_000, 40_000, 65_536, 123_457, 100)]
    agree(lambda x: ((x * x).sum(), x * 2.0, x.max()), shapes, 3, 1e-3)


def test_products_without_the_library():
    with mg.config.override(onednn=False):
        agree(
            lambda x, y: (x @ y, y.T @ x.T),
            [[(n, k), (k, 9)] for n, k in ((5, 8), (20, 30), (17, 3), (64, 64), (2, 100))],
            3,
        )


def test_random_numbers_do_not_depend_on_how_the_program_was_compiled():
    for n in (10, 20, 33, 100):
        found = []
        for backend in ("cpu", "reference"):
            with mg.config.override(backend=backend):
                mg.manual_seed(3)
                found.append(F.dropout(mg.ones(n, 7), 0.3).numpy())
        np.testing.assert_array_equal(*found)


def test_scatters_of_varying_counts():
    table = mg.tensor(numbers(11, 6)).requires_grad_()
    other = torch.tensor(table.detach().numpy()).requires_grad_()
    settle()
    for n in (4, 9, 30, 2, 77):
        where = GENERATOR.integers(0, 11, n)
        table.grad = other.grad = None
        F.embedding(mg.tensor(where), table).tanh().sum().backward()
        TF.embedding(torch.tensor(where), other).tanh().sum().backward()
        same(table.grad.numpy(), other.grad.numpy())
    assert compilations() <= 2


# --- what is assumed ----------------------------------------------------------------------------


def test_sizes_that_were_equal_by_chance():
    def function(x, y):
        return x.sum(0) * 2 + y.sum(0), (x @ x.T).sum() + (y @ y.T).sum()

    # The two first sizes are equal twice, and then are not.
    shapes = [((n, 6), (m, 6)) for n, m in ((5, 5), (8, 8), (9, 7), (4, 30), (30, 4), (6, 6))]
    agree(function, shapes, 4)


def test_equal_by_chance_to_a_constant():
    w = mg.tensor(numbers(8, 8))
    mg.synchronize()

    def function(x):
        return x @ w + x.sum(1, keepdim=True), (x.T @ x) * w

    agree(function, [[(n, 8)] for n in (5, 8, 13, 8, 40, 2)], 3)


def test_broadcast_axes_of_one():
    def function(x, y):
        return x + y, (x * y).sum(0)

    shapes = [((n, 3), (m, 3)) for n, m in ((4, 4), (6, 6), (1, 6), (6, 1), (9, 9), (1, 1), (2, 2))]
    agree(function, shapes, 4)


def test_symbols_that_may_be_one_are_not_those_that_may_not():
    """Proofs are remembered by the names of symbols."""
    structure = Structure(None, (1, 6), 2, (1, 1))
    forms = list(forms_of([(4, 4), (1, 6)], structure, "name"))
    names = [{name for name, _, _ in form.symbols} for form in forms]
    lows = [{low for _, _, low in form.symbols} for form in forms]
    assert lows == [{1}, {2}] and names[0].isdisjoint(names[1])


def test_a_fact_that_does_not_hold_makes_another_program():
    def function(x):
        return x[:10] * 2.0, x[10:].sum() if x.shape[0] > 10 else x.sum()

    agree(lambda x: x[:10] * 2.0, [[(n, 3)] for n in (20, 30, 5, 11, 7, 10, 100, 8, 2)], 3)
    agree(function, [[(n, 2)] for n in (20, 30, 5, 11, 7, 10, 100, 8, 12)], 8)


def test_another_default_dtype_is_another_program():
    held = mg.get_default_dtype()
    try:
        for dtype in (mg.float64, mg.float32):
            mg.set_default_dtype(dtype)
            for n in (3, 5, 4):
                a = GENERATOR.integers(-3, 4, n)
                made = (mg.tensor(a) / 2).numpy()
                assert made.dtype == dtype.numpy
                same(made, a / 2)
    finally:
        mg.set_default_dtype(held)


def test_what_needs_a_number_is_compiled_for_it():
    def doubled(x):
        return x.prod(0)  # its derivative doubles until it has reached the size

    def function(x):
        x = x.requires_grad_()
        return mg.autograd.grad(doubled(x).sum(), x)

    agree(function, [[(n, 2)] for n in (5, 6, 7, 12, 3)], 5)


def test_the_program_is_shared_by_more_and_fewer_results():
    x = [numbers(n, 4) for n in (5, 6, 7, 8)]
    for a in x:
        y = mg.tensor(a) * 2
        z = y.sum(1)
        same(z.numpy(), (a * 2).sum(1))
        same(y.numpy(), a * 2)
    for a in x:
        same((mg.tensor(a) * 2).sum(1).numpy(), (a * 2).sum(1))
    assert compilations() <= 4


def test_sizes_that_stay_get_a_program_of_their_own():
    for n in (5, 9):
        same((mg.tensor(numbers(n, 4)) * 0).numpy(), np.zeros((n, 4)))
    assert compilations() == 2 and mg.stats().instantiations == 1
    for _ in range(2 * family.STEADY):
        (mg.tensor(numbers(9, 4)) * 0).numpy()
    assert compilations() == 3


def test_either_of_two_sequences_may_be_the_longer():
    # Indices of both are checked together, which must not decide which are more.
    words = mg.tensor(numbers(50, 4))
    for n, m in ((5, 7), (9, 4), (6, 6), (3, 20), (20, 3)):
        a, b = GENERATOR.integers(0, 50, (2, n)), GENERATOR.integers(0, 50, (2, m))
        found = F.embedding(mg.tensor(a), words).sum() + F.embedding(mg.tensor(b), words).sum()
        same(found.item(), words.numpy()[a].sum() + words.numpy()[b].sum())
    assert compilations() == 2
    with pytest.raises(IndexError):
        F.embedding(mg.tensor([[50] * 30]), words).sum().item()


@pytest.mark.compiled
@pytest.mark.parametrize("library", [True, False])
def test_what_fits_where_it_was_is_only_given_other_sizes(monkeypatch, library):
    kept = []
    whole = NativeProgram.with_sizes

    def noted(self, plan, sizes):
        kept.append(plan.results[0][0])
        return whole(self, plan, sizes)

    monkeypatch.setattr(NativeProgram, "with_sizes", noted)
    w, v = mg.tensor(numbers(96, 128)), mg.tensor(numbers(128, 96))

    def perceptron(x):
        return mg.softmax(mg.relu(x @ w) @ v, 1).sum(0) + mg.zeros(96)

    with mg.config.override(onednn=library):
        sizes = [200, 150, 300, 170, 299, 301, 120, 80, 300]
        agree(perceptron, [((n, 96),) for n in sizes], most=2)
        assert len(kept) == 4  # not the first two, those for which it had to grow, one met before


def test_small_programs_are_interpreted_first():
    with mg.config.override(tier0_limit=32):
        for n in (5, 9, 12, 7):
            a = numbers(n, 4)
            same((mg.tensor(a) * 3).numpy(), a * 3)
    assert mg.stats().interpreted == 1 and compilations() == 1


def test_sizes_that_are_equal_without_being_the_same():
    # The cotangent has the result's shape, but nothing says so of the symbols.
    for shape, pads in (((2, 3), (1, 2)), ((4, 5), (-1, -2)), ((4, 6), (2, -1)), ((7, 9), (1, 1))):
        width = shape[1] + sum(pads)
        a, g = numbers(*shape), numbers(shape[0], width)
        found = []
        for library, functions in ((mg, F), (torch, TF)):
            x = library.tensor(a).requires_grad_()
            (made,) = library.autograd.grad(functions.pad(x, pads), x, library.tensor(g))
            found.append(made.numpy())
        same(*found)


def test_errors_name_the_sizes_of_the_run():
    for rows in (5, 8, 11):
        table = mg.tensor(numbers(rows, 3))
        F.embedding(mg.tensor(np.arange(4)), table).numpy()
    assert mg.stats().instantiations == 2
    with pytest.raises(IndexError, match=r"index 9 .* size 7 .*float32\[7, 3\]"):
        F.embedding(mg.tensor(np.array([1, 9, 2, 0])), mg.tensor(numbers(7, 3))).numpy()
    assert mg.stats().instantiations == 3


def test_no_access_is_out_of_bounds():
    with mg.config.override(bounds_checks=True):
        for name in ("softmax", "transposed", "joined", "column sum", "total", "gathered"):
            agree(FUNCTIONS[name], BOTH, 4, 1e-3)


# --- windows ------------------------------------------------------------------------------------


def _attention(form, *arrays):
    """Attention over given q, k, v, [B, T, H, D], and the gradients of its square."""
    q, k, v = [mg.tensor(x.numpy(), requires_grad=True) for x in arrays]
    options = {"is_causal": form != "masked"}
    if form == "masked":
        many = q.shape[1]
        seen = np.random.default_rng(many).random((many, many)) < 0.7
        seen[:, 0] = True
        options["attn_mask"] = mg.tensor(seen)
    if form == "dropout":
        mg.manual_seed(1)
        options["dropout_p"] = 0.2
    if form == "shared heads":
        k, v = k[:, :, :1], v[:, :, :1]
        options["enable_gqa"] = True
    turned = [x.transpose(1, 2) for x in (q, k, v)]
    made = F.scaled_dot_product_attention(*turned, **options)
    return [made.detach(), *mg.autograd.grad(made.square().sum(), [q, k, v])]


@pytest.mark.parametrize("form", ["masked", "dropout", "shared heads"])
def test_attention_over_lengths_that_vary_stores_no_scores(form):
    shapes = [[(2, many, 2, 16)] * 3 for many in (40, 130, 64, 17, 900)]
    settle()
    agree(lambda *arrays: _attention(form, *arrays), shapes, most=2, tolerance=2e-3)
    assert mg.stats().arena_bytes < 4 * 2 * 2 * 900 * 900 / 2


def test_attention_over_batches_that_vary_stores_no_scores():
    shapes = [[(many, 200, 2, 16)] * 3 for many in (2, 3, 5, 12)]
    settle()
    agree(lambda *arrays: _attention("causal", *arrays), shapes, most=2, tolerance=2e-3)
    assert mg.stats().arena_bytes < 4 * 12 * 2 * 200 * 200 / 2


def test_a_sequence_that_grows():
    """Generation without a cache of keys: the same few programs at every length."""
    model = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True).eval()
    x = numbers(1, 160, 32)
    settle()
    with mg.no_grad():
        whole = [model(mg.tensor(x[:, :many])).numpy()[:, -1] for many in range(3, 160, 9)]
        assert compilations() <= 2
        with mg.config.override(backend="reference"):
            wanted = [model(mg.tensor(x[:, :many])).numpy()[:, -1] for many in range(3, 160, 9)]
    same(np.stack(whole), np.stack(wanted))


def test_places_vary_beside_what_numpy_computes():
    """A rollout writes one row after the other; the draw between them has fixed sizes."""
    rows = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    steps, held = mg.tensor(rows), mg.zeros(20, 4)
    before = mg.stats().compilations
    for _ in range(2):
        for n in range(20):
            held[n] = mg.cumsum(steps[n].clone(), 0) * 2
            total = (held[n] + 1).sum().item()
            assert abs(total - (rows[n].cumsum() * 2 + 1).sum()) < 1e-3
    assert mg.stats().compilations - before <= 5
    np.testing.assert_allclose(held.numpy(), rows.cumsum(1) * 2, rtol=1e-4, atol=1e-5)
