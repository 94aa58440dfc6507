/* The same of the driver's functions. */
#include <cuda.h>

#include "checking.h"

#define NOWHERE 0xdead0000ul
static const char *PTX = ".version 7.0\n.target sm_80\n.address_size 64\n"
                         ".visible .entry fill(.param .u64 p, .param .u32 n){ .reg .u64 %d<2>; .reg .u32 %r<2>; ld.param.u64 %d1,[p];"
                         " ld.param.u32 %r1,[n]; st.global.u32 [%d1],%r1; ret; }\n";
static char host[1 << 16];

static void copy(CUdeviceptr d, CUdeviceptr e) {
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(d, host, 8192));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(d + 4000, host, 4096));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(d, host, (size_t)-1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, d, (size_t)-8));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(d, e, 1 << 20));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD(d, 0x10, 16));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, 0x10, 8));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, (CUdeviceptr)host + 64, 8));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(NULL, d, 16));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(NOWHERE, host, 8));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(d, (void *)NOWHERE, 8));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy(NOWHERE, d, 8));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpyDtoHAsync(host, d, 16, (CUstream)NOWHERE));
    GIVES(CUDA_SUCCESS, cuMemcpyDtoH(host, d, 0));
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = 64, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = d, .dstPitch = 64, .WidthInBytes = 16, .Height = (size_t)-1};
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
    rows.Height = 2;
    rows.dstPitch = (size_t)1 << 63;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
    rows.dstPitch = 64;
    rows.dstXInBytes = (size_t)-16;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&rows));
    rows.dstXInBytes = 0;
    rows.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuMemcpy2D(&rows));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(NULL));
}

static void fill(CUdeviceptr d) {
    unsigned int found[4];
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(d, 1, 1 << 20));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(d, 1, (size_t)-1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(d, 1, ((size_t)1 << 63) + 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(d, 1, ((size_t)1 << 62) + 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(0x10, 1, 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(d + 2, 1, 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32(d, 64, 1, 4, (size_t)-1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8(d, 0, 1, 4, 1 << 30));
    GIVES(CUDA_SUCCESS, cuMemsetD32(d, 0x01020304, 1024));
    GIVES(CUDA_SUCCESS, cuMemsetD2D16(d, 64, 7, 2, 2));
    GIVES(CUDA_SUCCESS, cuMemcpyDtoH(found, d, 16));
    HOLDS(found[0] == 0x00070007 && found[1] == 0x01020304);
    GIVES(CUDA_SUCCESS, cuMemcpyDtoH(found, d + 64, 16));
    HOLDS(found[0] == 0x00070007 && found[3] == 0x01020304);
}

static void allocate(void) {
    CUdeviceptr p;
    size_t pitch, size;
    void *q;
    CUarray array;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 16));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)-1));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocPitch(&p, &pitch, (size_t)1 << 40, (size_t)1 << 24, 4));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 16, 16, 3));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&p, (size_t)-1, CU_MEM_ATTACH_GLOBAL));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&q, (size_t)-1, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAllocHost(&q, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister((void *)NOWHERE, 4096, 0));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(NOWHERE));
    GIVES(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&p, &size, NOWHERE));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_CONTEXT, NOWHERE));
    CUDA_ARRAY_DESCRIPTOR wide = {.Width = (size_t)1 << 60, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuArrayCreate(&array, &wide));
    wide.NumChannels = 77;
    GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, &wide));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&array, NULL));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor(&wide, (CUarray)NOWHERE));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuArrayDestroy((CUarray)NOWHERE));
}

static void load(CUdeviceptr d) {
    CUmodule module;
    CUfunction function;
    CUlinkState link;
    void *image;
    size_t size;
    unsigned int n = 7;
    void *arguments[] = {&d, &n};
    GIVES(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&module, "garbage"));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, (void *)NOWHERE));
    GIVES(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nowhere/at.all"));
    GIVES(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, NULL));
    static uint64_t fat[8] = {0x00100001BA55ED50ull, (uint64_t)-8}, elf[8] = {0x00010102464C457Full};
    GIVES(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, fat));
    elf[5] = (uint64_t)-64;                 /* e_shoff */
    elf[7] = 0xFFFFFFFF00000000ull | 0xFFFF; /* numbers and sizes of its headers */
    GIVES(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, elf));
    GIVES(CUDA_SUCCESS, cuModuleLoadData(&module, PTX));
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nope"));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction(NULL, module, "fill"));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, NULL, "fill"));
    GIVES(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "fill"));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel((CUfunction)NOWHERE, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, (CUstream)NOWHERE, arguments, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 70000, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 1 << 20, NULL, arguments, NULL));
    GIVES(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    GIVES(CUDA_SUCCESS, cuModuleUnload(module));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, module, "fill"));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkComplete((CUlinkState)NOWHERE, &image, &size));
    GIVES(CUDA_SUCCESS, cuLinkCreate(0, NULL, NULL, &link));
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)PTX, (size_t)-1, "x", 0, NULL, NULL));
    GIVES(CUDA_SUCCESS, cuLinkDestroy(link));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(link));
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUdeviceptr d, e;
    const char *name;
    GIVES(CUDA_SUCCESS, cuInit(0));
    GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 77));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(NULL, 0));
    GIVES(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context, 0));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)NOWHERE));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy((CUcontext)NOWHERE));
    GIVES(CUDA_SUCCESS, cuCtxSetCurrent(context));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)0x77));
    GIVES(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
    GIVES(CUDA_SUCCESS, cuStreamDestroy(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, NULL));
    GIVES(CUDA_SUCCESS, cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, NULL));
    GIVES(CUDA_SUCCESS, cuMemAlloc(&d, 4096));
    GIVES(CUDA_SUCCESS, cuMemAlloc(&e, 4096));
    copy(d, e);
    fill(d);
    allocate();
    load(d);
    GIVES(CUDA_SUCCESS, cuMemFree(d));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree(d));
    GIVES(CUDA_SUCCESS, cuCtxSynchronize());
    return finish();
}
