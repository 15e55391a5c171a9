"""Trainings of test_distributed.py, for two processes and for one."""

import contextlib
import copy
import functools
import io
import pickle
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from two_processes import Cases

import aimle
from aimle.state import reduction

STEPS, BATCH, N = 60, 8, 10
# alpha turns more than once within the steps.
TARGETS = {
    "default": aimle.AdaptiveTarget(initial_alpha=0.3),
    "paper": aimle.AdaptiveTarget.paper(0.05, step=0.01),
}


def top_3(scores: Tensor) -> Tensor:
    return torch.zeros_like(scores).scatter_(1, scores.topk(3).indices, 1.0)


SOLVERS = {"native": lambda: aimle.TopK(3), "callable": lambda: top_3}


def make_layer(solver: str = "native", target: str = "default", **settings) -> aimle.AIMLE:
    return aimle.AIMLE(SOLVERS[solver](), noise=None, target=TARGETS[target], **settings)


class Model(nn.Module):
    """theta = scale x through one layer or several; scale stays 1."""

    def __init__(self, *layers: aimle.AIMLE) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.layers = nn.ModuleList(layers or [make_layer()])

    def forward(self, x: Tensor, calls: int = 1) -> Tensor:
        theta = self.scale * x
        return sum(layer(theta) for layer in self.layers for _ in range(calls)).squeeze(1)


def batches(steps: int = STEPS) -> Iterator[tuple[Tensor, Tensor]]:
    """x and the gradient of z, both [BATCH, N]."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(steps):
        yield tuple(torch.randn(2, BATCH, N, generator=generator))


Share = Callable[[Tensor, int], Tensor]


def half(rows: Tensor, step: int) -> Tensor:
    """This process's part of a batch, or all of it where there is only one."""
    return rows.chunk(2)[dist.get_rank()] if dist.is_initialized() else rows


def uneven(rows: Tensor, step: int) -> Tensor:
    """Seven rows and one."""
    if not dist.is_initialized():
        return rows
    return rows[:7] if dist.get_rank() == 0 else rows[7:]


def state_of(layer: aimle.AIMLE) -> tuple[float, ...]:
    values = layer.state_dict().values()
    return tuple(number for value in values for number in value.flatten().tolist())


def layers_in(model: nn.Module) -> list[aimle.AIMLE]:
    return [each for each in model.modules() if isinstance(each, aimle.AIMLE)]


