/* Prints what the environment makes of the library: aclInit, the product, phase 1, each with its message. */
#include "common.h"

static float given[OUTPUTS], made[INPUTS];

static void tell(const char *what, int status)
{
    const char *message = aclGetRecentErrMsg();
    printf("%s %d %s\n", what, status, message ? message : "-");
}

int main(int argc, char **argv)
{
    pool p;
    aclOpExecutor *executor = NULL;
    uint64_t size = 0;
    int status;
    if (argc > 1) /* without aclInit */
        tell(argv[1], 0);
    else
        tell("aclInit", aclInit(NULL));
    p = new_pool(given, made);
    printf("soc %s\n", aclrtGetSocName());
    status = plan(&p, &size, &executor);
    tell("phase1", status);
    if (status == 0)
        tell("phase2", aclnnAvgPool2dBackward(NULL, 0, executor, NULL));
    delete_pool(&p);
    return 0;
}
