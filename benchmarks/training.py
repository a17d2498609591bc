"""``python -m benchmarks.training``: whole training steps of two networks in PyTorch, as it is and accelerated.

One process trains two copies of each network on the same batches in turn: one as it is, one under
``aclnn_bw.torch.accelerate()``. The losses of both must agree, or nothing is told.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

import aclnn_bw
import aclnn_bw.torch

from .command import positive
from .machine import environment, summary
from .timing import MIN_ROUNDS, Spread, ratio

# What `accelerate` computes, and no more: the forward of the replication pad stays PyTorch's.
OPERATORS = (
    "avg_pool2d", "avg_pool2d_backward", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
    "replication_pad2d_backward", "im2col", "col2im", "_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward",
)  # fmt: skip
# Losses are compared for so many steps: training makes much of a difference in the last bit in time.
COMPARED = 10
# So often both are profiled in turn.
PROFILED = 7
_LEGEND = """\
step      one training step of PyTorch as it is: forward, loss, backward, SGD; the median over the rounds
share     of that step in the operators that `accelerate` computes, by torch.profiler
operators what they take of a step of PyTorch's, and `accelerated` what they take then
ratio     PyTorch's time / the accelerated time, each quotient of two steps in turn (first to third quartile)
loss      the largest relative difference between the losses of both in the first steps"""


# ---- networks --------------------------------------------------------------------------------------------------------


def convolution(inputs: int, outputs: int, padding_mode: str = "zeros") -> Any:
    """A layer as most networks have it."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode=padding_mode, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def vgg(width: int = 32, classes: int = 10) -> Any:
    """VGG's plan, small: two convolutions and a max pool, three times; an average pool; a linear layer."""
    layers: list[Any] = []
    channels = 3
    for level in range(3):
        wide = width << level
        layers += [convolution(channels, wide), convolution(wide, wide), nn.MaxPool2d(2)]
        channels = wide
    return nn.Sequential(*layers, nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class UNet(nn.Module):
    """Two levels down by max pools and up again, every convolution with replication padding."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = self.level(3, width)
        self.second = self.level(width, 2 * width)
        self.bottom = self.level(2 * width, 4 * width)
        self.up_second = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.up_first = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.third = self.level(4 * width, 2 * width)
        self.fourth = self.level(2 * width, width)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(width, 1, 1)

    @staticmethod
    def level(inputs: int, outputs: int) -> Any:
        return nn.Sequential(convolution(inputs, outputs, "replicate"), convolution(outputs, outputs, "replicate"))

    def forward(self, x: torch.Tensor) -> Any:
        first = self.first(x)
        second = self.second(self.pool(first))
        up = self.up_second(self.bottom(self.pool(second)))
        up = self.up_first(self.third(torch.cat([up, second], 1)))
        return self.out(self.fourth(torch.cat([up, first], 1)))


@dataclass(frozen=True)
class Task:
    """A network with a batch to learn."""

    name: str
    network: Callable[[], Any]
    images: tuple[int, ...]
    labels: Callable[[tuple[int, ...]], torch.Tensor]
    loss: Callable[[Any, torch.Tensor], Any]


def classes_of(images: tuple[int, ...]) -> torch.Tensor:
    return torch.randint(0, 10, images[:1])


def masks_of(images: tuple[int, ...]) -> torch.Tensor:
    return torch.rand(images[0], 1, *images[2:]).round()


TASKS = (
    Task("VGG-like", vgg, (16, 3, 64, 64), classes_of, nn.functional.cross_entropy),
    Task("U-Net", UNet, (2, 3, 128, 128), masks_of, nn.functional.binary_cross_entropy_with_logits),
)


class Training:
    """A copy of a task's network, the same one and the same batch for every copy, and its optimizer."""

    def __init__(self, task: Task, images: tuple[int, ...], memory_format: torch.memory_format) -> None:
        torch.manual_seed(0)
        self.x = torch.rand(images).to(memory_format=memory_format)
        self.y = task.labels(images)
        self.loss = task.loss
        self.network = task.network().to(memory_format=memory_format)
        self.optimizer = torch.optim.SGD(self.network.parameters(), 0.01, momentum=0.9)

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = self.loss(self.network(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


# ---- operators -------------------------------------------------------------------------------------------------------


SHAPES = ((8, 64, 56, 56), (4, 16, 28, 28), (1, 4, 8, 8))
# The smaller shapes and the other layout in float32 alone.
COLUMNS = (
    *((shape, torch.float32, torch.contiguous_format) for shape in SHAPES),
    (SHAPES[0], torch.bfloat16, torch.contiguous_format),
    (SHAPES[0], torch.float64, torch.contiguous_format),
    (SHAPES[0], torch.float32, torch.channels_last),
)


def calls(x: torch.Tensor) -> dict[str, Callable[[], Any]]:
    """Calls of aten's operators on an image, by name."""
    aten = torch.ops.aten
    average = {2: ([2, 2], [2, 2], [0, 0], False, True, None), 3: ([3, 3], [1, 1], [1, 1], False, True, None)}
    maximum = {2: ([2, 2], [2, 2], [0, 0], [1, 1], False), 3: ([3, 3], [2, 2], [1, 1], [1, 1], False)}
    columns, pads = ([3, 3], [1, 1], [1, 1], [1, 1]), [1, 1, 1, 1]
    found: dict[str, Callable[[], Any]] = {}
    for k, name in ((2, "2x2 s2"), (3, "3x3 s1 p1")):
        y = aten.avg_pool2d(x, *average[k])
        found[f"avg_pool2d {name}"] = partial(aten.avg_pool2d, x, *average[k])
        found[f"avg_pool2d_backward {name}"] = partial(aten.avg_pool2d_backward, y, x, *average[k])
    for k, name in ((2, "2x2 s2"), (3, "3x3 s2 p1")):
        y, indices = aten.max_pool2d_with_indices(x, *maximum[k])
        found[f"max_pool2d {name}"] = partial(aten.max_pool2d_with_indices, x, *maximum[k])
        backward = aten.max_pool2d_with_indices_backward
        found[f"max_pool2d_backward {name}"] = partial(backward, y, x, *maximum[k], indices)
    unfolded = aten.im2col(x, *columns)
    found["im2col 3x3 s1 p1"] = partial(aten.im2col, x, *columns)
    found["col2im 3x3 s1 p1"] = partial(aten.col2im, unfolded, x.shape[2:], *columns)
    padded = aten.replication_pad2d(x, pads)
    found["replication_pad2d_backward by 1"] = partial(aten.replication_pad2d_backward, padded, x, pads)
    row = x.flatten(2)
    length = row.shape[2]
    found["upsample_nearest_exact1d by 2"] = partial(aten._upsample_nearest_exact1d, row, [2 * length])
    sizes = [2 * length], list(row.shape)
    found["upsample_nearest_exact1d_backward by 2"] = partial(
        aten._upsample_nearest_exact1d_backward, row.repeat(1, 1, 2), *sizes
    )
    return found


def seconds_of(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def operator_ratio(call: Callable[[], Any], rounds: int) -> float:
    """PyTorch's time over the accelerated one, the median of rounds in which both run in turn."""
    repeats = max(1, int(2e-3 / seconds_of(call, 2)))
    quotients = []
    for _ in range(rounds):
        plain = seconds_of(call, repeats)
        with aclnn_bw.torch.accelerate():
            quotients.append(plain / seconds_of(call, repeats))
    return Spread.of(quotients).median


def operators_table(rounds: int) -> Iterator[str]:
    """Lines of the table of operators."""
    heads = [
        f"{'x'.join(map(str, shape))} {str(dtype).removeprefix('torch.')}"
        + (" channels_last" if layout is torch.channels_last else "")
        for shape, dtype, layout in COLUMNS
    ]
    yield f"| operator | {' | '.join(heads)} |"
    yield "|---" * (len(heads) + 1) + "|"
    images = [torch.rand(shape).to(dtype).to(memory_format=layout) for shape, dtype, layout in COLUMNS]
    tables = [calls(image) for image in images]
    for name in tables[0]:
        yield f"| {name} | {' | '.join(f'{operator_ratio(table[name], rounds):.2f}' for table in tables)} |"


# ---- measuring -------------------------------------------------------------------------------------------------------


def profiled(training: Training, steps: int = 2) -> tuple[float, float]:
    """Seconds of a step in the operators, and the part of the step that this is."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        for _ in range(steps):
            training.step()
    events = profile.events()
    names = {f"aten::{name}" for name in OPERATORS}

    def is_within(event: Any) -> bool:
        parent = event.cpu_parent
        return parent is not None and (parent.name in names or is_within(parent))

    # What an accelerated operator leaves to PyTorch is called from within it, under the same name.
    taken = sum(event.cpu_time_total for event in events if event.name in names and not is_within(event))
    return taken * 1e-6 / steps, taken / sum(event.self_cpu_time_total for event in events)


@dataclass(frozen=True)
class Measured:
    """What one network's steps took."""

    step: float
    ratio: Spread
    share: float
    plain: float
    fast: float
    loss: float


def measure(task: Task, images: tuple[int, ...], memory_format: torch.memory_format, seconds: float) -> Measured:
    """Train both copies in turn; the first step of each is not timed."""
    plain, fast = (Training(task, images, memory_format) for _ in range(2))
    contexts: tuple[tuple[Training, Callable[[], AbstractContextManager[None]]], ...] = (
        (plain, nullcontext),
        (fast, aclnn_bw.torch.accelerate),
    )
    times: tuple[list[float], list[float]] = ([], [])
    difference = 0.0
    end = time.perf_counter() + seconds
    while len(times[0]) < MIN_ROUNDS + 1 or time.perf_counter() < end:
        losses = []
        # Each is first in every other round.
        order = (0, 1) if len(times[0]) % 2 else (1, 0)
        for i in order:
            training, context = contexts[i]
            with context():
                start = time.perf_counter()
                losses.append(training.step())
                times[i].append(time.perf_counter() - start)
        if len(times[0]) <= COMPARED:
            difference = max(difference, abs(losses[0] - losses[1]) / abs(losses[0]))
    if difference > 1e-3:
        raise ArithmeticError(f"{task.name}: the losses differ by {difference:.1e} of theirs")
    plain_times, fast_times = (one[1:] for one in times)
    shares, taken, still_taken = [], [], []
    for _ in range(PROFILED):
        operators, part = profiled(plain)
        shares.append(part)
        taken.append(operators)
        with aclnn_bw.torch.accelerate():
            still_taken.append(profiled(fast)[0])
    return Measured(
        step=Spread.of(plain_times).median,
        ratio=ratio(plain_times, fast_times),
        share=Spread.of(shares).median,
        plain=Spread.of(taken).median,
        fast=Spread.of(still_taken).median,
        loss=difference,
    )


def row(task: Task, images: tuple[int, ...], layout: str, measured: Measured) -> str:
    """Its line of the table."""
    spread = measured.ratio
    return (
        f"| {task.name} {'x'.join(map(str, images))}, {layout} | {measured.step * 1e3:.0f} ms "
        f"| {measured.share:.1%} | {measured.plain * 1e3:.1f} ms | {measured.fast * 1e3:.1f} ms "
        f"| {spread.median:.2f} ({spread.low:.2f}-{spread.high:.2f}) | {measured.loss:.0e} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    add = parser.add_argument
    add("--threads", type=int, default=2, metavar="N", help="of PyTorch and of ours (default 2)")
    add("--seconds", type=positive, default=30.0, metavar="S", help="for each network and layout (default 30)")
    add("--small", action="store_true", help="images of 2x3x32x32: whether it runs, not a measurement")
    add("--operators", action="store_true", help="single operators instead of networks: the ratio of each")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    env = environment((), given.threads)
    print(summary(env))
    print(f"PyTorch {torch.__version__}\n")
    if given.operators:
        with aclnn_bw.num_threads(given.threads):
            for line in operators_table(3 if given.small else 15):
                print(line, flush=True)
        return
    print(f"{_LEGEND}\n")
    with aclnn_bw.num_threads(given.threads):
        print(
            "| training step | step | share | operators | accelerated | ratio | loss |\n|---|---|---|---|---|---|---|"
        )
        for task in TASKS:
            images = (2, 3, 32, 32) if given.small else task.images
            for layout, memory_format in (("NCHW", torch.contiguous_format), ("channels_last", torch.channels_last)):
                measured = measure(task, images, memory_format, given.seconds)
                print(row(task, images, layout, measured), flush=True)


if __name__ == "__main__":
    main()
