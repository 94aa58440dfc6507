/* Names that CUDA has removed and that old programs use, included before everything of the program while gpa-lsp rebuilds one. */
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
/* Bases and functions of Thrust that CUDA 13 removed. */
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ >= 13
namespace thrust {
template <typename Argument, typename Result> struct unary_function {
    typedef Argument argument_type;
    typedef Result result_type;
};
template <typename First, typename Second, typename Result> struct binary_function {
    typedef First first_argument_type;
    typedef Second second_argument_type;
    typedef Result result_type;
};
template <typename T = void> struct identity : unary_function<T, T> {
    __host__ __device__ const T &operator()(const T &value) const { return value; }
};
} // namespace thrust
#endif
/* Kernels that wait for kernels they have launched, which CUDA 12 removed; in what is included behind this, and on the host all the same. */
#if defined(__cplusplus) && defined(__CUDACC_RDC__) && __CUDACC_VER_MAJOR__ >= 12
#include <cuda_runtime.h>
static inline __host__ __device__ cudaError_t gpa_lsp_synchronize() {
#ifdef __CUDA_ARCH__
    return __cudaDeviceSynchronizeDeprecationAvoidance();
#else
    return cudaDeviceSynchronize();
#endif
}
#define cudaDeviceSynchronize gpa_lsp_synchronize
#endif
/* Functions of warps without a mask, which headers declare for GPUs before Volta: the lanes that came there together take part. */
#if defined(__cplusplus) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define GPA_LSP_SHUFFLE(name, second)                                                                                  \
    template <typename T> static __device__ __forceinline__ T name(T value, second, int width = 32) {                  \
        return name##_sync(__activemask(), value, lane, width);                                                        \
    }
GPA_LSP_SHUFFLE(__shfl, int lane)
GPA_LSP_SHUFFLE(__shfl_up, unsigned int lane)
GPA_LSP_SHUFFLE(__shfl_down, unsigned int lane)
GPA_LSP_SHUFFLE(__shfl_xor, int lane)
#undef GPA_LSP_SHUFFLE
#define GPA_LSP_VOTE(type, name)                                                                                       \
    static __device__ __forceinline__ type name(int predicate) { return name##_sync(__activemask(), predicate); }
GPA_LSP_VOTE(int, __any)
GPA_LSP_VOTE(int, __all)
GPA_LSP_VOTE(unsigned int, __ballot)
#undef GPA_LSP_VOTE
#endif
#endif
