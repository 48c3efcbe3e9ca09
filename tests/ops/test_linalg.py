"""Linear algebra against PyTorch: values, dtypes, errors, first and second derivatives.

Factors that are unique only up to signs (singular vectors, eigenvectors) are compared through what
does not depend on signs.
"""

import numpy as np
import pytest
import torch

import monograph as mg
from monograph import linalg
from monograph.errors import LinAlgError

from .compare import agree, close, numbers

NAN, INF = float("nan"), float("inf")
TL = torch.linalg


@pytest.fixture(params=("reference", "cpu"), autouse=True)
def backend(request):
    with mg.config.override(backend=request.param):
        yield request.param


def normal(*size, seed=0, dtype="float64"):
    return np.asarray(np.random.default_rng(seed).normal(size=size)).astype(dtype)


def definite(*size, seed=0, dtype="float64"):
    a = normal(*size, seed=seed)
    return (a @ np.swapaxes(a, -1, -2) + np.eye(size[-1])).astype(dtype)


def both(name):
    return getattr(linalg, name), getattr(TL, name)


# --- systems ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(3, 3), (2, 3, 3), (1, 1), (0, 3, 3), (0, 0)])
@pytest.mark.parametrize("name", ["inv", "det", "matrix_exp"])
def test_functions_of_square_matrices(name, size):
    agree(*both(name), normal(*size), order=0 if 0 in size else 2)
    agree(*both(name), normal(*size, dtype="float32"), order=0 if 0 in size else 1)


