"""Two of the gradients inside JAX: jax.custom_vjp, with the backward as a callback on the CPU.

It works under jax.jit and jax.grad. The callback gets NumPy arrays and gives NumPy arrays: JAX itself must not be
called in there. Run it to compare with JAX's own gradients.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import aclnn_bw


def on_cpu(function: Any, like: Any, *arrays: jax.Array) -> Any:
    """Call a function of NumPy arrays from compiled code; `like` has the shapes and dtypes of what it returns."""
    return jax.pure_callback(lambda *given: function(*map(np.asarray, given)), like, *arrays)


def plain_avg_pool2d(x: jax.Array, kernel_size: int, stride: int) -> jax.Array:
    window, step = (1, 1, kernel_size, kernel_size), (1, 1, stride, stride)
    return lax.reduce_window(x, 0.0, lax.add, window, step, "VALID") / kernel_size**2


def plain_max_pool2d(x: jax.Array, kernel_size: int, stride: int) -> jax.Array:
    window, step = (1, 1, kernel_size, kernel_size), (1, 1, stride, stride)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, step, "VALID")


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def avg_pool2d(x: jax.Array, kernel_size: int, stride: int) -> jax.Array:
    return plain_avg_pool2d(x, kernel_size, stride)


def avg_pool2d_forward(x: jax.Array, kernel_size: int, stride: int) -> tuple[jax.Array, jax.Array]:
    return avg_pool2d(x, kernel_size, stride), x


def avg_pool2d_backward(kernel_size: int, stride: int, x: jax.Array, grad_output: jax.Array) -> tuple[jax.Array]:
    def backward(grad_output: Any) -> Any:
        return aclnn_bw.avg_pool2d_backward(grad_output, x.shape, kernel_size, stride)

    return (on_cpu(backward, jax.ShapeDtypeStruct(x.shape, x.dtype), grad_output),)


avg_pool2d.defvjp(avg_pool2d_forward, avg_pool2d_backward)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def max_pool2d(x: jax.Array, kernel_size: int, stride: int) -> jax.Array:
    return max_pool2d_forward(x, kernel_size, stride)[0]


def max_pool2d_forward(x: jax.Array, kernel_size: int, stride: int) -> tuple[jax.Array, Any]:
    rows, columns = ((size - kernel_size) // stride + 1 for size in x.shape[2:])
    out = jax.ShapeDtypeStruct((*x.shape[:2], rows, columns), x.dtype)
    mask = jax.ShapeDtypeStruct(aclnn_bw.mask_shape(x.shape, kernel_size, stride), np.int8)
    forward = partial(aclnn_bw.max_pool2d_with_mask, kernel_size=kernel_size, stride=stride)
    out, mask = on_cpu(forward, (out, mask), x)
    return out, (x, mask)


def max_pool2d_backward(kernel_size: int, stride: int, kept: Any, grad_output: jax.Array) -> tuple[jax.Array]:
    x, mask = kept

    def backward(grad_output: Any, mask: Any) -> Any:
        return aclnn_bw.max_pool2d_with_mask_backward(grad_output, x.shape, mask, kernel_size, stride)

    return (on_cpu(backward, jax.ShapeDtypeStruct(x.shape, x.dtype), grad_output, mask),)


max_pool2d.defvjp(max_pool2d_forward, max_pool2d_backward)


def main() -> None:
    def loss(x: jax.Array, pool: Any) -> jax.Array:
        return jnp.sum(pool(x, 3, 2) ** 2)

    gradient: Any = jax.jit(jax.grad(loss), static_argnums=1)
    x = jax.random.normal(jax.random.key(0), (2, 3, 9, 9))
    for name, ours, plain in (
        ("avg_pool2d", avg_pool2d, plain_avg_pool2d),
        ("max_pool2d", max_pool2d, plain_max_pool2d),
    ):
        np.testing.assert_allclose(gradient(x, ours), gradient(x, plain), rtol=1e-5, atol=1e-6)
        print(f"{name}: the gradient is JAX's")


if __name__ == "__main__":
    main()
