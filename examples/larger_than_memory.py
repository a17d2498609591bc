"""The gradient of an array that need not fit in memory: dask.array.map_blocks over the batch axis.

Every image's gradient depends on that image alone, so blocks of images can be worked on one by one, in any order and on
any worker, and the bytes are those of one call. Input and output are .npy files.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.distributed import Client

import aclnn_bw

KERNEL_SIZE, STRIDE, PADDING = 3, 2, 1
PLANE = (64, 56, 56)  # C, Ho, Wo of gradOutput
IMAGE = (64, 112, 112)  # C, H, W of the input


class OnDisk:
    """A .npy file as dask sees it: only its name travels to the workers, who map what they need of it."""

    def __init__(self, path: Path) -> None:
        mapped = np.load(path, mmap_mode="r")
        self.path, self.shape, self.dtype, self.ndim = path, mapped.shape, mapped.dtype, mapped.ndim

    def __getitem__(self, index: Any) -> npt.NDArray[Any]:
        block: npt.NDArray[Any] = np.load(self.path, mmap_mode="r")[index]
        return block

    def __setitem__(self, index: Any, block: npt.NDArray[Any]) -> None:
        np.load(self.path, mmap_mode="r+")[index] = block


def backward(grad_output: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The gradient of one block of images. The cluster has a worker for each core, so a call takes one thread."""
    with aclnn_bw.num_threads(1):
        return aclnn_bw.avg_pool2d_backward(grad_output, (len(grad_output), *IMAGE), KERNEL_SIZE, STRIDE, PADDING)


def process(source: Path, target: Path, images: int) -> None:
    """Write the gradient of the array in `source` to `target`; each worker holds `images` of them at a time."""
    given = OnDisk(source)
    np.lib.format.open_memmap(target, "w+", given.dtype, (given.shape[0], *IMAGE))
    grad_output: Any = da.from_array(given, chunks=(images, *PLANE), name=False)  # pyright: ignore[reportArgumentType]
    grad_input = da.map_blocks(backward, grad_output, dtype=given.dtype, chunks=(grad_output.chunks[0], *IMAGE))
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        da.store(grad_input, OnDisk(target), lock=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=64, help="of 0.8 MB in and 3.2 MB out (default: %(default)s)")
    parser.add_argument("--block", type=int, default=8, help="images that a worker holds at a time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "gradOutput.npy"), Path(folder, "gradInput.npy")
        made = np.lib.format.open_memmap(source, "w+", np.float32, (options.images, *PLANE))
        random = np.random.default_rng(0)
        for image in made:
            image[...] = random.standard_normal(PLANE, np.float32)
        made.flush()
        process(source, target, options.block)
        # Only here, to show it: one call on the whole.
        whole = aclnn_bw.avg_pool2d_backward(np.load(source), (options.images, *IMAGE), KERNEL_SIZE, STRIDE, PADDING)
        assert whole.tobytes() == np.load(target, mmap_mode="r").tobytes()
        size = (os.path.getsize(source) + os.path.getsize(target)) / 2**20
        print(f"{size:.0f} MiB in blocks of {options.block} images: the bytes are those of one call")


if __name__ == "__main__":
    main()
