"""Status and message: a check that fails returns its status and leaves one sentence for the calling thread."""
cdef extern from "refuse.h" nogil:
    int refuse "aclnn_bw_refuse" (int status, const char* format, ...) noexcept

cdef extern const char* recent_message "aclnn_bw_recent_message" () noexcept nogil
cdef extern void forget_message "aclnn_bw_forget_message" () noexcept nogil

ctypedef long long wide     # int64_t is `long` or `long long`, depending on the machine; "%lld" wants this one
