"""Compares the estimators on a user's own scores, structure and loss.

    found = aimle.diagnose(layer, theta, loss_fn)   # theta [*batch, *instance], a real batch
    print(found)                                    # a table, and a recommendation
    found.save("out/diagnosis")                     # diagnosis.json and report.html

Every applicable estimator computes its gradient `repeats` times. The gradients are compared with
the true one: cosine (per example, averaged), norm ratio, bias, variance, zeros, time and, for grid
paths, the share of costs that noise and step pushed below zero. With tau the temperature of the
layer, or the solver's default if only a solver is given, the true gradient is

    exact                     of p(z) ~ exp<theta/tau, z>, by listing all structures, or in closed
                              form for the losses of `aimle diagnose`
    score function, long run  of the same, if it has a closed form but too many structures
    perturbation model, long run   of E loss(MAP(theta + tau noise)), for any other solver or noise

A long run reports its standard error. The first two are used with Gumbel and Sum-of-Gamma noise.
The other estimators get the layer's noise and temperature; those without a noise of their own get
theta / tau, which is equivalent up to the length of the gradient.
"""

from aimle.diagnosis.measure import diagnose
from aimle.diagnosis.result import Diagnosis

__all__ = ["Diagnosis", "diagnose"]
