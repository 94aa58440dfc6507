/* Very many allocations: in a row, in the gaps of others, and with launches between them. */
#include <cuda.h>
#include <time.h>

#include "checking.h"

enum { COUNT = 200000, LAUNCHES = 20 };
static CUdeviceptr made[COUNT];
static const char *PTX = ".version 7.0\n.target sm_80\n.address_size 64\n"
                         ".visible .entry store(.param .u64 p){ .reg .u64 %d<2>; .reg .u32 %r<2>; ld.param.u64 %d1,[p]; mov.u32 %r1,7;"
                         " st.global.u32 [%d1],%r1; ret; }\n";

int main(void) {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    unsigned int seen;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuModuleLoadData(&module, PTX) ||
        cuModuleGetFunction(&function, module, "store"))
        return 1;
    for (int i = 0; i < COUNT; i++)
        GIVES(CUDA_SUCCESS, cuMemAlloc(&made[i], 256));
    for (int i = 0; i < COUNT; i += 2)
        GIVES(CUDA_SUCCESS, cuMemFree(made[i]));
    for (int i = COUNT - 2; i >= 0; i -= 2)
        GIVES(CUDA_SUCCESS, cuMemAlloc(&made[i], 1 + i % 300));
    for (int i = 1; i < COUNT; i++)
        HOLDS(made[i] != made[i - 1]);
    for (int i = 0; i < LAUNCHES; i++) {
        CUdeviceptr *one = &made[i * (COUNT / LAUNCHES)];
        void *arguments[] = {one};
        GIVES(CUDA_SUCCESS, cuMemFree(*one));
        GIVES(CUDA_SUCCESS, cuMemAlloc(one, 16));
        GIVES(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        GIVES(CUDA_SUCCESS, cuMemcpyDtoH(&seen, *one, 4));
        HOLDS(seen == 7);
    }
    for (int i = COUNT - 1; i >= 0; i--)
        GIVES(CUDA_SUCCESS, cuMemFree(made[i]));
    HOLDS(clock() / CLOCKS_PER_SEC < 20); /* of processor time: a fiftieth is enough */
    return finish();
}
