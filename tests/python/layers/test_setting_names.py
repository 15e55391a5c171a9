"""Names of settings: unknown ones are refused with the name that was meant; one name for one thing
in all layers."""

import copy
import dataclasses
import inspect
import pickle

import pytest
import torch

import aimle

TOPK = aimle.TopK(3)


def build(cls: type, **settings):
    return cls(
        aimle.Argmax() if cls in (aimle.ReinMax, aimle.GumbelRao, aimle.GumbelSoftmax) else TOPK,
        **settings,
    )


LAYERS = [
    cls
    for cls in vars(aimle).values()
    if inspect.isclass(cls) and issubclass(cls, torch.nn.Module) and cls is not aimle.PerturbedMap
]
WITH_NOISE = [
    *(aimle.AIMLE, aimle.IMLE, aimle.STE, aimle.Identity, aimle.Thresholds),
    aimle.CovarianceAIMLE,
]


def name_of(cls: type) -> str:
    return cls.__name__


# ---- Keywords ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [cls for cls in LAYERS if cls is not aimle.DBB], ids=name_of)
@pytest.mark.parametrize("given", ["n_samples", "num_samples", "nb_sample", "NB_SAMPLES"])
def test_every_layer_names_the_setting_that_was_meant(cls: type, given: str):
    words = rf"\[aimle.{cls.__name__}\] got an unexpected keyword argument '{given}'"
    with pytest.raises(TypeError, match=rf"{words}; did you mean 'nb_samples'\?"):
        build(cls, **{given: 3})


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: aimle.AIMLE(TOPK, sigma=1.0), "temperature"),
        (lambda: aimle.AIMLE(TOPK, two_sides=True), "symmetric_perturbation"),
        (lambda: aimle.AIMLE(TOPK, distribution="gumbel"), "noise"),
        (lambda: aimle.AIMLE(TOPK, target_distribution=None), "target"),
        (lambda: aimle.AIMLE(TOPK, initial_beta=1.0), "initial_alpha"),
        (lambda: aimle.AIMLE(TOPK, beta_update_step=1.0), "step"),
        (lambda: aimle.IMLE(TOPK, lambd=1.0), "lambda_"),
        (lambda: aimle.IMLE(TOPK, lam=1.0), "lambda_"),
        (lambda: aimle.STE(TOPK, noise_temperature=1.0), "temperature"),
        (lambda: aimle.STE(TOPK, maximize=False), "sense"),
        (lambda: aimle.DPO(TOPK, num_samples=4), "nb_samples"),
        (lambda: aimle.DPO(TOPK, theta_noise_temperature=1.0), "temperature"),
        (lambda: aimle.estimator("imle", TOPK, lambd=1.0), "lambda_"),
        (lambda: aimle.estimator("aimle_forward", TOPK, sigma=1.0), "temperature"),
        (lambda: aimle.GridPath(neighbours=4), "neighbourhood"),
        (lambda: aimle.GridPath(neighborhood=4), "neighbourhood"),
        (lambda: aimle.GridPath(start=(0, 0)), "source"),
        (lambda: aimle.SpanningTree(num_nodes=4), "n"),
        (lambda: aimle.SumOfGamma(kappa=5), "k"),
        (lambda: aimle.AdaptiveTarget(initial_beta=1.0), "initial_alpha"),
        (lambda: aimle.FixedTarget(beta=1.0), "lambda_"),
        (
            lambda: aimle.perturbed_fenchel_young_loss(
                torch.zeros(1, 4), torch.zeros(1, 4), TOPK, num_samples=3
            ),
            "nb_samples",
        ),
    ],
)
def test_names_of_other_libraries_are_understood(call, meant: str):
    with pytest.raises(TypeError, match=rf"unexpected keyword argument .*; did you mean '{meant}'"):
        call()


def test_an_unknown_name_without_a_neighbour_is_told_what_there_is():
    known = "solver, lambda_, sense, output, instance_dims, fractional, repeat_arguments"
    with pytest.raises(TypeError, match=f"'colour'; it takes {known}$"):
        aimle.DBB(TOPK, colour="red")
    with pytest.raises(TypeError, match=r"\[aimle.Argmax\] .*'k'; it takes none"):
        aimle.Argmax(k=1)
    with pytest.raises(TypeError, match=r"its noise has scale 1, and 'temperature' is that of"):
        aimle.GumbelSoftmax(aimle.Argmax(), theta_noise_temperature=0.5)


def test_solvers_can_be_made_in_compiled_code():
    @torch.compile(backend="eager", fullgraph=True)
    def solve(theta: torch.Tensor) -> torch.Tensor:
        return aimle.solve(aimle.TopK(k=2), theta)

    theta = torch.randn(3, 5)
    assert torch.equal(solve(theta), aimle.TopK(2)(theta))


# ---- The settings of a target --------------------------------------------------------------------


