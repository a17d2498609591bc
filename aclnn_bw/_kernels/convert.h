/* Rows of float64 to float16 and bfloat16, rounded once, to nearest even.
 *
 * Through float32 rounded to nearest this would round twice. So float32 is rounded to odd first: the last bit of an
 * inexact value is set, on the value next below in magnitude. It then lies on the same side of every 16-bit number, and
 * of every tie between two of them, as the float64 did: float32 has at least two bits more than either type at every
 * magnitude, subnormal ones too. Beyond FLT_MAX comes FLT_MAX, which rounds to infinity, and a NaN stays a NaN.
 */
#ifndef ACLNN_BW_CONVERT_H
#define ACLNN_BW_CONVERT_H
#include <math.h>
#include "half.h"

static inline float aclnn_bw_round_to_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits = aclnn_bw_bits_of(nearest);
    bits -= fabs((double)nearest) > fabs(value);
    bits |= (double)nearest != value;
    return aclnn_bw_float_of(bits);
}

static inline void aclnn_bw_round_to_odd_row(float *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = aclnn_bw_round_to_odd(from[i]);
}
#endif