def test_singular_matrices_are_an_error_at_the_call():
    calls = {
        "inv": lambda: linalg.inv(mg.zeros(2, 2)),
        "solve": lambda: linalg.solve(mg.zeros(2, 2), mg.ones(2)),
        "inverse": lambda: mg.inverse(mg.zeros(2, 2)),
        "power": lambda: mg.matrix_power(mg.zeros(2, 2), -1),
    }
    for call in calls.values():
        with pytest.raises(LinAlgError, match="singular"):
            call()
    with pytest.raises(LinAlgError, match=r"minor of order 2 is not positive-definite"):
        linalg.cholesky(mg.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(LinAlgError, match=r"\(Batch element 1\)"):
        linalg.inv(mg.tensor([[[1.0]], [[0.0]]]))
    assert issubclass(LinAlgError, RuntimeError) and linalg.LinAlgError is LinAlgError
    assert linalg.inv(mg.tensor([[2.0]])).item() == 0.5


def test_what_was_pending_survives_an_error():
    x = mg.ones(3)
    y = x * 2
    y.add_(1)
    with pytest.raises(LinAlgError):
        linalg.inv(mg.zeros(2, 2) * y.sum())
    assert y.tolist() == [3.0, 3.0, 3.0]


def test_operands_that_are_refused():
    with pytest.raises(RuntimeError, match="square matrices, but they are 2 by 3"):
        linalg.inv(mg.zeros(2, 3))
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        linalg.inv(mg.zeros(2))
    with pytest.raises(RuntimeError, match="floating point"):
        linalg.inv(mg.zeros(2, 2, dtype=mg.int64))
    with pytest.raises(RuntimeError, match="Low precision"):
        linalg.inv(mg.zeros(2, 2, dtype=mg.float16))
    with pytest.raises(RuntimeError, match="same dtype"):
        linalg.solve(mg.ones(2, 2), mg.ones(2, dtype=mg.float64))
    with pytest.raises(RuntimeError, match="Incompatible shapes"):
        linalg.solve(mg.ones(2, 2), mg.ones(3, 1))


SYSTEMS = [((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (3, 2)),
           ((2, 1, 3, 3), (4, 3, 2))]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SYSTEMS)
def test_solve(a, b):
    agree(*both("solve"), normal(*a), normal(*b, seed=1))


def test_solve_from_the_right():
    agree(*both("solve"), normal(3, 3), normal(2, 3, seed=1), left=False)
    agree(*both("solve_ex"), normal(3, 3), normal(3, 2, seed=1), order=1)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_solve_triangular(upper, unit, left):
    facts = {"upper": upper, "unitriangular": unit, "left": left}
    b = normal(3, 2, seed=1) if left else normal(2, 3, seed=1)
    agree(*both("solve_triangular"), normal(3, 3), b, **facts)
    agree(*both("solve_triangular"), normal(2, 3, 3), b, **facts)
    big = normal(70, 70) + 20 * np.eye(70)
    agree(*both("solve_triangular"), big, normal(70, 70), order=0, **facts)


def test_info_instead_of_errors():
    matrices = np.stack([np.eye(3), np.diag([1.0, 0.0, 2.0]), -np.eye(3)])
    made, expected = linalg.inv_ex(mg.tensor(matrices)), TL.inv_ex(torch.tensor(matrices))
    close(made.info, expected.info, 0)
    close(made.inverse[0], expected.inverse[0], 1e-12)
    made, expected = linalg.cholesky_ex(mg.tensor(matrices)), TL.cholesky_ex(torch.tensor(matrices))
    close(made.info, expected.info, 0)
    close(made.L[0], expected.L[0], 1e-12)
    with pytest.raises(LinAlgError):
        linalg.inv_ex(mg.tensor(matrices), check_errors=True)
    agree(lambda a: linalg.inv_ex(a).inverse, lambda a: TL.inv_ex(a).inverse, normal(3, 3))


# --- factors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("size", [(3, 3), (2, 4, 4), (0, 0)])
def test_cholesky(size, upper):
    order = 0 if 0 in size else 2
    agree(*both("cholesky"), definite(*size), upper=upper, order=order)
    ours, theirs = both("cholesky_ex")
    agree(
        lambda a: ours(a, upper=upper).L,
        lambda a: theirs(a, upper=upper).L,
        definite(*size),
        order=order,
    )


@pytest.mark.parametrize("upper", [False, True])
def test_systems_by_cholesky_factors(upper):
    factor = np.linalg.cholesky(definite(3, 3))
    factor = factor.T.copy() if upper else factor
    agree(mg.cholesky_solve, torch.cholesky_solve, normal(3, 2), factor, upper=upper)
    agree(mg.cholesky_inverse, torch.cholesky_inverse, factor, upper=upper)


@pytest.mark.parametrize("size", [(3, 3), (4, 3), (3, 4), (2, 4, 3)])
def test_lu(size):
    agree(*both("lu"), normal(*size))
    agree(*both("lu"), normal(*[20 * extent for extent in size]), order=0)  # several blocks
    agree(*both("lu_factor"), normal(*size))
    made, expected = linalg.lu_factor_ex(mg.zeros(2, 2)), TL.lu_factor_ex(torch.zeros(2, 2))
    close(made.info, expected.info, 0)
    with pytest.raises(RuntimeError, match="is zero"):
        linalg.lu_factor(mg.zeros(2, 2))
    with pytest.raises(RuntimeError, match="pivoting"):
        linalg.lu(mg.ones(2, 2), pivot=False)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left, adjoint):
    def solved(library):
        def call(a, b):
            return library.lu_solve(*library.lu_factor(a), b, left=left, adjoint=adjoint)

        return call

    b = normal(3, 2, seed=1) if left else normal(2, 3, seed=1)
    agree(solved(linalg), solved(TL), normal(3, 3), b)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("size", [(3, 3), (4, 3), (3, 4), (2, 4, 3)])
def test_qr(size, mode):
    free = mode == "r" or (mode == "complete" and size[-2] > size[-1])
    agree(*both("qr"), normal(*size), mode=mode, order=0 if free else 2)


def test_qr_that_has_no_derivative():
    x = mg.tensor(normal(4, 3), requires_grad=True)
    with pytest.raises(NotImplementedError, match="not differentiable"):
        mg.autograd.grad(linalg.qr(x, "complete").R.sum(), x)[0].numpy()
    with pytest.raises(RuntimeError, match="unrecognized mode"):
        linalg.qr(x, "full")


