/* Where older releases have it. */
#include "aclnnop/aclnn_im2col.h"
