"""Status codes and the exception that carries them."""

from __future__ import annotations

import re
from enum import IntEnum

# A message begins with what it is about: padding[1] = 3: ..., len(stride) = 3: ..., self.shape = ..., out is ...
# Not compiled before it is needed: import is to be quick.
_SUBJECT = r"(?:len\()?([A-Za-z_]\w*)(?:\)|\.\w+|\[[^]]*\])*(?: = |: | is | has | overlaps )"


class AclnnStatus(IntEnum):
    """The status codes of the C interface, with their names and numbers."""

    ACLNN_SUCCESS = 0
    ACLNN_ERR_PARAM_NULLPTR = 161001
    ACLNN_ERR_PARAM_INVALID = 161002
    ACLNN_ERR_RUNTIME_ERROR = 361001
    ACLNN_ERR_INNER = 561000
    ACLNN_ERR_INNER_INFERSHAPE_ERROR = 561001
    ACLNN_ERR_INNER_TILING_ERROR = 561002
    ACLNN_ERR_INNER_FIND_KERNEL_ERROR = 561003
    ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101
    ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR = 561102
    ACLNN_ERR_INNER_NULLPTR = 561103


class AclError(IntEnum):
    """The codes of the runtime's own calls (aclInit, aclrtMalloc, aclrtMemcpy, ...)."""

    ACL_SUCCESS = 0
    ACL_ERROR_INVALID_PARAM = 100000
    ACL_ERROR_REPEAT_INITIALIZE = 100002
    ACL_ERROR_REPEAT_FINALIZE = 100037
    ACL_ERROR_RT_PARAM_INVALID = 107000
    ACL_ERROR_RT_INVALID_DEVICEID = 107001
    ACL_ERROR_RT_CONTEXT_NULL = 107002
    ACL_ERROR_BAD_ALLOC = 200000


class AclnnError(ValueError):
    """A refusal: `.status` is its code, `.argument` names the argument; the text has the value seen and the rule.

    >>> import aclnn_bw
    >>> try:
    ...     aclnn_bw.aclrtSetSocName("Ascend920")
    ... except aclnn_bw.AclnnError as error:
    ...     print(int(error.status), error)
    161002 socName = 'Ascend920': must be one of 'Ascend910', 'Ascend310P', 'Ascend910B', 'Host'
    """

    status: AclnnStatus | AclError

    def __init__(self, status: AclnnStatus | AclError | int, message: str) -> None:
        """Carry the status (a number becomes its enum member) and the sentence."""
        try:
            self.status = AclnnStatus(status)
        except ValueError:
            self.status = AclError(status)
        super().__init__(self.status, message)

    def __str__(self) -> str:
        """Return the sentence alone."""
        return str(self.args[1])

    @property
    def argument(self) -> str | None:
        """The name of the argument that the refusal is about; None where it is about none.

        >>> import aclnn_bw
        >>> try:
        ...     aclnn_bw.avg_pool2d_backward(None, (1, 4, 4), 2)
        ... except aclnn_bw.AclnnError as error:
        ...     print(error.argument)
        grad_output
        """
        subject = re.match(_SUBJECT, str(self))
        return subject[1] if subject else None

    def _repr_html_(self) -> str:
        """Show status, number and sentence in a notebook."""
        from html import escape

        return f"<b>{escape(self.status.name)}</b> ({int(self.status)})<br>{escape(str(self))}"
