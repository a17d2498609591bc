/* Where older releases have it. */
#include "aclnnop/aclnn_avgpool2d.h"
