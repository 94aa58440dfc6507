/* What kernels do that a GPU ends them for: prints what the program is told by the launch, the wait for it, and later calls. */
#include <cuda.h>

#include "checking.h"

static const char *PTX =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry store(.param .u64 p){ .reg .u64 %d<2>; .reg .u32 %r<2>; ld.param.u64 %d1,[p]; mov.u32 %r1,%tid.x;"
    " st.global.u32 [%d1],%r1; ret; }\n"
    ".visible .entry load(.param .u64 p){ .reg .u64 %d<2>; .reg .u32 %r<2>; ld.param.u64 %d1,[p]; ld.u32 %r1,[%d1]; st.global.u32 [%d1],%r1; ret; }\n"
    ".visible .entry beyond(.param .u64 p){ .reg .u64 %d<3>; .reg .u32 %r<3>; .shared .b32 own[64]; ld.param.u64 %d1,[p]; cvt.u32.u64 %r1,%d1;"
    " mov.u32 %r2,own; add.u32 %r1,%r1,%r2; st.shared.u32 [%r1],%r2; ret; }\n"
    ".visible .entry stop(.param .u64 p){ trap; }\n";

int main(int count, char **words) {
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr d, e;
    unsigned int seen = 0;
    if (count != 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuModuleLoadData(&module, PTX) ||
        cuModuleGetFunction(&function, module, words[1]) || cuMemAlloc(&d, 4096) || cuMemsetD8(d, 0, 4096))
        return 1;
    char *end;
    CUdeviceptr place = (CUdeviceptr)strtoll(words[2], &end, 0) + (*end == 'd' ? d : 0);
    void *arguments[] = {&place};
    int launched = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
    int waited = cuCtxSynchronize(), copied = cuMemcpyDtoH(&seen, d, 4), allocated = cuMemAlloc(&e, 16);
    printf("%d %d %d %d\n", launched, waited, copied, allocated);
    return 0;
}
