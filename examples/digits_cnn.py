"""A small convolutional network in plain NumPy, trained on real images with the forwards and gradients of aclnn_bw.

scikit-learn's 1797 handwritten digits, 8x8 pixels each. Every convolution is a replication pad and a matrix product of
columns; a max pool lies between the two, an average pool behind them. `--plot FILE.png` draws the loss curve.
"""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

import aclnn_bw

Array = npt.NDArray[Any]


class Convolution:
    """3x3, same size: pad, columns, one matrix product."""

    def __init__(self, random: np.random.Generator, channels: int, filters: int) -> None:
        scale = np.sqrt(2 / (9 * channels))
        self.weight = (scale * random.standard_normal((filters, channels * 9))).astype(np.float32)
        self.speed = np.zeros_like(self.weight)

    def forward(self, x: Array) -> Array:
        n, _, h, w = self.shape = x.shape
        self.columns = aclnn_bw.im2col(aclnn_bw.replication_pad2d(x, 1), 3)
        return (self.weight @ self.columns).reshape(n, -1, h, w)

    def backward(self, grad_output: Array) -> Array:
        n, c, h, w = self.shape
        grad = grad_output.reshape(n, -1, h * w)
        self.gradient = np.tensordot(grad, self.columns, axes=((0, 2), (0, 2)))
        grad_padded = aclnn_bw.im2col_backward(self.weight.T @ grad, (h + 2, w + 2), 3)
        return aclnn_bw.replication_pad2d_backward(grad_padded, (n, c, h, w), 1)


class Network:
    def __init__(self, random: np.random.Generator) -> None:
        self.first, self.second = Convolution(random, 1, 16), Convolution(random, 16, 32)
        self.weight = (0.1 * random.standard_normal((32, 10))).astype(np.float32)
        self.speed = np.zeros_like(self.weight)

    def forward(self, x: Array) -> Array:
        """The logits of images (N, 1, 8, 8)."""
        self.a = np.maximum(self.first.forward(x), 0)
        pooled, self.mask = aclnn_bw.max_pool2d_with_mask(self.a, 2)
        self.b = np.maximum(self.second.forward(pooled), 0)
        self.features = aclnn_bw.avg_pool2d(self.b, 4)[:, :, 0, 0]
        return self.features @ self.weight

    def backward(self, grad: Array) -> None:
        """Leave the gradients of the weights beside them."""
        self.gradient = self.features.T @ grad
        grad_features = (grad @ self.weight.T)[:, :, None, None]
        grad_b = aclnn_bw.avg_pool2d_backward(grad_features, self.b.shape, 4) * (self.b > 0)
        grad_pooled = self.second.backward(grad_b)
        grad_a = aclnn_bw.max_pool2d_with_mask_backward(grad_pooled, self.a.shape, self.mask, 2) * (self.a > 0)
        self.first.backward(grad_a)

    def step(self, rate: float) -> None:
        """Gradient descent with momentum."""
        for layer in (self.first, self.second, self):
            layer.speed = (0.9 * layer.speed - rate * layer.gradient).astype(np.float32)
            layer.weight = layer.weight + layer.speed


def cross_entropy(logits: Array, digits: Any) -> tuple[float, Array]:
    """The mean loss of a batch, and its gradient."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances = shifted / shifted.sum(axis=1, keepdims=True)
    rows = np.arange(len(digits))
    loss = float(-np.log(chances[rows, digits]).mean())
    chances[rows, digits] -= 1
    return loss, chances / np.float32(len(digits))


def train(epochs: int, rate: float = 0.1, batch: int = 32) -> tuple[list[float], float]:
    """The mean loss of each epoch, and the share of unseen digits that are told right at the end."""
    images, digits = load_digits(return_X_y=True)
    random = np.random.default_rng(0)
    order = random.permutation(len(images))
    x, y = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8), digits[order]
    x, y, unseen_x, unseen_y = x[:1400], y[:1400], x[1400:], y[1400:]
    network = Network(random)
    losses = []
    for _ in range(epochs):
        order = random.permutation(len(x))
        seen = []
        for start in range(0, len(x), batch):
            chosen = order[start : start + batch]
            loss, grad = cross_entropy(network.forward(x[chosen]), y[chosen])
            network.backward(grad)
            network.step(rate)
            seen.append(loss)
        losses.append(float(np.mean(seen)))
    return losses, float(np.mean(network.forward(unseen_x).argmax(axis=1) == unseen_y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--plot", metavar="FILE.png")
    options = parser.parse_args()
    losses, accuracy = train(options.epochs)
    for epoch, loss in enumerate(losses, 1):
        print(f"epoch {epoch:3}  loss {loss:.3f}  {'#' * round(25 * loss)}")
    print(f"unseen digits told right: {accuracy:.1%}")
    if options.plot:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots()
        axes.plot(range(1, len(losses) + 1), losses)
        axes.set(xlabel="epoch", ylabel="loss", title=f"8x8 digits, {accuracy:.1%} of unseen ones told right")
        figure.savefig(options.plot)


if __name__ == "__main__":
    main()
