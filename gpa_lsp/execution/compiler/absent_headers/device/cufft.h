/* In place of cuFFT's header where it is not installed: its types, which kernels work on. */
#ifndef GPA_LSP_CUFFT_H
#define GPA_LSP_CUFFT_H
#include <cuComplex.h>
typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
#endif
