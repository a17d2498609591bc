/* The prototype that lets gcc check every message's format against its arguments. */
#ifndef ACLNN_BW_REFUSE_H
#define ACLNN_BW_REFUSE_H
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int aclnn_bw_refuse(int status, const char *format, ...);
#endif
