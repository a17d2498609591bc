/* Where older releases have it. */
#include "aclnnop/aclnn_max_pool2d_with_indices.h"
