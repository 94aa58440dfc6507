// std::numeric_limits of the arithmetic types, for device code.
#pragma once
namespace std {
template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};
#define GPA_LSP_LIMITS(type, low, high, has_sign, whole, bits)                          \
  template <>                                                                           \
  struct numeric_limits<type> {                                                         \
    static constexpr bool is_specialized = true;                                        \
    static constexpr bool is_signed = has_sign;                                         \
    static constexpr bool is_integer = whole;                                           \
    static constexpr int digits = bits;                                                 \
    __host__ __device__ static constexpr type min() { return low; }                     \
    __host__ __device__ static constexpr type lowest() { return low; }                  \
    __host__ __device__ static constexpr type max() { return high; }                    \
  };
GPA_LSP_LIMITS(bool, false, true, false, true, 1)
GPA_LSP_LIMITS(char, -128, 127, true, true, 7)
GPA_LSP_LIMITS(signed char, -128, 127, true, true, 7)
GPA_LSP_LIMITS(unsigned char, 0, 255, false, true, 8)
GPA_LSP_LIMITS(short, -32768, 32767, true, true, 15)
GPA_LSP_LIMITS(unsigned short, 0, 65535, false, true, 16)
GPA_LSP_LIMITS(int, -2147483647 - 1, 2147483647, true, true, 31)
GPA_LSP_LIMITS(unsigned int, 0, 4294967295U, false, true, 32)
GPA_LSP_LIMITS(long, (long)(1UL << (8 * sizeof(long) - 1)), (long)(~0UL >> 1), true, true, 8 * sizeof(long) - 1)
GPA_LSP_LIMITS(unsigned long, 0, ~0UL, false, true, 8 * sizeof(long))
GPA_LSP_LIMITS(long long, -9223372036854775807LL - 1, 9223372036854775807LL, true, true, 63)
GPA_LSP_LIMITS(unsigned long long, 0, 18446744073709551615ULL, false, true, 64)
#undef GPA_LSP_LIMITS
#define GPA_LSP_FLOAT_LIMITS(type, least, most, step, bits, infinite, quiet)            \
  template <>                                                                           \
  struct numeric_limits<type> {                                                         \
    static constexpr bool is_specialized = true;                                        \
    static constexpr bool is_signed = true;                                             \
    static constexpr bool is_integer = false;                                           \
    static constexpr bool has_infinity = true;                                          \
    static constexpr bool has_quiet_NaN = true;                                         \
    static constexpr int digits = bits;                                                 \
    __host__ __device__ static constexpr type min() { return least; }                   \
    __host__ __device__ static constexpr type lowest() { return -most; }                \
    __host__ __device__ static constexpr type max() { return most; }                    \
    __host__ __device__ static constexpr type epsilon() { return step; }                \
    __device__ static type infinity() { return infinite; }           \
    __device__ static type quiet_NaN() { return quiet; }             \
  };
GPA_LSP_FLOAT_LIMITS(float, 1.175494351e-38f, 3.402823466e+38f, 1.192092896e-07f, 24, __int_as_float(0x7f800000), __int_as_float(0x7fffffff))
GPA_LSP_FLOAT_LIMITS(double, 2.2250738585072014e-308, 1.7976931348623158e+308, 2.2204460492503131e-16, 53, __longlong_as_double(0x7ff0000000000000LL),
                     __longlong_as_double(0x7fffffffffffffffLL))
#undef GPA_LSP_FLOAT_LIMITS
}  // namespace std
