"""Compare what an NPU has computed with what is computed here: the largest error in ulp, and where it begins.

On the machine with the NPU, write the arguments of a call and its results to one .npz file, under the names of the C
call; `dump` below does it from NumPy arrays. Here, `aclnn-bw compare DUMP.npz` tells the difference; `--ulp N` says how
much of it is fine. Without an NPU, this file makes a dump of its own with one wrong element.
"""

import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import aclnn_bw
from aclnn_bw import cli


def dump(path: Path, operator: str, soc: str, **arguments: Any) -> None:
    """Write a call to a file; bfloat16 arrays go as their bits, which NumPy can store."""
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in arguments.items()}
    brain = [name for name, array in arrays.items() if array.dtype == ml_dtypes.bfloat16]
    arrays.update({name: arrays[name].view(np.uint16) for name in brain})
    stored: dict[str, Any] = {"operator": operator, "soc": soc, "bfloat16": np.array(brain, str), **arrays}
    np.savez(path, **stored)


def main() -> None:
    random = np.random.default_rng(0)
    grad_output = random.standard_normal((2, 8, 5, 5)).astype(ml_dtypes.bfloat16)
    grad_input = aclnn_bw.avg_pool2d_backward(grad_output, (2, 8, 10, 10), 2)
    grad_input[1, 3, 4, 5] *= 1.05  # the NPU's result, for want of one
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "dump.npz")
        dump(
            path, "AvgPool2dBackward", "Ascend910B", gradOutput=grad_output, self_shape=grad_input.shape,
            kernelSize=[2, 2], stride=[2, 2], padding=[0, 0], ceilMode=False, countIncludePad=True, divisorOverride=0,
            cubeMathType=0, gradInput=grad_input,
        )  # fmt: skip
        status = cli.main(["compare", str(path), "--ulp", "1"])  # the same as `aclnn-bw compare DUMP.npz --ulp 1`
    print("as good as equal" if status == 0 else "they differ")


if __name__ == "__main__":
    main()
