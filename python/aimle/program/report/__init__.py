"""Reports: one self-contained HTML page with figures and tables.

    from aimle.program.report import Page, figures

    page = Page("Discrete VAE on MNIST", "three estimators, ten seeds each")
    page.paragraph("The test loss is `bce + kl`.")  # `...` is code, everything else is escaped
    page.heading("Curves")
    with figures.style():
        figure, axes = figures.subplots(1, 2)
        axes[0].plot(steps, loss, **figures.line("aimle"))  # the same colour in all reports
    page.figure(figure, folder / "loss", "Mean of ten seeds; the bands are one standard error.")
    page.table(["method", "loss"], [["aimle", 79.86], ["imle", 85.0]], best={"loss": "min"})
    page.image(folder / "samples.png", "Samples of the prior")
    page.write(folder / "report.html")

``page.figure`` also saves `loss.png` and `loss.svg`. The page loads nothing from elsewhere. A
command ``python -m aimle.program.report.<study> FOLDER`` draws the results of the program `aimle`;
``run`` is the common part of their ``main``. Needs matplotlib.
"""

from aimle.program.report.command import run
from aimle.program.report.page import Page

__all__ = ["Page", "run"]
