/* Ranges run with denormals and round-to-nearest whatever the caller has set; the caller's mode and flags come back. */
#ifndef ACLNN_BW_FLOATING_MODE_H
#define ACLNN_BW_FLOATING_MODE_H
#include <stdint.h>

#if defined(__SSE__)
#include <xmmintrin.h>
typedef unsigned int aclnn_bw_floating_mode;
static inline aclnn_bw_floating_mode aclnn_bw_enter_default_mode(void)
{
    unsigned int mode = _mm_getcsr();
    _mm_setcsr(0x1f80); /* all exceptions masked, nearest, no flush to zero */
    return mode;
}
static inline void aclnn_bw_leave_default_mode(aclnn_bw_floating_mode mode) { _mm_setcsr(mode); }

#elif defined(__aarch64__) && defined(__GNUC__)
typedef uint64_t aclnn_bw_floating_mode;
static inline aclnn_bw_floating_mode aclnn_bw_enter_default_mode(void)
{
    uint64_t mode, usual = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(usual));
    return mode;
}
static inline void aclnn_bw_leave_default_mode(aclnn_bw_floating_mode mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}

#else
#include <fenv.h>
typedef fenv_t aclnn_bw_floating_mode;
static inline aclnn_bw_floating_mode aclnn_bw_enter_default_mode(void)
{
    fenv_t mode;
    fegetenv(&mode);
    fesetenv(FE_DFL_ENV);
    return mode;
}
static inline void aclnn_bw_leave_default_mode(aclnn_bw_floating_mode mode) { fesetenv(&mode); }
#endif
#endif
