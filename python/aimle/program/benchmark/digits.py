"""Selecting 8 of 64 pixels to classify a digit of scikit-learn's digits.

One network scores the pixels of an image, the 8 best are kept, and a second network classifies the
result. Training minimises the cross-entropy of one noisy selection per image; the accuracy on 497
test images uses the noise-free selection.
"""

import functools

import torch
from torch import Tensor, nn

import aimle
from aimle.estimate.texts import python_settings
from aimle.program.benchmark.models import (
    DIAGNOSED_EXAMPLES,
    STEPS_BEFORE_DIAGNOSIS,
    Probe,
    solves_of,
)

PIXELS, CHOSEN, CLASSES = 64, 8, 10
TRAINING_IMAGES = 1300
STEPS, QUICK_STEPS = 400, 2
BATCH = 64
LEARNING_RATE = 1e-3
_SPLIT_SEED = 0


class Selector(nn.Module):
    """Scores pixels, keeps some of them through the layer, and classifies the rest."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(PIXELS, 64), nn.ReLU(), nn.Linear(64, PIXELS))
        self.layer = layer
        self.classify = nn.Sequential(nn.Linear(PIXELS, 64), nn.ReLU(), nn.Linear(64, CLASSES))

    def forward(self, images: Tensor) -> Tensor:
        scores = self.score(images)
        if self.training:
            mask = self.layer(scores).reshape(scores.shape)  # one sample
        else:
            mask = aimle.TopK(CHOSEN)(scores)
        return self.classify(mask * images)


@functools.cache
def data() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    generator = torch.Generator().manual_seed(_SPLIT_SEED)
    order = torch.randperm(len(labels), generator=generator)
    return torch.tensor(images / 16, dtype=torch.float32)[order], torch.tensor(labels)[order]


def _train(model: Selector, steps: int) -> None:
    images, labels = data()
    optimiser = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        batch = torch.randint(TRAINING_IMAGES, (BATCH,))
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def probe(seed: int) -> Probe:
    """The model after a short training with the default."""
    images, labels = data()
    torch.manual_seed(seed)
    model = Selector(aimle.AIMLE(aimle.TopK(CHOSEN)))
    _train(model, STEPS_BEFORE_DIAGNOSIS)
    few, right = images[:DIAGNOSED_EXAMPLES], labels[:DIAGNOSED_EXAMPLES]

    def losses(z: Tensor) -> Tensor:
        logits = model.classify(z * few.unsqueeze(1)).transpose(1, 2)
        each = right.unsqueeze(1).expand(z.shape[:2])
        return nn.functional.cross_entropy(logits, each, reduction="none")

    return Probe(model.layer, model.score(few).detach(), losses)


def train(
    estimator: str, settings: dict[str, str], seed: int, quick: bool
) -> tuple[float, int, int]:
    """Accuracy on the test images, steps, and solver calls in training."""
    images, labels = data()
    torch.manual_seed(seed)
    layer = aimle.estimator(estimator, aimle.TopK(CHOSEN), **python_settings(settings))
    model = Selector(layer)
    steps = QUICK_STEPS if quick else STEPS
    _train(model, steps)
    model.eval()
    with torch.no_grad():
        guesses = model(images[TRAINING_IMAGES:]).argmax(-1)
    accuracy = (guesses == labels[TRAINING_IMAGES:]).double().mean().item()
    return accuracy, steps, steps * BATCH * solves_of(layer)
