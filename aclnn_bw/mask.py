"""Max-pool masks: their shape, and to and from the flat indices of other libraries.

The layout "bitmask" is a dense array of little-endian uint16 words [N, ceil(C/16), kH*kW, (ceil(Ho*Wo/16) + 1)*16] from
the container's first byte: bit j of word (n, group, k, p) says that channel 16*group + j has the maximum of output
position p = oh*Wo + ow at kernel position k = kh*kW + kw. The layout "argmax" is a dense little-endian int32 array
(N, C, Ho, Wo) of ih*W + iw; with a 1x1 kernel it does not fit, and there the two layouts are one. All else in the
container is zero. The documentation draws both.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from aclnn_bw import _native
from aclnn_bw.products import MASK_LAYOUTS, MaskLayout

_INVALID = 161002
_MOST_INDICES = 2**31 - 1

_Dtype = TypeVar("_Dtype", bound=np.generic)
_Pair = int | tuple[int, int] | list[int]


class _Geometry:
    """A pooling."""

    def __init__(self, *geometry: Any) -> None:
        self.given = geometry
        self.out, self.container, self.kernel, _, _ = _native.max_pool2d_geometry(*geometry)
        self.shape = tuple(map(int, geometry[0]))

    def is_argmax(self, layout: str) -> bool:
        if not isinstance(layout, str):
            raise TypeError(f"mask_layout = {layout!r}: must be a str, not {type(layout).__name__}")
        if layout not in MASK_LAYOUTS:
            names = ", ".join(map(repr, MASK_LAYOUTS))
            raise _native.refusal(_INVALID, f"mask_layout = {layout!r}: must be one of {names}")
        argmax = layout == "argmax" and self.kernel != (1, 1)
        if argmax and self.shape[-2] * self.shape[-1] > _MOST_INDICES:
            raise _native.refusal(
                _INVALID, f"input_shape = {self.shape}: H * W must be <= {_MOST_INDICES} in the mask layout \"argmax\""
            )
        return argmax

    def convert(self, source: npt.NDArray[Any], to: npt.NDArray[_Dtype], to_mask: bool, argmax: bool) -> None:
        """Fill `to`, from a source of any byte order and at any address."""
        plain = source.flags.aligned and source.dtype.isnative and not any(n % source.itemsize for n in source.strides)
        if not plain:
            source = source.astype(source.dtype.newbyteorder("="), order="C")
        _native.convert(source, to, to_mask, argmax, self.given)


def _answer(first: Any, array: npt.NDArray[_Dtype]) -> npt.NDArray[_Dtype]:
    """The array, as one of the library whose array the caller has given."""
    answer: npt.NDArray[_Dtype] = _native.in_library_of(first, array)
    return answer


def mask_shape(
    input_shape: tuple[int, ...], kernel_size: _Pair, stride: _Pair | None = None, padding: _Pair = 0,
    dilation: _Pair = 1, ceil_mode: bool = False,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of the int8 mask of a pooling: ([N,] C, kH*kW, (ceil(Ho*Wo / 16) + 1) * 32).

    >>> import aclnn_bw
    >>> aclnn_bw.mask_shape((1, 1, 4, 4), 2)
    (1, 1, 4, 64)
    """
    return _Geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode).container


def mask_to_indices(
    mask: Any, input_shape: tuple[int, ...], kernel_size: _Pair, stride: _Pair | None = None, padding: _Pair = 0,
    dilation: _Pair = 1, ceil_mode: bool = False, *, mask_layout: MaskLayout = "bitmask",
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Return the flat index ih*W + iw of each window's maximum, int64 ([N,] C, Ho, Wo): PyTorch's return_indices.

    -1 stands where no bit is set (or only bits in the padding); of several bits the first in-image position counts.
    A mask that is a tensor of PyTorch or an array of JAX makes the result one too (without jax_enable_x64, JAX has
    int32). Raises AclnnError (a ValueError) for a mask of another shape.

    >>> import numpy as np, aclnn_bw
    >>> x = np.array([[[0, 1], [3, 2]]], np.float32)
    >>> out, mask = aclnn_bw.max_pool2d_with_mask(x, 2)
    >>> aclnn_bw.mask_to_indices(mask, x.shape, 2)
    array([[[2]]])
    """
    g = _Geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode)
    argmax = g.is_argmax(mask_layout)
    if mask is None:
        raise _native.refusal(161001, "mask = None: must not be null")
    container = _native.array_of(mask, "mask")
    if container.dtype != np.int8:
        remedy = "; indices_to_mask makes a mask of indices" if container.dtype in (np.int32, np.int64) else ""
        raise _native.refusal(_INVALID, f"mask.dtype = {container.dtype}: must be int8{remedy}")
    if container.shape != g.container:
        raise _native.refusal(_INVALID, f"mask.shape = {container.shape}: must be {g.container}")
    indices = np.empty(g.out, np.int64)
    g.convert(np.ascontiguousarray(container), indices, False, argmax)
    return _answer(mask, indices)


def indices_to_mask(
    indices: Any, input_shape: tuple[int, ...], kernel_size: _Pair, stride: _Pair | None = None, padding: _Pair = 0,
    dilation: _Pair = 1, ceil_mode: bool = False, *, mask_layout: MaskLayout = "bitmask",
) -> npt.NDArray[np.int8]:  # fmt: skip
    """Return the mask that has the maximum of each window at a flat index ih*W + iw: the inverse of mask_to_indices.

    indices are integers of shape ([N,] C, Ho, Wo), as PyTorch's return_indices=True gives them. -1 sets no bit; in the
    layout "argmax", which cannot express that, it is refused. Indices of PyTorch or JAX make the mask one of theirs.
    Raises AclnnError (a ValueError) for -1 where it is refused, for an index outside its own window, and for another
    shape or dtype.

    >>> import numpy as np, aclnn_bw
    >>> mask = aclnn_bw.indices_to_mask(np.array([[[5, 7], [13, 15]]]), (1, 4, 4), 2)
    >>> mask.view("<u2")[0, 3, :4]
    array([1, 1, 1, 1], dtype=uint16)
    """
    g = _Geometry(input_shape, kernel_size, stride, padding, dilation, ceil_mode)
    argmax = g.is_argmax(mask_layout)
    if indices is None:
        raise _native.refusal(161001, "indices = None: must not be null")
    given = _native.array_of(indices, "indices")
    if given.dtype.kind not in "iu":
        raise _native.refusal(_INVALID, f"indices.dtype = {given.dtype}: must be an integer type")
    if given.shape != g.out:
        raise _native.refusal(_INVALID, f"indices.shape = {given.shape}: must be {g.out}")
    mask = np.empty(g.container, np.int8)
    g.convert(given, mask, True, argmax)
    return _answer(indices, mask)
