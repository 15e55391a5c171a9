"""A layer inside a LightningModule: which 3 of 12 entries are wanted, learnt from features.

pip install 'aimle[lightning]'
python examples/lightning_module.py
"""

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import aimle


class Chooser(lightning.LightningModule):
    """Scores from a linear map, the 3 best of them from the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(8, 12)
        self.choose = aimle.AIMLE(aimle.TopK(3), nb_samples=4)

    def forward(self, features: Tensor) -> Tensor:
        return self.choose(self.scores(features))  # [batch, samples, 12], one sample in eval mode

    def training_step(self, batch: list[Tensor]) -> Tensor:
        features, wanted = batch
        loss = (self(features) - wanted.unsqueeze(1)).square().sum(-1).mean()
        self.log("loss", loss)
        aimle.log_stats(self, lambda name, value, _: self.log(name, value), self.global_step)
        return loss

    def validation_step(self, batch: list[Tensor]) -> None:
        features, wanted = batch
        found = (self(features) * wanted.unsqueeze(1)).sum(-1).mean() / 3
        self.log("found", found, prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.02)


lightning.seed_everything(0)
features = torch.randn(1280, 8)
data = TensorDataset(features, aimle.solve(aimle.TopK(3), features @ torch.randn(8, 12)))
train, test = torch.utils.data.random_split(data, [1024, 256])
trainer = lightning.Trainer(
    max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False
)
trainer.fit(Chooser(), DataLoader(train, 64, shuffle=True), DataLoader(test, 256))
found = trainer.callback_metrics["found"].item()
print(f"{found:.0%} of the wanted entries found; 25% by chance")
assert found > 0.8
