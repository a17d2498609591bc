"""The thread-local message behind aclGetRecentErrMsg, and `refuse`, which writes it."""
cdef extern from *:
    """
    #include <stdarg.h>
    #include <stdio.h>
    static _Thread_local char aclnn_bw_message[1024];
    """
    ctypedef struct va_list:
        pass
    void va_start(va_list, const char*) nogil
    void va_end(va_list) nogil
    int vsnprintf(char*, size_t, const char*, va_list) nogil
    char[1024] message "aclnn_bw_message"


cdef int refuse(int status, const char* format, ...) noexcept nogil:
    """Leave the message for this thread; return the status, so that a check reads `return refuse(...)`."""
    cdef va_list arguments
    va_start(arguments, format)
    vsnprintf(message, sizeof(message), format, arguments)
    va_end(arguments)
    return status


cdef const char* recent_message() noexcept nogil:
    """This thread's last message; empty if there is none."""
    return message


cdef void forget_message() noexcept nogil:
    message[0] = 0