def test_householder_product():
    agree(*both("householder_product"), normal(4, 3), normal(3, seed=1))
    agree(*both("householder_product"), normal(2, 4, 3), normal(2, 2, seed=1))


# --- determinants -------------------------------------------------------------------------------


def test_determinants():
    agree(*both("slogdet"), normal(2, 3, 3))
    agree(mg.slogdet, torch.slogdet, normal(3, 3))
    agree(mg.logdet, torch.logdet, definite(2, 3, 3))
    agree(mg.logdet, torch.logdet, np.diag([1.0, -1.0]), order=0)
    agree(mg.det, torch.det, normal(3, 3))


def test_the_derivative_of_a_determinant_that_is_zero():
    """PyTorch says 0 here. The derivative by each element is its cofactor."""
    x = mg.tensor(np.diag([1.0, 2.0, 0.0]), requires_grad=True)
    linalg.det(x).backward()
    np.testing.assert_allclose(numbers(x.grad), np.diag([0.0, 0.0, 2.0]), atol=1e-12)


# --- spectra ------------------------------------------------------------------------------------


def svd_without_signs(library):
    def call(a):
        u, s, vh = library.svd(a, full_matrices=False)
        return s, u * u, vh * vh, (u * s.unsqueeze(-2)) @ vh, u @ vh

    return call


@pytest.mark.parametrize("size", [(3, 3), (4, 3), (3, 4), (2, 3, 2)])
def test_svd(size):
    agree(svd_without_signs(linalg), svd_without_signs(TL), normal(*size), tolerance=10)
    agree(*both("svdvals"), normal(*size))
    made = linalg.svd(mg.tensor(normal(*size)))
    m, n = size[-2:]
    assert tuple(made.U.shape[-2:]) == (m, m) and tuple(made.Vh.shape[-2:]) == (n, n)
    u, s, v = mg.svd(mg.tensor(normal(*size)))
    again = (u * s.unsqueeze(-2)) @ v.mT
    np.testing.assert_allclose(numbers(again), normal(*size), atol=1e-12)


def test_full_svd_has_the_derivatives_of_the_reduced_one():
    agree(lambda a: linalg.svd(a).S, lambda a: TL.svd(a).S, normal(4, 3))
    agree(lambda a: linalg.svd(a).U[:, :3] ** 2, lambda a: TL.svd(a).U[:, :3] ** 2, normal(4, 3))


def test_equal_singular_values_have_a_derivative():
    agree(lambda a: linalg.svd(a).S.sum(), lambda a: TL.svd(a).S.sum(), np.eye(3), order=1)


def eigh_without_signs(library, side):
    def call(a):
        values, vectors = library.eigh(a, side)
        return values, vectors * vectors, (vectors * values.exp().unsqueeze(-2)) @ vectors.mT

    return call


@pytest.mark.parametrize("side", ["L", "U"])
def test_eigh(side):
    for size in ((3, 3), (2, 4, 4)):
        ours, theirs = eigh_without_signs(linalg, side), eigh_without_signs(TL, side)
        agree(ours, theirs, definite(*size), tolerance=100)
        agree(*both("eigvalsh"), definite(*size), side, tolerance=10)
    with pytest.raises(RuntimeError, match="UPLO"):
        linalg.eigh(mg.zeros(2, 2), "X")


def test_a_spectrum_that_does_not_exist():
    with pytest.raises(LinAlgError, match="converge"):
        linalg.svd(mg.tensor([[NAN, 1.0], [1.0, 1.0]]))


@pytest.mark.parametrize("size", [(3, 3), (4, 3), (3, 4), (2, 3, 2)])
def test_pinv(size):
    agree(*both("pinv"), normal(*size))
    agree(mg.pinverse, torch.pinverse, normal(3, 2))


