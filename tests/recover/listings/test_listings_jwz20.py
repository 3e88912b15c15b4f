"""JWZ20's algorithms as printed, an independent check of the spans that revelu finds."""

import numpy as np

import revelu
from listings import jwz20


def scalar(network):
    return lambda x: float(network(np.asarray(x)[None])[0, 0])


def test_listing_1_and_revelu_find_one_span():
    truth = revelu.zoo.random_network([12, 5, 4, 1], seed=2)
    rng = np.random.default_rng(3)
    printed = jwz20.span_non_adaptive(scalar(truth), 12, 5, 1.0, 1e-4, rng)
    found = revelu.recover_span(truth, seed=4)
    assert len(printed) == found.span.rank == 5
    assert found.span.angles(printed).max() < 1e-6
    assert found.span.angles(truth.weights[0]).max() < 1e-9


def test_listing_1_sees_part_of_a_network_with_a_thin_layer():
    # One unit above makes every gradient a multiple of a combination of the units on:
    # enough sign patterns still show more than the half that Theorem 3.4 promises.
    truth = revelu.zoo.random_network([12, 6, 1, 1], seed=5)
    printed = jwz20.span_non_adaptive(scalar(truth), 12, 6, 0.5, 1e-4, np.random.default_rng(0))
    assert 3 <= len(printed) <= 6
    span = revelu.Span(printed)
    assert revelu.Span(jwz20.np.linalg.qr(truth.weights[0].T)[0].T).angles(span).max() < 1e-6


def test_listing_2_and_revelu_find_one_span():
    A = np.random.default_rng(1).standard_normal((3, 6))

    def answer(X):
        return (2.0 * np.tanh(np.atleast_2d(X) @ A.T)).sum(axis=1) >= 1.0

    printed = jwz20.span_adaptive(
        lambda x: int(answer(x)[0]), 6, 3, 3, 1e-6, 0.05, np.random.default_rng(7)
    )
    found = revelu.recover_span(lambda X: answer(X).astype(float), labels=True, dim_in=6, seed=2)
    assert found.status is revelu.Status.RECOVERED
    assert found.span.rank == 3
    assert found.span.angles(A).max() < 1e-8
    # Errors of the printed form: curvature times epsilon_0, magnified 2^N-fold and more.
    assert found.span.angles(printed).max() < 1e-3
