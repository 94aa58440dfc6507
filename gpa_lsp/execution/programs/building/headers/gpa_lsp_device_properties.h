/* Members of cudaDeviceProp that CUDA 13 has removed, behind its last: where the structure has what is reserved, which the emulator's
   runtime library fills with them (runtime/device.c has them in the same order). Releases before 13 have no member of that name. */
#ifndef GPA_LSP_DEVICE_PROPERTIES
#define GPA_LSP_DEVICE_PROPERTIES
#define hostNumaMultinodeIpcSupported                                                                                  \
    hostNumaMultinodeIpcSupported;                                                                                     \
    int clockRate, memoryClockRate, deviceOverlap, kernelExecTimeoutEnabled, computeMode,                              \
        singleToDoublePrecisionPerfRatio, cooperativeMultiDeviceLaunch, maxTexture1DLinear
#endif