def test_tolerances():
    weak = np.diag([1.0, 1e-3, 1e-9])
    for facts in ({}, {"rtol": 1e-2}, {"atol": 1e-6}, {"atol": 1e-6, "rtol": 1e-2}):
        agree(*both("pinv"), weak, order=0, **facts)
        agree(*both("matrix_rank"), weak, order=0, **facts)
    agree(*both("pinv"), definite(3, 3), hermitian=True, order=1)
    agree(*both("matrix_rank"), np.ones((2, 3, 3)), order=0)
    agree(*both("matrix_rank"), np.ones((3, 3)), hermitian=True, order=0)
    made = linalg.matrix_rank(mg.tensor(weak), atol=mg.tensor(1e-2, dtype=mg.float64))
    assert made.item() == 1
    agree(*both("pinv"), np.zeros((0, 3)), order=0)


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_lstsq(driver):
    for a, b in (((5, 3), (5, 2)), ((3, 5), (3, 2)), ((2, 5, 3), (2, 5, 2))):
        agree(*both("lstsq"), normal(*a), normal(*b, seed=1), driver=driver, order=0)
    agree(lambda a, b: linalg.lstsq(a, b).solution, lambda a, b: TL.lstsq(a, b).solution,
          normal(5, 3), normal(5, 2, seed=1), order=1)  # fmt: skip


# --- norms and products -------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 1, 0, 3, 0.5, 2.5, -1, INF, -INF])
def test_vector_norm(order):
    x = normal(3, 4)
    depth = 0 if order == 0 else 2
    ours, theirs = both("vector_norm")

    def by(function, **facts):
        return lambda a: function(a, order, **facts)

    for facts in ({}, {"dim": 1}, {"dim": (0, 1), "keepdim": True}, {"dim": -1, "keepdim": True}):
        agree(by(ours, **facts), by(theirs, **facts), x, order=depth)
    agree(lambda a: ours(a.float(), order, dtype=mg.float64),
          lambda a: theirs(a.float(), order, dtype=torch.float64), x, order=0)  # fmt: skip


def test_norms_at_zero():
    for order in (2, 3, 1):
        agree(lambda a, p=order: linalg.vector_norm(a, p),
              lambda a, p=order: TL.vector_norm(a, p), np.zeros(3), order=1)  # fmt: skip
        agree(lambda a, p=order: linalg.vector_norm(a, p),
              lambda a, p=order: TL.vector_norm(a, p), np.array([0.0, 2.0]), order=1)  # fmt: skip


@pytest.mark.parametrize("order", ["fro", "nuc", INF, -INF, 1, -1, 2, -2])
def test_matrix_norm(order):
    ours, theirs = both("matrix_norm")
    for facts in ({}, {"keepdim": True}, {"dim": (0, 2)}, {"dim": (2, 0), "keepdim": True}):
        agree(lambda a, f=facts: ours(a, order, **f), lambda a, f=facts: theirs(a, order, **f),
              normal(2, 3, 4), order=2)  # fmt: skip
    agree(lambda a: linalg.norm(a, order), lambda a: TL.norm(a, order), normal(3, 4))


def test_norm_means_what_its_arguments_say():
    ours, theirs = both("norm")
    for args in ((), (None, 0), (None, (0, 1)), (2, 1), (INF, (0, 1)), (3, 0), (None, None, True)):
        agree(lambda a, g=args: ours(a, *g), lambda a, g=args: theirs(a, *g), normal(3, 4))
    agree(ours, theirs, normal(2, 3, 4))
    agree(ours, theirs, normal(4), 3)
    with pytest.raises(RuntimeError, match="1D or 2D"):
        linalg.norm(mg.zeros(2, 2, 2), 2)


@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, -1, INF, -INF])
def test_cond(p):
    spectral = p in (None, 2, -2, "nuc")
    agree(*both("cond"), normal(2, 3, 3), p, order=1 if spectral else 0)
    if not spectral:  # PyTorch's own derivative fails: it writes over what it needs

        def by_definition(a):
            return TL.matrix_norm(a, p) * TL.matrix_norm(TL.inv(a), p)

        agree(lambda a: linalg.cond(a, p), by_definition, normal(2, 3, 3))
        agree(*both("cond"), np.zeros((2, 2)), p, order=0)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, -1, -3])
