"""Spans as data: angles, projections, files, pictures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import revelu
from revelu.network.span import Span, complement


def random_span(n, k, seed):
    rng = np.random.default_rng(seed)
    return Span(np.linalg.qr(rng.standard_normal((n, k)))[0].T)


SIZES = st.integers(2, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, 999))
)


@given(SIZES)
def test_parts_add_up_and_are_orthogonal(size):
    n, k, seed = size
    span = random_span(n, k, seed)
    X = np.random.default_rng(seed + 1).standard_normal((5, n))
    inside, outside = span.project(X), span.remove(X)
    np.testing.assert_allclose(inside + outside, X, atol=1e-12)
    np.testing.assert_allclose(span.project(inside), inside, atol=1e-12)
    np.testing.assert_allclose(outside @ span.basis.T, 0.0, atol=1e-12)
    np.testing.assert_allclose(span.null_basis @ span.basis.T, 0.0, atol=1e-12)
    assert span.null_basis.shape == (n - k, n)


@given(SIZES)
def test_no_angle_to_itself_in_another_basis(size):
    n, k, seed = size
    span = random_span(n, k, seed)
    mixed = np.random.default_rng(seed + 2).standard_normal((k, k)) @ span.basis
    assert span.angles(mixed).max(initial=0.0) < 1e-9
    assert len(span.angles(mixed)) == np.linalg.matrix_rank(mixed)


@pytest.mark.parametrize("angle", [0.0, 1e-14, 1e-9, 1e-3, 0.7, np.pi / 2])
def test_angle_is_known_however_small(angle):
    turned = [[np.cos(angle), 0.0, np.sin(angle)], [0.0, 1.0, 0.0]]
    angles = Span(np.eye(3)[:2]).angles(Span(turned))
    np.testing.assert_allclose(angles, [angle, 0.0], rtol=1e-9, atol=1e-300)


def test_angles_between_different_ranks_are_those_of_the_smaller():
    big, small = Span(np.eye(5)[:3]), Span(np.eye(5)[2:4])
    np.testing.assert_allclose(big.angles(small), [np.pi / 2, 0.0], atol=1e-15)
    np.testing.assert_allclose(small.angles(big), [np.pi / 2, 0.0], atol=1e-15)
    assert len(big.angles(np.empty((0, 5)))) == 0


@given(SIZES)
def test_file_brings_everything_back(tmp_path_factory, size):
    n, k, seed = size
    path = tmp_path_factory.mktemp("span") / "a.npz"
    span = Span(random_span(n, k, seed).basis, np.arange(k)[::-1], floor=0.25)
    span.save(path)
    back = Span.load(path)
    np.testing.assert_array_equal(back.basis, span.basis)
    np.testing.assert_array_equal(back.singular_values, span.singular_values)
    assert back.floor == span.floor


@pytest.mark.parametrize(
    ("basis", "word"),
    [
        ([[1.0, 1.0]], "orthonormal"),
        ([[1.0, 0.0], [1.0, 0.0]], "orthonormal"),
        ([1.0, 0.0], "shape"),
        ([[np.nan, 1.0]], "finite"),
        ([["a", "b"]], "numeric"),
    ],
)
def test_bad_basis_is_refused(basis, word):
    with pytest.raises(revelu.InputError, match=word):
        Span(basis)


def test_wrong_width_is_named():
    span = Span(np.eye(3)[:1])
    for method in (span.project, span.remove):
        with pytest.raises(revelu.InputError, match=r"\(m, 3\).*\(2, 4\)"):
            method(np.ones((2, 4)))
    with pytest.raises(revelu.InputError, match="3 inputs"):
        span.angles(np.eye(4))


def test_files_that_hold_no_span_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(revelu.FormatError, match="no such file"):
        Span.load(path)
    revelu.zoo.random_network([3, 2, 1]).save(path)
    with pytest.raises(revelu.FormatError, match="no span"):
        Span.load(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(revelu.FormatError, match=r"a\.npz"):
        Span.load(path)
    np.savez(path, span=np.ones((2, 3)), schema=1)
    with pytest.raises(revelu.FormatError, match="orthonormal"):
        Span.load(path)
    with pytest.raises(revelu.FormatError, match=r"\.npz"):
        Span(np.eye(2)).save(tmp_path / "a.onnx")


def test_a_span_does_not_change():
    basis = np.eye(3)[:2]
    span = Span(basis)
    basis[0, 0] = 7.0
    assert span.basis[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        span.basis[0, 0] = 2.0


def test_complement_of_nothing_is_everything():
    np.testing.assert_array_equal(complement(np.empty((0, 3))), np.eye(3))
    assert complement(np.eye(3)).shape == (0, 3)


def test_plot_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    Span(np.eye(4)[:2], [1.0, 0.5, 1e-9], floor=1e-9).plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(revelu.FormatError, match=r"\.png"):
        Span(np.eye(4)[:2]).plot(tmp_path / "a.txt")


def test_plot_without_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(revelu.MissingExtraError, match="report"):
        Span(np.eye(4)[:2]).plot(tmp_path / "a.png")


@pytest.mark.parametrize("certified", [None, False, True])
def test_a_file_says_what_is_certified(tmp_path, certified):
    span = Span(np.eye(4)[:2], errors=[1e-3, 0.2], certified=certified)
    span.save(tmp_path / "a.npz")
    back = Span.load(tmp_path / "a.npz")
    assert back.certified is certified
    np.testing.assert_array_equal(back.errors, [1e-3, 0.2])
    assert ("not certified" in repr(back)) == (certified is False)


@pytest.mark.parametrize("errors", [[0.1], [0.1, -1.0], [0.1, np.nan]], ids=str)
def test_bad_errors_are_refused(errors):
    with pytest.raises(revelu.InputError, match="errors"):
        Span(np.eye(3)[:2], errors=errors)
