/* In place of cuBLAS's header where it is not installed: the complex numbers that it brings along. */
#include <cuComplex.h>