def test_matrix_power(n):
    agree(*both("matrix_power"), normal(2, 3, 3), n, order=2 if n else 0)
    agree(mg.matrix_power, torch.matrix_power, normal(3, 3), n, order=0)


def test_products():
    chain = [normal(2, 5), normal(5, 3, seed=1), normal(3, 4, seed=2)]
    agree(lambda *m: linalg.multi_dot(m), lambda *m: TL.multi_dot(m), *chain)
    ends = [normal(5), normal(5, 3, seed=1), normal(3, seed=2)]
    agree(lambda *m: linalg.multi_dot(m), lambda *m: TL.multi_dot(m), *ends)
    agree(mg.chain_matmul, torch.chain_matmul, *chain)
    agree(*both("cross"), normal(4, 3), normal(4, 3, seed=1))
    agree(*both("cross"), normal(1, 3), normal(4, 3, seed=1))
    agree(mg.cross, torch.cross, normal(3, 3), normal(3, 3, seed=1), dim=0)
    agree(*both("vecdot"), normal(4, 3), normal(4, 3, seed=1))
    agree(*both("vecdot"), normal(4, 3), normal(4, 3, seed=1), dim=0)
    agree(*both("vander"), normal(2, 3))
    agree(*both("vander"), np.array([0.0, 2.0]), N=4)
    agree(*both("vander"), np.array([1, 2, 3]), order=0)
    with pytest.raises(RuntimeError, match="length 3"):
        linalg.cross(mg.zeros(2), mg.zeros(2))


def test_diagonal_is_a_view():
    for facts in ({}, {"offset": 1}, {"offset": -2}, {"dim1": 0, "dim2": 2}, {"offset": 9}):
        agree(*both("diagonal"), normal(2, 3, 4), order=0 if facts.get("offset") == 9 else 2,
              **facts)  # fmt: skip
    x = mg.zeros(2, 2)
    linalg.diagonal(x).add_(1)
    assert x.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_tensor_equations():
    agree(*both("tensorinv"), normal(2, 3, 6), ind=2)
    agree(*both("tensorinv"), normal(4, 2, 2), ind=1)
    agree(*both("tensorsolve"), normal(2, 3, 6), normal(2, 3, seed=1))
    agree(*both("tensorsolve"), normal(3, 2, 6).transpose(2, 0, 1).copy(), normal(3, 2, seed=1),
          dims=(0,), order=1)  # fmt: skip


def complex_normal(*size, seed=0):
    return normal(*size, seed=seed) + 1j * normal(*size, seed=seed + 100)


COMPLEX = ["inv", "det", "slogdet", "matrix_exp", "svdvals", "qr", "lu", "pinv", "norm", "cond"]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_matrices(name):
    agree(*both(name), complex_normal(2, 3, 3), tolerance=10)


def test_complex_systems():
    a, b = complex_normal(3, 3), complex_normal(3, 2, seed=1)
    agree(*both("solve"), a, b)
    agree(*both("solve_triangular"), a, b, upper=True)
    agree(lambda x: linalg.cholesky(x @ x.mH), lambda x: TL.cholesky(x @ x.mH), a)
    agree(lambda x: linalg.eigvalsh(x + x.mH), lambda x: TL.eigvalsh(x + x.mH), a)
    agree(*both("vecdot"), complex_normal(4, 3), complex_normal(4, 3, seed=1))
    agree(mg.cumsum, torch.cumsum, complex_normal(5), 0)
    agree(mg.cumprod, torch.cumprod, complex_normal(5), 0)


