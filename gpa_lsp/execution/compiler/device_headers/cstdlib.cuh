// malloc, free, abs, memcpy, memset, printf and assert are known to the compiler.
#pragma once
#include <cstddef>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
