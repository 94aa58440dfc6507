/* What operations on the lanes of one warp make of their operands: of the interpreter and of kernels written in C. */
#ifndef GPA_LSP_LANE_OPERATIONS_H
#define GPA_LSP_LANE_OPERATIONS_H

#include <math.h>

#include "warps.h"

#define SIGN32 UINT32_C(0x80000000)

static inline float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Every NaN of single precision has these bits. */
static inline float canon(float value)
{
    return value == value ? value : as_float(UINT32_C(0x7FFFFFFF));
}

static inline float flush(float value)
{
    uint32_t bits = bits_of(value);
    return (bits & UINT32_C(0x7F800000)) == 0 ? as_float(bits & SIGN32) : value;
}

static inline float least(float a, float b)
{
    float chosen = a != a ? b : b != b ? a : a < b ? a : b;
    return a == b ? as_float(bits_of(a) | bits_of(b)) : chosen;
}

static inline float greatest(float a, float b)
{
    float chosen = a != a ? b : b != b ? a : a > b ? a : b;
    return a == b ? as_float(bits_of(a) & bits_of(b)) : chosen;
}

/* A result; where the first operand is NaN, that one, made quiet: compilers swap the operands of sums and products. */
static inline double keep_nan(double first, double result)
{
    uint64_t bits = bits_of_double(first);
    return first == first ? result : as_double(bits | UINT64_C(1) << 51);
}

static inline double least_double(double a, double b)
{
    double chosen = b != b ? a : a != a ? b : a < b ? a : b;
    return a == b ? as_double(bits_of_double(a) | bits_of_double(b)) : chosen;
}

static inline double greatest_double(double a, double b)
{
    double chosen = b != b ? a : a != a ? b : a > b ? a : b;
    return a == b ? as_double(bits_of_double(a) & bits_of_double(b)) : chosen;
}

static inline uint64_t high_u64(uint64_t a, uint64_t b)
{
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}

static inline int64_t high_s64(int64_t a, int64_t b)
{
    return (int64_t)(((__int128)a * b) >> 64);
}

static inline uint32_t reverse_32(uint32_t value)
{
    value = (value >> 1 & UINT32_C(0x55555555)) | (value & UINT32_C(0x55555555)) << 1;
    value = (value >> 2 & UINT32_C(0x33333333)) | (value & UINT32_C(0x33333333)) << 2;
    value = (value >> 4 & UINT32_C(0x0F0F0F0F)) | (value & UINT32_C(0x0F0F0F0F)) << 4;
    return __builtin_bswap32(value);
}

static inline uint32_t combine_bits(uint32_t a, uint32_t b, uint32_t c, int64_t table)
{
    uint32_t found = 0;
    for (int term = 0; term < 8; ++term)
        if (table >> term & 1)
            found |= (term & 4 ? a : ~a) & (term & 2 ? b : ~b) & (term & 1 ? c : ~c);
    return found;
}

static inline uint32_t funnel(uint32_t low, uint32_t high, uint32_t amount, int left, int wraps)
{
    uint64_t both = (uint64_t)high << 32 | low;
    amount = wraps ? amount & 31 : amount < 32 ? amount : 32;
    return left ? (uint32_t)((both << amount) >> 32) : (uint32_t)(both >> amount);
}

/* Four bytes of eight; or of each, in eight bits, its sign. */
static inline uint32_t permute(uint32_t low, uint32_t high, uint32_t selector)
{
    uint64_t both = (uint64_t)high << 32 | low;
    uint32_t found = 0;
    for (int place = 0; place < 4; ++place) {
        uint32_t nibble = selector >> 4 * place & 15, byte = (uint32_t)(both >> 8 * (nibble & 7)) & 255;
        found |= (nibble & 8 ? (byte >> 7) * 255 : byte) << 8 * place;
    }
    return found;
}

/* To integers: clamped; what is not a number gives what is asked for. */
#define TO_INTEGER(name, R, least_value, above, greatest_integer, least_integer)                                       \
    static inline R name(double value, R nothing)                                                                      \
    {                                                                                                                  \
        return value != value ? nothing : value < (least_value) ? (least_integer) : value >= (above) ? (greatest_integer) : (R)value; \
    }
