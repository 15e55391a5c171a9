"""Logs a layer's statistics during training, with one line in the loop.

python examples/log_stats.py               # prints a line per number
python examples/log_stats.py stats.jsonl   # appends lines of JSON to a file
python examples/log_stats.py runs          # writes for TensorBoard: tensorboard --logdir runs
python examples/log_stats.py wandb         # sends them to Weights & Biases (pip install wandb)
"""

import sys

import torch

import aimle

torch.manual_seed(0)
wanted = torch.zeros(16, 12).index_fill_(1, torch.tensor([2, 3, 5]), 1.0)
model = torch.nn.Linear(8, 12)
layer = aimle.AIMLE(aimle.TopK(3), nb_samples=4)
optimiser = torch.optim.Adam(model.parameters(), lr=0.05)

place = sys.argv[1] if len(sys.argv) > 1 else ""
if place == "wandb":
    import wandb

    run = wandb.init(project="aimle")

    def log(loss: torch.Tensor, step: int) -> None:
        run.log({"loss": loss.item(), **aimle.log_stats(layer)}, step=step)

elif place.endswith(".jsonl"):

    def log(loss: torch.Tensor, step: int) -> None:
        aimle.log_stats(layer, place, step)

elif place:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(place)

    def log(loss: torch.Tensor, step: int) -> None:
        writer.add_scalar("loss", loss.item(), step)
        aimle.log_stats(layer, writer, step)

else:

    def log(loss: torch.Tensor, step: int) -> None:
        for name, value in {"loss": loss.item(), **aimle.log_stats(layer)}.items():
            print(f"{step:4} {name:24} {value:.4g}")


for step in range(301):
    z = layer(model(torch.randn(16, 8)))  # [16, 4, 12]
    loss = (z - wanted.unsqueeze(1)).square().sum(-1).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    if step % 100 == 0:
        log(loss, step)
