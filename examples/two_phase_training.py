"""A small convolutional network, trained by two-phase calls alone, as a program for an NPU would: plan once, run often.

Every tensor is made before the loop, and phase 1 called once for each operator on them. The loop is phase 2 on a
stream, thousands of times; between its runs NumPy does in place what this library has no operator for: products of
matrices, relu, softmax. No tensor, plan or workspace is made in there. The network is that of digits_cnn.py.
"""

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

import aclnn_bw

Array = npt.NDArray[Any]
N = 32  # images of a batch: a plan is for one geometry, so every batch has as many


def zeros(*shapes: tuple[int, ...]) -> list[Array]:
    return [np.zeros(shape, np.float32) for shape in shapes]


class Device:
    """A stream, and one workspace for all that runs on it, as large as the largest: runs of a stream do not overlap."""

    def __init__(self) -> None:
        self.stream, self.workspace, self.runs = aclnn_bw.aclrtCreateStream(), aclnn_bw.aclrtMalloc(1), 0
        self.executors: list[aclnn_bw.aclOpExecutor] = []

    def plan(self, name: str, *arguments: Any) -> Any:
        """Phase 1 of an operator; what it returns is for `run`, any number of times."""
        size, executor = getattr(aclnn_bw, f"aclnn{name}GetWorkspaceSize")(*arguments)
        aclnn_bw.aclSetAclOpExecutorRepeatable(executor)  # or its first run would spend it
        if size > self.workspace.nbytes:  # nothing has run yet
            self.workspace = aclnn_bw.aclrtMalloc(size)
        self.executors.append(executor)
        return getattr(aclnn_bw, f"aclnn{name}"), executor

    def run(self, *plans: Any) -> None:
        """Phase 2 of each, one after the other; wait for the last, for NumPy is next and knows nothing of streams."""
        for phase_2, executor in plans:
            phase_2(self.workspace, self.workspace.nbytes, executor, self.stream)
        aclnn_bw.aclrtSynchronizeStream(self.stream)
        self.runs += len(plans)

    def close(self) -> None:
        for executor in self.executors:  # a repeatable one lives until it is destroyed
            aclnn_bw.aclDestroyAclOpExecutor(executor)
        aclnn_bw.aclrtDestroyStream(self.stream)