def train(
    model: nn.Module,
    *,
    steps: int = STEPS,
    share: Share = half,
    forward: Callable[[Tensor], Tensor] | None = None,
    between: Callable[[int], None] = lambda step: None,
    within: Callable[[int], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> list:
    """The state that every step begins with, and the last one."""
    call = model if forward is None else forward
    trace = []
    for step, (x, d) in enumerate(batches(steps)):
        with within(step):
            z = call(share(x, step))
            trace.append([state_of(layer) for layer in layers_in(model)])
            (z * share(d, step)).sum().backward()
        between(step)
    aimle.reduce_state(model)
    trace.append([state_of(layer) for layer in layers_in(model)])
    return trace


# ---- Cases ---------------------------------------------------------------------------------------


def under_ddp(solver: str, target: str, broadcast: bool) -> list:
    model = Model(make_layer(solver, target))
    return train(DistributedDataParallel(model, broadcast_buffers=broadcast))


def under_fsdp(solver: str) -> list:
    model = Model(make_layer(solver))
    fully_shard(model)
    return train(model)


def under_compiled_ddp() -> list:
    """The trace, and the number of graphs."""
    counters["stats"].clear()
    ddp = DistributedDataParallel(Model())
    trace = train(ddp, forward=torch.compile(ddp, backend="aot_eager"))
    return [trace, counters["stats"]["unique_graphs"]]


def accumulated() -> list:
    ddp = DistributedDataParallel(Model())

    def within(step: int) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext() if step % 3 == 2 else ddp.no_sync()

    return train(ddp, within=within)


def called_twice() -> list:
    ddp = DistributedDataParallel(Model())
    return train(ddp, forward=functools.partial(ddp, calls=2))


def uneven_batches() -> list:
    return train(DistributedDataParallel(Model()), share=uneven)


class Skipping(Model):
    """Leaves the layer out where it is told to."""

    def forward(self, x: Tensor, skip: bool = False) -> Tensor:
        return 0.0 * self.scale * x if skip else super().forward(x)


def without_gradient_now_and_then(skips: bool) -> list:
    """One process has no gradient for the layer, or does not even call it, in every third step,
    the first among them."""
    model = Skipping()
    model.unused = nn.Linear(2, 2)
    ddp = DistributedDataParallel(model, find_unused_parameters=True)
    trace = []
    for step, (x, d) in enumerate(batches()):
        absent = step % 3 == 0 and dist.get_rank() == 1
        z = ddp(half(x, step), skip=absent and skips)
        trace.append(state_of(model.layers[0]))
        if absent and not skips:
            z = z.detach() + 0.0 * model.scale
        (z * half(d, step)).sum().backward()
    aimle.reduce_state(ddp)
    return [*trace, state_of(model.layers[0])]


def evaluated_by_one() -> list:
    """Rank 0 evaluates after every step."""
    ddp = DistributedDataParallel(Model(), broadcast_buffers=False)

    def evaluate(step: int) -> None:
        if dist.get_rank() != 0:
            return
        x = torch.ones(3, N)
        ddp.eval()
        ddp.module(x).sum().backward()
        with torch.no_grad():
            ddp(x)
            ddp.train()
            ddp(x)
        ddp.state_dict()

    return train(ddp, between=evaluate)


def recomputed(reentrant: bool, fsdp: bool) -> list | str:
    """Activation checkpointing calls the layer again in backward; or what it says to that."""

    class Checkpointed(Model):
        def forward(self, x: Tensor) -> Tensor:
            theta = self.scale * x
            return checkpoint(self.layers[0], theta, use_reentrant=reentrant).squeeze(1)

    model: nn.Module = Checkpointed()
    if fsdp:
        fully_shard(model)
    else:
        model = DistributedDataParallel(model)
    with counted_messages() as messages:
        try:
            return [train(model), len(messages)]
        except RuntimeError as error:
            return str(error)


def with_own_state() -> list:
    model = Model(make_layer(process_group=None))
    return train(DistributedDataParallel(model, broadcast_buffers=False))


def with_group_by_hand(ranks: list[int]) -> list:
    """Without DDP; of the groups that are made every process takes its own."""
    if len(ranks) == 2:
        group = dist.group.WORLD
    else:
        group = [dist.new_group([each]) for each in range(2)][dist.get_rank()]
    return train(Model(make_layer(process_group=group)))


@contextlib.contextmanager
def counted_messages() -> Iterator[list[int]]:
    """The bytes of every message of the layers."""
    sent: list[int] = []
    plain = dist.all_reduce

    def counted(message: Tensor, **settings) -> None:
        sent.append(message.numel() * message.element_size())
        plain(message, **settings)

    reduction.dist.all_reduce = counted
    try:
        yield sent
    finally:
        reduction.dist.all_reduce = plain


def three_layers(by_hand: bool) -> list:
    """Their traces, and the sizes of their messages."""
    group = dist.group.WORLD if by_hand else "auto"
    targets = ("default", "paper", "default")
    model: nn.Module = Model(*(make_layer(target=each, process_group=group) for each in targets))
    if not by_hand:
        model = DistributedDataParallel(model)
    with counted_messages() as sent:
        return [train(model), sent]


def copies_and_pickles() -> list:
    """Of a layer that waits for a reduction, and of the model around it."""
    ddp = DistributedDataParallel(Model())
    train(ddp, steps=3)
    (ddp(torch.ones(2, N)) * torch.ones(N)).sum().backward()
    given = make_layer(process_group=dist.group.WORLD)
    results = []
    for layer in (ddp.module.layers[0], given):
        copied = copy.deepcopy(layer)
        read = pickle.loads(pickle.dumps(layer))
        results += [state_of(each) == state_of(layer) for each in (copied, read)]
        results.append(copied.process_group is layer.process_group)
        results.append(read.process_group == "auto")
    file = io.BytesIO()
    torch.save(ddp.module, file)
    file.seek(0)
    again = torch.load(file, weights_only=False)
    moves = aimle.AIMLE(aimle.TopK(3), noise=None)
    moves.load_state_dict(again.layers[0].state_dict())
    for model in (again.layers[0], moves):
        x = torch.linspace(-1, 1, N).repeat(2, 1).requires_grad_()
        (model(x).squeeze(1) * torch.arange(N)).sum().backward()
    results.append(state_of(again.layers[0]) == state_of(moves))
    wrapped = pickle.loads(pickle.dumps(ddp))
    wrapped.module.load_state_dict(Model().state_dict())
    results.append(train(wrapped, steps=3) == train(DistributedDataParallel(Model()), steps=3))
    return results


def diagnosed_by_one() -> list:
    """Rank 0 measures a layer that shares its state with rank 1."""
    layer = make_layer(process_group=dist.group.WORLD)
    model = Model(layer)
    train(model, steps=3)
    if dist.get_rank() == 0:
        theta = torch.linspace(-1, 1, N).repeat(2, 1)
        few = {"nb_samples": 1, "repeats": 2, "warmup": 3, "truth_samples": 400}
        aimle.diagnose(layer, theta, lambda z: z[..., 0], estimators=["ste"], **few)
    return train(model, steps=3)


def called_outside_of_ddp() -> list:
    """ddp.module on its own is this process's alone."""
    ddp = DistributedDataParallel(Model(), broadcast_buffers=False)
    train(ddp, steps=3)
    before = state_of(ddp.module.layers[0])
    trace = train(ddp.module, steps=3)
    return [before, trace[0][0], trace[1][0] != before]


def resumed() -> list:
    """Rank 0 saves after 20 steps; both go on from there in another model, and in the same one
    after a step more, whose counts are lost with the state they were for."""
    ddp = DistributedDataParallel(Model())
    train(ddp, steps=20)
    saved = [copy.deepcopy(ddp.module.state_dict()) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(saved)
    (x, d) = next(batches(1))
    (ddp(half(x, 0)) * half(d, 0)).sum().backward()
    again = DistributedDataParallel(Model())
    traces = []
    for model in (again, ddp):
        model.module.load_state_dict(saved[0])
        traces.append(train(model, steps=20))
    return traces


def joined(broadcast: bool) -> list:
    """Rank 1 has fewer batches; the last states, and that of a process by itself."""
    ddp = DistributedDataParallel(Model(), broadcast_buffers=broadcast)
    own = Model(make_layer(process_group=None))
    steps = 12 if dist.get_rank() == 0 else 7
    with ddp.join():
        for step, (x, d) in enumerate(batches(steps)):
            for model in (ddp, own):
                (model(half(x, step)) * half(d, step)).sum().backward()
    return [state_of(model.layers[0]) for model in (ddp.module, own)]


def refused_groups() -> list:
    outside = [dist.new_group([each]) for each in range(2)][1 - dist.get_rank()]
    messages = []
    for given in (outside, 3, "world"):
        try:
            make_layer(process_group=given)
        except TypeError as error:
            messages.append(str(error))
    return messages


def cases() -> Cases:
    both = ("native", "callable")
    return {
        **{
            f"ddp {solver} {target} {broadcast}": functools.partial(
                under_ddp, solver, target, broadcast
            )
            for solver in both
            for target in TARGETS
            for broadcast in (True, False)
        },
        **{f"fsdp {solver}": functools.partial(under_fsdp, solver) for solver in both},
        **{
            f"recomputed {reentrant} {fsdp}": functools.partial(recomputed, reentrant, fsdp)
            for reentrant in (True, False)
            for fsdp in (True, False)
        },
        "compiled": under_compiled_ddp,
        "accumulated": accumulated,
        "called twice": called_twice,
        "uneven": uneven_batches,
        "no gradient": functools.partial(without_gradient_now_and_then, False),
        "unused": functools.partial(without_gradient_now_and_then, True),
        "evaluated by one": evaluated_by_one,
        "own state": with_own_state,
        "group of both": functools.partial(with_group_by_hand, [0, 1]),
        "group of one": functools.partial(with_group_by_hand, [0]),
        "three layers under DDP": functools.partial(three_layers, False),
        "three layers by hand": functools.partial(three_layers, True),
        "copies": copies_and_pickles,
        "diagnosed by one": diagnosed_by_one,
        "outside of DDP": called_outside_of_ddp,
        "resumed": resumed,
        "joined True": functools.partial(joined, True),
        "joined False": functools.partial(joined, False),
        "refused": refused_groups,
    }
