/* Where older releases have it. */
#include "aclnnop/aclnn_replication_pad2d.h"
