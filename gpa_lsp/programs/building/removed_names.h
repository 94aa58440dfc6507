/* Names that CUDA has removed and that old programs use, included before everything else while gpa-lsp rebuilds one. */
#if defined(__CUDACC_VER_MAJOR__) && !defined(GPA_LSP_REMOVED_NAMES)
#define GPA_LSP_REMOVED_NAMES
#if __CUDACC_VER_MAJOR__ >= 12
#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
#define cudaThreadSetCacheConfig cudaDeviceSetCacheConfig
#define cudaThreadGetCacheConfig cudaDeviceGetCacheConfig
#define cudaThreadSetLimit cudaDeviceSetLimit
#define cudaThreadGetLimit cudaDeviceGetLimit
#endif
#if __CUDACC_VER_MAJOR__ >= 13
/* Members of cudaDeviceProp that are gone; programs print them. */
#define clockRate multiProcessorCount
#define memoryClockRate memoryBusWidth
#define deviceOverlap asyncEngineCount
#define kernelExecTimeoutEnabled integrated
#define computeMode integrated
#define singleToDoublePrecisionPerfRatio asyncEngineCount
#endif
#endif
