"""The operators as the tests know them: of each record of the package, one module of this folder and one class in it.

The module is called as the one-call function, the class as the operator. It has the twin in plain NumPy, a small legal
call, what the operator takes and refuses, and how random calls of it are drawn; `Operator` says what of each. Whoever
runs over all operators takes them from here.
"""

from importlib import import_module

import pytest
from engine_helpers import NUMPY_DTYPE

from aclnn_bw._records import OPERATORS as RECORDS

# By name, in the order of the package's own enumeration.
OPERATORS = {name: getattr(import_module(f"operators.{record.one_call}"), name) for name, record in RECORDS.items()}

# The members of aclDataType that each takes on each product.
_NUMBERS = {dtype.name: number for number, dtype in NUMPY_DTYPE.items()}
TAKEN = {
    name: {product: tuple(_NUMBERS[dtype] for dtype in dtypes) for product, dtypes in operator.dtypes.items()}
    for name, operator in OPERATORS.items()
}

each_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
