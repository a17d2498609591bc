/* Where older releases have it. */
#include "aclnnop/aclnn_upsample_nearest_exact1d.h"