def test_through_views_and_methods():
    agree(lambda a: linalg.inv(a.mT[::2, ::2]), lambda a: TL.inv(a.mT[::2, ::2]), normal(5, 5))
    agree(lambda a: a.inverse(), lambda a: a.inverse(), normal(3, 3))
    agree(lambda a: a.det() + a.logdet(), lambda a: a.det() + a.logdet(), definite(3, 3))
    out = mg.zeros(2, 2)
    linalg.inv(mg.tensor([[2.0, 0.0], [0.0, 4.0]]), out=out)
    assert out.tolist() == [[0.5, 0.0], [0.0, 0.25]]


def test_inside_a_loss():
    """A log-likelihood: kernels, contractions and calls in one program and its derivative."""

    def loss(library, sub):
        def call(a, b):
            factor = sub.cholesky(a @ a.mT + library.exp(b) @ b.mT * 0.1 + 5)
            return sub.solve_triangular(factor, b, upper=False).square().sum() + factor.sum()

        return call

    agree(loss(mg, linalg), loss(torch, TL), normal(4, 6), np.abs(normal(4, 4, seed=1)),
          tolerance=10)  # fmt: skip


# --- matrices that need not be symmetric or definite --------------------------------------------


def symmetric(n, seed, dtype, hermitian):
    a = normal(n, n, seed=seed) + 1j * normal(n, n, seed=seed + 100)
    a = a if dtype == "complex128" else a.real
    a[np.arange(n), np.arange(n)] *= 0.01  # so that blocks of two are chosen
    return (a + (a.conj().T if hermitian else a.T)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("n", [1, 2, 5, 12, 40])
def test_ldl(dtype, hermitian, n):
    for seed in range(4):
        a = symmetric(n, seed, dtype, hermitian)
        ours = linalg.ldl_factor(mg.tensor(a), hermitian=hermitian)
        theirs = TL.ldl_factor(torch.from_numpy(a), hermitian=hermitian)
        assert ours.pivots.tolist() == theirs.pivots.tolist()
        np.testing.assert_allclose(
            np.tril(numbers(ours.LD)), np.tril(numbers(theirs.LD)), atol=1e-9, rtol=1e-6
        )
        b = normal(n, 3, seed=9).astype(dtype)
        x = linalg.ldl_solve(*ours, mg.tensor(b), hermitian=hermitian)
        np.testing.assert_allclose(a @ numbers(x), b, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigenvalues_of_any_matrix(dtype):
    a = normal(2, 4, 4).astype(dtype)
    values, vectors = linalg.eig(mg.tensor(a))
    lengths = (vectors.abs() ** 2).sum(-2)
    np.testing.assert_allclose(numbers(lengths), 1.0, rtol=1e-9)
    np.testing.assert_allclose(
        a @ numbers(vectors), numbers(vectors) * numbers(values)[:, None], atol=1e-9
    )

    def spread(library):
        return lambda x: (library.linalg.eigvals(x) ** 3).sum()

    agree(spread(mg), spread(torch), a)


@pytest.mark.parametrize("size", [(8, 5), (5, 8), (2, 6, 4)])
def test_low_rank(size):
    m, n = size[-2:]
    a = normal(*size[:-1], 2) @ normal(*size[:-2], 2, n, seed=1)
    for u, s, v in (
        mg.svd_lowrank(mg.tensor(a), q=2),
        mg.pca_lowrank(mg.tensor(a), q=2, center=False),
    ):
        assert tuple(u.shape) == (*size[:-1], 2) and tuple(v.shape) == (*size[:-2], n, 2)
        made = numbers(u) * numbers(s)[..., None, :] @ np.swapaxes(numbers(v), -1, -2)
        np.testing.assert_allclose(made, a, atol=1e-9)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("size", [(5, 3), (4, 4), (3, 5)])
def test_reflections(left, transpose, size):
    def call(library):
        def function(a, b):
            return library.ormqr(*library.geqrf(a.detach()), b, left, transpose)

        return function

    m = size[0]
    agree(call(mg), call(torch), normal(*size), normal(*((m, 2) if left else (2, m))), order=1)