@pytest.mark.parametrize("cls", [aimle.AIMLE, aimle.CovarianceAIMLE])
def test_the_settings_of_a_target_may_be_given_to_the_layer(cls: type):
    fields = {each.name for each in dataclasses.fields(aimle.AdaptiveTarget)}
    public = {name for name in fields if not name.startswith("_")}
    assert public <= set(inspect.signature(cls).parameters)
    settings = {"initial_alpha": 0.5, "step": 0.25, "target_norm": 3.0, "decay": 0.75}
    settings |= {"scope": "sample", "scale": "noise", "rule": "multiplicative", "factor": 1.5}
    settings |= {"alpha_range": (0.25, 4.0), "momentum": 0.5, "initial_gbar": 2.0}
    layer = cls(TOPK, **settings)
    assert layer.target == aimle.AdaptiveTarget(**settings)
    assert layer.alpha == 0.5
    assert cls(TOPK).target == aimle.AdaptiveTarget()
    for name, value in settings.items():
        with pytest.raises(TypeError, match=rf"got both target and {name}: give {name} to"):
            cls(TOPK, target=aimle.AdaptiveTarget(), **{name: value})
    with pytest.raises(ValueError, match=r"target_norm finite and >= 0, or None but got -1"):
        cls(TOPK, target_norm=-1)


def test_the_settings_of_a_target_are_not_those_of_a_fixed_step():
    with pytest.raises(TypeError, match="'target_norm'; did you mean 'target'"):
        aimle.IMLE(TOPK, target_norm=3.0)


# ---- One name for the noise's temperature --------------------------------------------------------


@pytest.mark.parametrize("cls", WITH_NOISE, ids=name_of)
def test_the_temperature_has_two_names_and_one_value(cls: type):
    theta, key = torch.linspace(-1, 1, 8).reshape(1, 8), torch.tensor([1, 2])
    settings = {"noise": "normal", "nb_samples": 5}
    layers = [
        build(cls, temperature=0.5, **settings),
        build(cls, theta_noise_temperature=0.5, **settings),
        build(cls, **settings),
    ]
    layers[2].temperature = 0.5
    for layer in layers:
        assert layer.temperature == layer.theta_noise_temperature == 0.5
        assert torch.equal(layer(theta, key=key), layers[0](theta, key=key))
        assert "temperature=0.5" in repr(layer)
    layers[0].theta_noise_temperature = 2.0
    assert layers[0].temperature == 2.0
    assert build(cls).temperature == 1.0
    with pytest.raises(TypeError, match="two names of one setting, but got both"):
        build(cls, temperature=0.5, theta_noise_temperature=0.5)
    for name in ("temperature", "theta_noise_temperature"):
        with pytest.raises(ValueError, match=rf" {name} .*-1"):
            build(cls, **{name: -1.0})


@pytest.mark.parametrize("name", aimle.estimators())
def test_estimators_by_name_take_the_temperature(name: str):
    solver = aimle.Argmax() if name in ("gumbel_softmax", "gumbel_rao", "reinmax") else TOPK
    if name in ("sfe", "exact", "reinmax", "dbb"):  # no noise, or none that has a scale
        with pytest.raises(TypeError, match="unexpected keyword argument 'temperature'; it takes"):
            aimle.estimator(name, solver, temperature=0.5)
    else:
        assert aimle.estimator(name, solver, temperature=0.5).temperature == 0.5


# ---- Attributes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", LAYERS, ids=name_of)
def test_unknown_attributes_are_refused(cls: type):
    layer = build(cls)
    with pytest.raises(AttributeError, match=rf"\[aimle.{cls.__name__}\] has no setting 'num_samp"):
        layer.num_samples = 20
    assert not hasattr(layer, "num_samples")
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        with pytest.raises(AttributeError, match=r"did you mean 'nb_samples'\?"):
            other.n_samples = 20


def test_attributes_are_refused_with_what_was_meant():
    layer = aimle.AIMLE(TOPK)
    for name, meant in (
        ("sigma", "temperature"),
        ("lambda_", "target"),
        ("target_norm", "target"),
        ("symmetric_perturbation", "difference"),
        ("outputs", "output"),
    ):
        with pytest.raises(AttributeError, match=rf"'{name}'; did you mean '{meant}'"):
            setattr(layer, name, 1)
    with pytest.raises(AttributeError, match=r"'colour'; it takes difference, .*underscore"):
        layer.colour = "red"


def test_everything_else_can_still_be_assigned():
    layer = aimle.AIMLE(TOPK)
    layer.nb_samples, layer.output, layer.sense = 4, "flat", "min"
    layer.noise_in_eval, layer.solver = True, aimle.TopK(2)
    layer.target = aimle.AdaptiveTarget(step=0.5)
    layer.target_noise_temperature = 0.5
    layer.alpha = torch.tensor(0.5, dtype=torch.float64)
    layer._mine = 3
    layer.net = torch.nn.Linear(2, 2)
    layer.weight = torch.nn.Parameter(torch.zeros(2))
    layer.register_buffer("seen", torch.zeros(2))
    layer.seen = torch.ones(2)
    calls = []
    handle = layer.register_forward_hook(lambda *_: calls.append(1))
    assert layer(torch.randn(3, 5)).shape == (12, 5)
    handle.remove()
    layer.forward = lambda theta: theta
    assert layer.eval()(torch.zeros(1)) == 0
    assert calls == [1]
    assert {"alpha", "seen", "weight", "net.weight"} <= set(layer.state_dict())


def test_subclasses_have_attributes_of_their_own():
    class Mine(aimle.AIMLE):
        label = "class"

        def __init__(self, solver, extra: int) -> None:
            super().__init__(solver, nb_samples=2)
            self.extra = extra

    class Without(Mine):
        pass

    for cls in (Mine, Without):
        layer = cls(TOPK, extra=1)
        layer.extra, layer.label = 2, "own"
        with pytest.raises(AttributeError, match=r"did you mean 'extra'"):
            layer.extras = 3
        with pytest.raises(TypeError, match=r"'extras'; did you mean 'extra'"):
            cls(TOPK, extras=1)