class Network:
    """Two convolutions, each a pad, columns and a product of matrices; a max pool between, an average pool behind."""

    def __init__(self, device: Device, random: np.random.Generator) -> None:
        shapes = (16, 9), (32, 9 * 16), (10, 32)
        self.weights = [(2 / shape[1]) ** 0.5 * random.standard_normal(shape, np.float32) for shape in shapes]
        self.gradients, self.parts = zeros(*shapes), zeros((N, 16, 9), (N, 32, 9 * 16))
        x, padded_x, self.columns_x = zeros((N, 1, 8, 8), (N, 1, 10, 10), (N, 9, 64))
        inner = (N, 16, 8, 8), (N, 16, 4, 4), (N, 16, 6, 6), (N, 9 * 16, 16), (N, 32, 4, 4), (N, 32, 1, 1)
        self.a, pooled, padded, self.columns, self.b, features = zeros(*inner)
        self.grad_a, grad_pooled, grad_padded, self.grad_columns, self.grad_b, grad_features = zeros(*inner)
        self.features, self.grad_features = features.reshape(N, 32), grad_features.reshape(N, 32)  # the same memory
        mask, self.chances = np.zeros(aclnn_bw.mask_shape(self.a.shape, 2), np.int8), np.zeros((N, 10), np.float32)

        # Plans know their tensors. Those that a convolution's product fills and empties are attributes, for NumPy.
        pads = [1, 1, 1, 1]  # left, right, top, bottom
        window = [3, 3], [1, 1], [0, 0], [1, 1]  # kernelSize, dilation, padding, stride
        halve = [2, 2], [2, 2], [0, 0], [1, 1], False  # kernelSize, stride, padding, dilation, ceilMode
        # kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride, cubeMathType
        mean = [4, 4], [4, 4], [0, 0], False, True, 0, aclnn_bw.KEEP_DTYPE
        self.device, plan = device, device.plan
        self.pad_x = plan("ReplicationPad2d", x, pads, padded_x)
        self.unfold_x = plan("Im2col", padded_x, *window, self.columns_x)
        self.max_pool = plan("MaxPool2dWithMask", self.a, *halve, pooled, mask)
        self.pad = plan("ReplicationPad2d", pooled, pads, padded)
        self.unfold = plan("Im2col", padded, *window, self.columns)
        self.avg_pool = plan("AvgPool2d", self.b, *mean, features)
        self.avg_pool_backward = plan("AvgPool2dBackward", grad_features, self.b, *mean, self.grad_b)
        self.unfold_backward = plan("Im2colBackward", self.grad_columns, [6, 6], *window, grad_padded)
        self.pad_backward = plan("ReplicationPad2dBackward", grad_padded, pooled, pads, grad_pooled)
        self.max_pool_backward = plan("MaxPool2dWithMaskBackward", grad_pooled, self.a, mask, *halve, self.grad_a)

    def forward(self, x: Array, digits: Array) -> tuple[float, float]:
        """The mean loss of a batch, and the share of it that is told right."""
        aclnn_bw.aclSetInputTensorAddr(self.pad_x[1], 0, None, x)  # the images are read where they lie
        self.device.run(self.pad_x, self.unfold_x)
        np.matmul(self.weights[0], self.columns_x, out=self.a.reshape(N, 16, 64))
        np.maximum(self.a, 0, out=self.a)
        self.device.run(self.max_pool, self.pad, self.unfold)
        np.matmul(self.weights[1], self.columns, out=self.b.reshape(N, 32, 16))
        np.maximum(self.b, 0, out=self.b)
        self.device.run(self.avg_pool)
        logits = np.matmul(self.features, self.weights[2].T, out=self.chances)
        logits -= logits.max(axis=1, keepdims=True)
        np.exp(logits, out=self.chances)
        self.chances /= self.chances.sum(axis=1, keepdims=True)
        loss = -np.log(self.chances[range(N), digits]).mean()
        return float(loss), float(np.mean(self.chances.argmax(axis=1) == digits))

    def backward(self, digits: Array) -> None:
        """Leave the gradients of the weights beside them; what the forward has left is used up."""
        self.chances[range(N), digits] -= 1
        self.chances /= N
        np.matmul(self.chances.T, self.features, out=self.gradients[2])
        np.matmul(self.chances, self.weights[2], out=self.grad_features)
        self.device.run(self.avg_pool_backward)
        grad = self.convolution_backward(1, self.b, self.grad_b, self.columns)
        np.matmul(self.weights[1].T, grad, out=self.grad_columns)
        self.device.run(self.unfold_backward, self.pad_backward, self.max_pool_backward)
        self.convolution_backward(0, self.a, self.grad_a, self.columns_x)  # the images need no gradient

    def convolution_backward(self, layer: int, out: Array, grad_out: Array, columns: Array) -> Array:
        grad_out *= np.sign(out, out=out)  # the slope of relu, 0 or 1
        grad = grad_out.reshape(N, out.shape[1], -1)
        np.matmul(grad, columns.transpose(0, 2, 1), out=self.parts[layer]).sum(axis=0, out=self.gradients[layer])
        return grad

    def check(self, x: Array, digits: Array) -> None:
        """Along the gradient of each layer the loss must rise at the rate of its square."""
        self.forward(x, digits)
        self.backward(digits)
        for weight, gradient in zip(self.weights, self.gradients, strict=True):
            losses = []
            for distance in (0.01, -0.02, 0.01):  # ahead, behind, and back again
                weight += distance * gradient
                losses.append(self.forward(x, digits)[0])
            square = float(np.vdot(gradient, gradient))
            assert abs((losses[0] - losses[1]) / 0.02 - square) < 0.01 * square


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    epochs = parser.parse_args().epochs
    random, seen = np.random.default_rng(0), 44 * N
    images, digits = load_digits(return_X_y=True)
    order = random.permutation(len(images))[: seen + 12 * N]
    x, y = (images[order] / 16).astype(np.float32).reshape(-1, 1, 8, 8), digits[order]
    batches = [slice(start, start + N) for start in range(0, len(x), N)]
    device = Device()
    network = Network(device, random)
    network.check(x[:N], y[:N])
    print("the gradient is right")
    for epoch in range(1, epochs + 1):
        order = random.permutation(seen)
        x[:seen], y[:seen] = x[order], y[order]
        losses = []
        for batch in batches[:44]:
            losses.append(network.forward(x[batch], y[batch])[0])
            network.backward(y[batch])
            for weight, gradient in zip(network.weights, network.gradients, strict=True):
                weight -= 0.3 * gradient
        loss = np.mean(losses)
        print(f"epoch {epoch:3}  loss {loss:.3f}  {'#' * round(25 * loss)}")
    right = np.mean([network.forward(x[batch], y[batch])[1] for batch in batches[44:]])
    print(f"unseen digits told right: {right:.1%}")
    print(f"{len(device.executors)} plans, {device.runs} runs, {device.workspace.nbytes} bytes of workspace")
    device.close()


if __name__ == "__main__":
    main()
