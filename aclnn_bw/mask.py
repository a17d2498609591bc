"""Max-pool masks: their shape, and to and from the flat indices that other libraries exchange.

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
from aclnn_bw.products import MASK_LAYOUTS

_LANES = 16  # channels in a word, and the words that a row is padded to
_INVALID = 161002
_MOST_INDICES = 2**31 - 1

_Dtype = TypeVar("_Dtype", bound=np.generic)
_Pair = int | tuple[int, int] | list[int]


class _Geometry:
    """A pooling, with N = 1 for an image without a batch."""

    def __init__(self, input_shape: Any, *attributes: Any) -> None:
        self.out, self.container, self.kernel, self.stride, self.padding = _native.max_pool2d_geometry(
            input_shape, *attributes
        )
        *batch, self.channels, self.height, self.width = map(int, input_shape)
        self.shape = (*batch, self.channels, self.height, self.width)
        self.batch = batch[0] if batch else 1
        self.groups = -(-self.channels // _LANES)
        self.rows, self.columns = self.out[-2:]
        self.positions = self.rows * self.columns
        self.words = (-(-self.positions // _LANES) + 1) * _LANES

    def top_left(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where each window begins: row numbers (Ho, 1) and column numbers (1, Wo), negative in the padding."""
        rows = np.arange(self.rows) * self.stride[0] - self.padding[0]
        columns = np.arange(self.columns) * self.stride[1] - self.padding[1]
        return rows[:, None], columns[None, :]

    def is_argmax(self, layout: str) -> bool:
        if not isinstance(layout, str):
            raise TypeError(f"mask_layout = {layout!r}: must be a str, not {type(layout).__name__}")
        if layout not in MASK_LAYOUTS:
            names = ", ".join(map(repr, MASK_LAYOUTS))
            raise _native.refusal(_INVALID, f"mask_layout = {layout!r}: must be one of {names}")
        argmax = layout == "argmax" and self.kernel != (1, 1)
        if argmax and self.height * self.width > _MOST_INDICES:
            raise _native.refusal(
                _INVALID, f"input_shape = {self.shape}: H * W must be <= {_MOST_INDICES} in the mask layout \"argmax\""
            )
        return argmax

    def inside(self, kernel_position: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The flat index in the plane that a kernel position has in each window, and whether it is in the image."""
        kh, kw = divmod(kernel_position, self.kernel[1])
        top, left = self.top_left()
        ih, iw = top + kh, left + kw
        return ih * self.width + iw, (ih >= 0) & (ih < self.height) & (iw >= 0) & (iw < self.width)

    def refuse_index(self, value: int, place: tuple[int, int, int, int]) -> Exception:
        """Make the refusal that phase 2 has for such an index."""
        top, left = (int(axis.flat[i]) for axis, i in zip(self.top_left(), place[2:], strict=True))
        rows = f"rows {max(top, 0)} to {min(top + self.kernel[0], self.height) - 1}"
        columns = f"columns {max(left, 0)} to {min(left + self.kernel[1], self.width) - 1}"
        return _native.refusal(
            _INVALID, f"indices{list(place)} = {value}: must lie inside window (n, c, oh, ow) = {place}, in {rows} and "
            f"{columns} of a plane of width {self.width}",
        )  # fmt: skip


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
    dilation: _Pair = 1, ceil_mode: bool = False, *, mask_layout: str = "bitmask",
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
        raise _native.refusal(_INVALID, f"mask.dtype = {container.dtype}: must be int8")
    if container.shape != g.container:
        raise _native.refusal(_INVALID, f"mask.shape = {container.shape}: must be {g.container}")
    flat = np.ascontiguousarray(container).reshape(-1).view(np.uint8)
    if argmax:
        count = g.batch * g.channels * g.positions
        return _answer(mask, flat[: 4 * count].view("<i4").astype(np.int64).reshape(g.out))
    size = g.kernel[0] * g.kernel[1]
    words = flat[: 2 * g.batch * g.groups * size * g.words].view("<u2")
    words = words.reshape(g.batch, g.groups, size, g.words)[..., : g.positions]
    found = np.full((g.batch, g.groups, _LANES, g.rows, g.columns), -1, np.int64)
    lanes = np.arange(_LANES, dtype=np.uint16)[:, None]
    for k in reversed(range(size)):  # the first position is written last
        index, inside = g.inside(k)
        hit = (words[:, :, k, None] >> lanes & 1).astype(bool).reshape(found.shape) & inside
        np.copyto(found, index, where=hit)
    found = found.reshape(g.batch, g.groups * _LANES, g.rows, g.columns)[:, : g.channels]
    return _answer(mask, np.ascontiguousarray(found).reshape(g.out))


def indices_to_mask(
    indices: Any, input_shape: tuple[int, ...], kernel_size: _Pair, stride: _Pair | None = None, padding: _Pair = 0,
    dilation: _Pair = 1, ceil_mode: bool = False, *, mask_layout: str = "bitmask",
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
    flat = given.reshape(g.batch, g.channels, g.rows, g.columns)
    top, left = g.top_left()
    inside_plane = (flat >= 0) & (flat < g.height * g.width)
    # An index beyond the plane may be of any integer type and size; 0 stands for it from here on.
    place = np.where(inside_plane, flat, 0).astype(np.int64)
    kh, kw = place // g.width - top, place % g.width - left
    good = inside_plane & (kh >= 0) & (kh < g.kernel[0]) & (kw >= 0) & (kw < g.kernel[1])
    none = flat == -1 if given.dtype.kind == "i" else np.zeros(flat.shape, bool)
    bad = ~good if argmax else ~(good | none)
    if bad.any():
        n, c, oh, ow = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        raise g.refuse_index(int(flat[n, c, oh, ow]), (n, c, oh, ow))
    mask = np.zeros(g.container, np.int8)
    memory = mask.reshape(-1).view(np.uint8)
    if argmax:
        memory[: 4 * place.size].view("<i4")[:] = place.reshape(-1)
        return _answer(indices, mask)
    size = g.kernel[0] * g.kernel[1]
    words = memory[: 2 * g.batch * g.groups * size * g.words].view("<u2")
    words = words.reshape(g.batch, g.groups, size, g.words)
    k = np.where(good, kh * g.kernel[1] + kw, -1).reshape(g.batch, g.channels, g.positions)
    images, positions = np.arange(g.batch)[:, None], np.arange(g.positions)[None, :]
    for c in range(g.channels):  # within one channel no two windows share a word
        chosen = k[:, c] >= 0
        where = tuple(np.broadcast_arrays(images, c // _LANES, k[:, c], positions))
        words[tuple(axis[chosen] for axis in where)] |= np.uint16(1 << c % _LANES)
    return _answer(indices, mask)
