"""A layer inside a model that Hugging Face's Trainer trains: which 3 of 12 entries are wanted.

pip install 'aimle[transformers]'
python examples/hugging_face_trainer.py
"""

import tempfile

import torch
from torch import Tensor, nn
from transformers import EvalPrediction, Trainer, TrainingArguments, set_seed

import aimle


class Chooser(nn.Module):
    """Scores from a linear map, the 3 best of them from the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(8, 12)
        self.choose = aimle.AIMLE(aimle.TopK(3), nb_samples=4)

    def forward(self, features: Tensor, labels: Tensor) -> dict[str, Tensor]:
        z = self.choose(self.scores(features))  # [batch, samples, 12], one sample in eval mode
        loss = (z - labels.unsqueeze(1)).square().sum(-1).mean()
        return {"loss": loss, "logits": z.mean(1)}


def found(results: EvalPrediction) -> dict[str, float]:
    return {"found": float((results.predictions * results.label_ids).sum(-1).mean() / 3)}


set_seed(0)
features = torch.randn(1280, 8)
wanted = aimle.solve(aimle.TopK(3), features @ torch.randn(8, 12))
data = [{"features": x, "labels": y} for x, y in zip(features, wanted, strict=True)]
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        output_dir=folder,
        num_train_epochs=20,
        per_device_train_batch_size=64,
        learning_rate=0.02,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = Trainer(Chooser(), settings, None, data[:1024], data[1024:], compute_metrics=found)
    trainer.train()
    share = trainer.evaluate()["eval_found"]
print(f"{share:.0%} of the wanted entries found; 25% by chance")
assert share > 0.8
