"""Biased estimators against exact gradients: the direction of the limit over many samples is held
against a number that they reach here."""

import pytest
from exact_gradients import (
    STRUCTURES,
    cosine,
    perturbed_gradient,
    quadratic,
    replicate,
    scores,
)

import aimle

GUMBEL = {"noise": "gumbel", "theta_noise_temperature": 1.0}
LOGISTIC = {"noise": "logistic", "theta_noise_temperature": 1.0}


@pytest.mark.parametrize(
    ("name", "structure", "settings", "limit"),
    [
        ("aimle", "argmax", {"alpha_range": (0.5, 0.5)}, 0.95),
        ("aimle_forward", "argmax", {"alpha_range": (0.5, 0.5)}, 0.8),
        ("aimle_noise", "argmax", {}, 0.9),
        ("aimle_noise", "topk", {}, 0.9),
        ("imle", "argmax", {"lambda_": 0.5}, 0.7),
        ("imle_central", "argmax", {"lambda_": 0.5}, 0.95),
        ("imle_central", "topk", {"lambda_": 0.5}, 0.97),
        ("ste", "argmax", {}, 0.6),
        ("gumbel_softmax", "argmax", {"temperature": 0.5}, 0.95),
        ("gumbel_softmax", "argmax", {"temperature": 1.0, "hard": True}, 0.9),
        ("gumbel_rao", "argmax", {"temperature": 1.0}, 0.9),
        ("gumbel_rao", "argmax", {"temperature": 0.3}, 0.97),
        ("softsub", "topk", {"temperature": 0.5}, 0.95),
        ("sst", "argmax", {"temperature": 0.5}, 0.95),
        ("sst", "topk", {"temperature": 0.5}, 0.95),
        ("sst", "topk", {"temperature": 1.0, "hard": True}, 0.9),
        ("sst", "tree", {"temperature": 0.5}, 0.95),
        ("sst", "tree", {"temperature": 1.0, "hard": True}, 0.9),
        ("l2x", "topk", {"temperature": 0.5}, 0.9),
        ("exact", "topk", {}, 0.9),
        ("aimle", "chain", {"alpha_range": (0.5, 0.5)}, 0.9),
        ("aimle_noise", "chain", {}, 0.9),
        ("imle_central", "chain", {"lambda_": 0.5}, 0.9),
        ("ste", "chain", {}, 0.5),
        ("sst", "chain", {"temperature": 0.5}, 0.9),
        ("exact", "chain", {}, 0.9),
        ("aimle_covariance", "chain", {"share": 1.0}, 0.9),
        ("dpo", "chain", {}, 0.9),
        ("aimle", "bernoulli", {"alpha_range": (0.5, 0.5)}, 0.9),
        ("aimle_noise", "bernoulli", {}, 0.9),
        ("imle_central", "bernoulli", {"lambda_": 0.5}, 0.9),
        ("ste", "bernoulli", {}, 0.9),
        ("sst", "bernoulli", {"temperature": 0.5}, 0.9),
        ("sst", "bernoulli", {"temperature": 1.0, "hard": True}, 0.9),
        ("exact", "bernoulli", {}, 0.9),
        ("dpo", "bernoulli", {"noise": "logistic"}, 0.9),
        ("aimle", "dag", {"alpha_range": (0.5, 0.5), **GUMBEL}, 0.9),
        ("aimle_noise", "dag", GUMBEL, 0.9),
        ("imle_central", "dag", {"lambda_": 0.5, **GUMBEL}, 0.9),
        ("ste", "dag", GUMBEL, 0.5),
        ("sst", "dag", {"temperature": 0.5}, 0.9),
        ("exact", "dag", {}, 0.9),
        ("aimle_covariance", "dag", {"share": 1.0, **GUMBEL}, 0.9),
        ("dpo", "dag", {"noise": "gumbel"}, 0.9),
        ("aimle", "knapsack", {"alpha_range": (0.5, 0.5), **LOGISTIC}, 0.9),
        ("aimle_forward", "knapsack", {"alpha_range": (0.5, 0.5), **LOGISTIC}, 0.8),
        ("aimle_noise", "knapsack", LOGISTIC, 0.9),
        ("imle_central", "knapsack", {"lambda_": 0.5, **LOGISTIC}, 0.9),
        ("ste", "knapsack", LOGISTIC, 0.5),
        ("sst", "knapsack", {"temperature": 0.5}, 0.8),
        ("exact", "knapsack", {}, 0.9),
        ("aimle_covariance", "knapsack", {"share": 1.0, **LOGISTIC}, 0.9),
        ("dpo", "knapsack", {"noise": "logistic"}, 0.9),
    ],
)
def test_biased_estimators_point_the_right_way(name, structure, settings, limit):
    solver, _, n = STRUCTURES[structure]
    cosines = []
    for seed in range(3):
        theta, loss = scores(n, seed), quadratic(n, seed)
        exact = perturbed_gradient(structure, theta, "gumbel", 1.0, loss)
        layer = aimle.estimator(name, solver, nb_samples=100, **settings)
        cosines.append(cosine(replicate(layer, theta, loss, replicas=100), exact))
    assert sum(cosines) / 3 > limit, cosines


@pytest.mark.parametrize(
    ("name", "settings", "limit"), [("dbb", {"lambda_": 1.0}, 0.2), ("identity", {}, 0.4)]
)
def test_noise_free_estimators_point_the_right_way_on_average(name, settings, limit):
    # Without noise there is nothing to average for one theta: the mean is over problems.
    cosines = []
    for seed in range(20):
        theta, loss = scores(5, seed), quadratic(5, seed)
        exact = perturbed_gradient("topk", theta, "gumbel", 1.0, loss)
        layer = aimle.estimator(name, aimle.TopK(2), **settings)
        cosines.append(cosine(replicate(layer, theta, loss, replicas=1), exact))
    assert sum(cosines) / len(cosines) > limit, cosines
