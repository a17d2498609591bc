/* Where older releases have it. */
#include "aclnnop/aclnn_pad2d_backward.h"