TO_INTEGER(to_s32, int32_t, -0x1p31, 0x1p31, INT32_MAX, INT32_MIN)
TO_INTEGER(to_u32, uint32_t, 0.0, 0x1p32, UINT32_MAX, 0)
TO_INTEGER(to_s64, int64_t, -0x1p63, 0x1p63, INT64_MAX, INT64_MIN)
TO_INTEGER(to_u64, uint64_t, 0.0, 0x1p64, UINT64_MAX, 0)
TO_INTEGER(to_s16, int16_t, -0x1p15, 0x1p15, INT16_MAX, INT16_MIN)
TO_INTEGER(to_u16, uint16_t, 0.0, 0x1p16, UINT16_MAX, 0)

/* clang-format off */
#define INTEGERS(X, suffix, U, S, bits) \
    X(add_u##suffix, U, a(U) + b(U)) X(sub_u##suffix, U, a(U) - b(U)) X(mul_u##suffix, U, (U)((uint64_t)a(U) * (uint64_t)b(U))) \
    X(mad_u##suffix, U, (U)((uint64_t)a(U) * (uint64_t)b(U) + (uint64_t)c(U))) \
    X(and_u##suffix, U, a(U) & b(U)) X(or_u##suffix, U, a(U) | b(U)) X(xor_u##suffix, U, a(U) ^ b(U)) X(not_u##suffix, U, ~a(U)) \
    X(neg_u##suffix, U, (U)0 - a(U)) X(abs_s##suffix, U, a(S) < 0 ? (U)0 - a(U) : a(U)) \
    X(shl_u##suffix, U, b(uint32_t) < bits ? a(U) << (b(uint32_t) & (bits - 1)) : 0) \
    X(shr_u##suffix, U, b(uint32_t) < bits ? a(U) >> (b(uint32_t) & (bits - 1)) : 0) \
    X(shr_s##suffix, S, a(S) >> (b(uint32_t) < bits ? b(uint32_t) : bits - 1)) \
    X(min_u##suffix, U, a(U) < b(U) ? a(U) : b(U)) X(max_u##suffix, U, a(U) > b(U) ? a(U) : b(U)) \
    X(min_s##suffix, S, a(S) < b(S) ? a(S) : b(S)) X(max_s##suffix, S, a(S) > b(S) ? a(S) : b(S)) \
    X(move_u##suffix, U, a(U)) X(select_u##suffix, U, c(uint8_t) ? a(U) : b(U))

#define COMPARISONS(X, kind, T) \
    X(eq_##kind, uint8_t, a(T) == b(T)) X(ne_##kind, uint8_t, a(T) != b(T)) X(lt_##kind, uint8_t, a(T) < b(T)) \
    X(le_##kind, uint8_t, a(T) <= b(T)) X(gt_##kind, uint8_t, a(T) > b(T)) X(ge_##kind, uint8_t, a(T) >= b(T))

#define FLOAT_COMPARISONS(X, kind, T, f) \
    X(eq_##kind, uint8_t, f(a(T)) == f(b(T))) X(ne_##kind, uint8_t, f(a(T)) < f(b(T)) || f(a(T)) > f(b(T))) \
    X(lt_##kind, uint8_t, f(a(T)) < f(b(T))) X(le_##kind, uint8_t, f(a(T)) <= f(b(T))) \
    X(gt_##kind, uint8_t, f(a(T)) > f(b(T))) X(ge_##kind, uint8_t, f(a(T)) >= f(b(T))) \
    X(equ_##kind, uint8_t, !(f(a(T)) < f(b(T)) || f(a(T)) > f(b(T)))) X(neu_##kind, uint8_t, f(a(T)) != f(b(T))) \
    X(ltu_##kind, uint8_t, !(f(a(T)) >= f(b(T)))) X(leu_##kind, uint8_t, !(f(a(T)) > f(b(T)))) \
    X(gtu_##kind, uint8_t, !(f(a(T)) <= f(b(T)))) X(geu_##kind, uint8_t, !(f(a(T)) < f(b(T)))) \
    X(num_##kind, uint8_t, a(T) == a(T) && b(T) == b(T)) X(nan_##kind, uint8_t, a(T) != a(T) || b(T) != b(T))

#define WIDENING(X, from, F, T) \
    X(mulwide_##from, T, (T)a(F) * (T)b(F)) X(madwide_##from, T, (T)a(F) * (T)b(F) + c(T))

#define CONVERSIONS(X, from, F) \
    X(cvt_##from##_8, uint8_t, a(F)) X(cvt_##from##_16, uint16_t, a(F)) X(cvt_##from##_32, uint32_t, a(F)) X(cvt_##from##_64, uint64_t, a(F)) \
    X(cvt_##from##_f32, float, (float)a(F)) X(cvt_##from##_f64, double, (double)a(F))

#define ROUNDINGS(X, mode, round_single, round_double) \
    X(cvt_f32_s32_##mode, int32_t, to_s32((double)round_single(a(float)), 0)) X(cvt_f32_u32_##mode, uint32_t, to_u32((double)round_single(a(float)), 0)) \
    X(cvt_f32_s64_##mode, int64_t, to_s64((double)round_single(a(float)), INT64_MIN)) \
    X(cvt_f32_u64_##mode, uint64_t, to_u64((double)round_single(a(float)), UINT64_C(1) << 63)) \
    X(cvt_f32_s16_##mode, int16_t, to_s16((double)round_single(a(float)), 0)) X(cvt_f32_u16_##mode, uint16_t, to_u16((double)round_single(a(float)), 0)) \
    X(cvt_f64_s32_##mode, int32_t, to_s32(round_double(a(double)), INT32_MIN)) \
    X(cvt_f64_u32_##mode, uint32_t, to_u32(round_double(a(double)), UINT32_C(1) << 31)) \
    X(cvt_f64_s64_##mode, int64_t, to_s64(round_double(a(double)), INT64_MIN)) \
    X(cvt_f64_u64_##mode, uint64_t, to_u64(round_double(a(double)), UINT64_C(1) << 63)) \
    X(cvt_f32_f32_##mode, float, canon(round_single(a(float)))) X(cvt_f64_f64_##mode, double, round_double(a(double)))

#define SAME(value) (value)

#define OPERATIONS(X) \
    INTEGERS(X, 16, uint16_t, int16_t, 16) INTEGERS(X, 32, uint32_t, int32_t, 32) INTEGERS(X, 64, uint64_t, int64_t, 64) \
    X(and_pred, uint8_t, a(uint8_t) & b(uint8_t)) X(or_pred, uint8_t, a(uint8_t) | b(uint8_t)) \
    X(xor_pred, uint8_t, a(uint8_t) ^ b(uint8_t)) X(not_pred, uint8_t, !a(uint8_t)) X(move_pred, uint8_t, a(uint8_t)) \
    COMPARISONS(X, u16, uint16_t) COMPARISONS(X, s16, int16_t) COMPARISONS(X, u32, uint32_t) COMPARISONS(X, s32, int32_t) \
    COMPARISONS(X, u64, uint64_t) COMPARISONS(X, s64, int64_t) \
    FLOAT_COMPARISONS(X, f32, float, SAME) FLOAT_COMPARISONS(X, f32_ftz, float, flush) FLOAT_COMPARISONS(X, f64, double, SAME) \
    WIDENING(X, u16, uint16_t, uint32_t) WIDENING(X, s16, int16_t, int32_t) WIDENING(X, u32, uint32_t, uint64_t) WIDENING(X, s32, int32_t, int64_t) \
    X(mulhi_u32, uint32_t, ((uint64_t)a(uint32_t) * b(uint32_t)) >> 32) X(mulhi_s32, int32_t, ((int64_t)a(int32_t) * b(int32_t)) >> 32) \
    X(mulhi_u64, uint64_t, high_u64(a(uint64_t), b(uint64_t))) X(mulhi_s64, int64_t, high_s64(a(int64_t), b(int64_t))) \
    X(madhi_u32, uint32_t, (((uint64_t)a(uint32_t) * b(uint32_t)) >> 32) + c(uint32_t)) \
    X(madhi_s32, int32_t, (int32_t)((uint32_t)(((int64_t)a(int32_t) * b(int32_t)) >> 32) + c(uint32_t))) \
    CONVERSIONS(X, u8, uint8_t) CONVERSIONS(X, s8, int8_t) CONVERSIONS(X, u16, uint16_t) CONVERSIONS(X, s16, int16_t) \
    CONVERSIONS(X, u32, uint32_t) CONVERSIONS(X, s32, int32_t) CONVERSIONS(X, u64, uint64_t) CONVERSIONS(X, s64, int64_t) \
    ROUNDINGS(X, rni, rintf, rint) ROUNDINGS(X, rzi, truncf, trunc) ROUNDINGS(X, rmi, floorf, floor) ROUNDINGS(X, rpi, ceilf, ceil) \
    X(cvt_f32_f64, double, (double)a(float)) X(cvt_f64_f32, float, canon((float)a(double))) \
    X(add_f32, float, canon(a(float) + b(float))) X(sub_f32, float, canon(a(float) - b(float))) \
    X(mul_f32, float, canon(a(float) * b(float))) X(div_f32, float, canon(a(float) / b(float))) \
    X(fma_f32, float, canon(fmaf(a(float), b(float), c(float)))) X(rcp_f32, float, canon(1.0f / a(float))) \
    X(sqrt_f32, float, canon(sqrtf(a(float)))) X(neg_f32, uint32_t, a(uint32_t) ^ SIGN32) X(abs_f32, uint32_t, a(uint32_t) & ~SIGN32) \
    X(min_f32, float, canon(least(a(float), b(float)))) X(max_f32, float, canon(greatest(a(float), b(float)))) \
    X(add_f32_ftz, float, canon(flush(flush(a(float)) + flush(b(float))))) X(sub_f32_ftz, float, canon(flush(flush(a(float)) - flush(b(float))))) \
    X(mul_f32_ftz, float, canon(flush(flush(a(float)) * flush(b(float))))) X(div_f32_ftz, float, canon(flush(flush(a(float)) / flush(b(float))))) \
    X(fma_f32_ftz, float, canon(flush(fmaf(flush(a(float)), flush(b(float)), flush(c(float)))))) \
    X(rcp_f32_ftz, float, canon(flush(1.0f / flush(a(float))))) X(sqrt_f32_ftz, float, canon(flush(sqrtf(flush(a(float)))))) \
    X(min_f32_ftz, float, canon(least(flush(a(float)), flush(b(float))))) X(max_f32_ftz, float, canon(greatest(flush(a(float)), flush(b(float))))) \
    X(add_f64, double, keep_nan(a(double), a(double) + b(double))) X(sub_f64, double, a(double) - b(double)) X(mul_f64, double, keep_nan(a(double), a(double) * b(double))) \
    X(div_f64, double, a(double) / b(double)) X(fma_f64, double, keep_nan(a(double), keep_nan(b(double), fma(a(double), b(double), c(double))))) \
    X(rcp_f64, double, 1.0 / a(double)) X(sqrt_f64, double, sqrt(a(double))) \
    X(neg_f64, uint64_t, a(uint64_t) ^ (UINT64_C(1) << 63)) X(abs_f64, uint64_t, a(uint64_t) & ~(UINT64_C(1) << 63)) \
    X(min_f64, double, least_double(a(double), b(double))) X(max_f64, double, greatest_double(a(double), b(double))) \
    X(popc_u32, uint32_t, __builtin_popcount(a(uint32_t))) X(popc_u64, uint32_t, __builtin_popcountll(a(uint64_t))) \
    X(clz_u32, uint32_t, a(uint32_t) ? __builtin_clz(a(uint32_t)) : 32) X(clz_u64, uint32_t, a(uint64_t) ? __builtin_clzll(a(uint64_t)) : 64) \
    X(brev_u32, uint32_t, reverse_32(a(uint32_t))) X(lop3_u32, uint32_t, combine_bits(a(uint32_t), b(uint32_t), c(uint32_t), literal)) \
    X(shf_u32, uint32_t, funnel(a(uint32_t), b(uint32_t), c(uint32_t), literal & 1, literal & 2)) \
    X(prmt_u32, uint32_t, permute(a(uint32_t), b(uint32_t), c(uint32_t))) \
    X(pack_u64, uint64_t, (uint64_t)b(uint32_t) << 32 | a(uint32_t)) X(pack_u32, uint32_t, (uint32_t)b(uint16_t) << 16 | a(uint16_t)) \
    X(low_u64, uint32_t, a(uint64_t)) X(high_u64, uint32_t, a(uint64_t) >> 32) X(low_u32, uint16_t, a(uint32_t)) X(high_u32, uint16_t, a(uint32_t) >> 16)
/* clang-format on */

#define a(T) (((const T *)pa)[l])
#define b(T) (((const T *)pb)[l])
#define c(T) (((const T *)pc)[l])

#endif
