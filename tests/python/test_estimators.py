"""The estimators: names, structures, and gradients against exact ones."""

import pytest
import torch

import aimle


def test_every_name_builds_a_module_with_the_shapes_of_the_layers():
    for name in aimle.estimators():
        layer = aimle.estimator(name, aimle.Argmax(), output="mean")
        theta = torch.randn(3, 5, requires_grad=True)
        z = layer(theta)
        assert z.shape == theta.shape, name
        (z * torch.randn(3, 5)).sum().backward()
        assert theta.grad.isfinite().all(), name


def test_settings_of_a_target_may_be_given_directly():
    layer = aimle.estimator("aimle", aimle.TopK(2), target_norm=3.0, nb_samples=4)
    assert layer.target == aimle.AdaptiveTarget(target_norm=3.0)
    assert layer.difference == "central"
    assert layer.nb_samples == 4
    layer = aimle.estimator("aimle_noise", aimle.TopK(2), target_norm=3.0)
    assert (layer.target.scale, layer.target.rule) == ("noise", "multiplicative")
    assert aimle.estimator("aimle_forward", aimle.TopK(2)).difference == "forward"
    layer = aimle.estimator("imle", aimle.TopK(2), lambda_=7.0)
    assert layer.target == aimle.FixedTarget(7.0)
    assert layer.difference == "forward"
    assert aimle.estimator("imle_central", aimle.TopK(2)).difference == "central"
    with pytest.raises(TypeError, match="inside target"):
        aimle.estimator("imle", aimle.TopK(2), lambda_=7.0, target=aimle.FixedTarget(1.0))
    with pytest.raises(TypeError, match="target_norm inside target"):
        aimle.estimator("aimle", aimle.TopK(2), target_norm=7.0, target=aimle.AdaptiveTarget())


def test_unknown_names_suggest_the_nearest():
    for name, near in (("aimel", "aimle"), ("IMLE", "imle"), ("imle-central", "imle_central")):
        with pytest.raises(ValueError, match=f"did you mean '{near}'"):
            aimle.estimator(name, aimle.Argmax())
    with pytest.raises(ValueError, match=r"expected one of aimle, .* but got 'qqq'$"):
        aimle.estimator("qqq", aimle.Argmax())
    with pytest.raises(TypeError, match="name of an estimator"):
        aimle.estimator(aimle.Argmax(), "aimle")
