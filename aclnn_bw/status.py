"""Status codes and the exception that carries them."""

from __future__ import annotations

from enum import IntEnum


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
    """A refusal: `.status` is its code, the text names the argument, the value seen and the rule.

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
