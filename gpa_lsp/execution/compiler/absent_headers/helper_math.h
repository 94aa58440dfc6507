/* In place of the arithmetic of vectors of NVIDIA's samples where a program does not bring it. */
#ifndef GPA_LSP_HELPER_MATH_H
#define GPA_LSP_HELPER_MATH_H
#include <cuda_runtime.h>
#include <math.h>

#define GPA_LSP_BOTH inline __host__ __device__

/* clang-format off */
#define GPA_LSP_OPERATOR(V, T, S, op) \
    GPA_LSP_BOTH V operator op(V a, V b) { return GPA_LSP_EACH_##S(V, T, a, op b) } \
    GPA_LSP_BOTH V operator op(V a, T s) { return GPA_LSP_ONE_##S(V, a, op s) } \
    GPA_LSP_BOTH V operator op(T s, V b) { return GPA_LSP_REST_##S(V, s op, b) } \
    GPA_LSP_BOTH void operator op##=(V &a, V b) { a = a op b; } \
    GPA_LSP_BOTH void operator op##=(V &a, T s) { a = a op s; }
#define GPA_LSP_EACH_2(V, T, a, rest) make_##V(a.x rest.x, a.y rest.y);
#define GPA_LSP_EACH_3(V, T, a, rest) make_##V(a.x rest.x, a.y rest.y, a.z rest.z);
#define GPA_LSP_EACH_4(V, T, a, rest) make_##V(a.x rest.x, a.y rest.y, a.z rest.z, a.w rest.w);
#define GPA_LSP_ONE_2(V, a, rest) make_##V(a.x rest, a.y rest);
#define GPA_LSP_ONE_3(V, a, rest) make_##V(a.x rest, a.y rest, a.z rest);
#define GPA_LSP_ONE_4(V, a, rest) make_##V(a.x rest, a.y rest, a.z rest, a.w rest);
#define GPA_LSP_REST_2(V, first, b) make_##V(first b.x, first b.y);
#define GPA_LSP_REST_3(V, first, b) make_##V(first b.x, first b.y, first b.z);
#define GPA_LSP_REST_4(V, first, b) make_##V(first b.x, first b.y, first b.z, first b.w);
#define GPA_LSP_VECTOR(V, T, S) \
    GPA_LSP_OPERATOR(V, T, S, +) GPA_LSP_OPERATOR(V, T, S, -) GPA_LSP_OPERATOR(V, T, S, *) GPA_LSP_OPERATOR(V, T, S, /)
#define GPA_LSP_VECTORS(name, T) GPA_LSP_VECTOR(name##2, T, 2) GPA_LSP_VECTOR(name##3, T, 3) GPA_LSP_VECTOR(name##4, T, 4)
GPA_LSP_VECTORS(float, float)
GPA_LSP_VECTORS(int, int)
GPA_LSP_VECTORS(uint, unsigned int)

#define GPA_LSP_MAKE(name, T) \
    GPA_LSP_BOTH name##2 make_##name##2(T s) { return make_##name##2(s, s); } \
    GPA_LSP_BOTH name##2 make_##name##2(name##3 a) { return make_##name##2(a.x, a.y); } \
    GPA_LSP_BOTH name##3 make_##name##3(T s) { return make_##name##3(s, s, s); } \
    GPA_LSP_BOTH name##3 make_##name##3(name##2 a) { return make_##name##3(a.x, a.y, (T)0); } \
    GPA_LSP_BOTH name##3 make_##name##3(name##2 a, T z) { return make_##name##3(a.x, a.y, z); } \
    GPA_LSP_BOTH name##3 make_##name##3(name##4 a) { return make_##name##3(a.x, a.y, a.z); } \
    GPA_LSP_BOTH name##4 make_##name##4(T s) { return make_##name##4(s, s, s, s); } \
    GPA_LSP_BOTH name##4 make_##name##4(name##3 a) { return make_##name##4(a.x, a.y, a.z, (T)0); } \
    GPA_LSP_BOTH name##4 make_##name##4(name##3 a, T w) { return make_##name##4(a.x, a.y, a.z, w); }
GPA_LSP_MAKE(float, float)
GPA_LSP_MAKE(int, int)
GPA_LSP_MAKE(uint, unsigned int)

GPA_LSP_BOTH float2 make_float2(int2 a) { return make_float2((float)a.x, (float)a.y); }
GPA_LSP_BOTH float3 make_float3(int3 a) { return make_float3((float)a.x, (float)a.y, (float)a.z); }
GPA_LSP_BOTH float4 make_float4(int4 a) { return make_float4((float)a.x, (float)a.y, (float)a.z, (float)a.w); }
GPA_LSP_BOTH float2 operator-(float2 a) { return make_float2(-a.x, -a.y); }
GPA_LSP_BOTH float3 operator-(float3 a) { return make_float3(-a.x, -a.y, -a.z); }
GPA_LSP_BOTH float4 operator-(float4 a) { return make_float4(-a.x, -a.y, -a.z, -a.w); }
GPA_LSP_BOTH float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
GPA_LSP_BOTH float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
GPA_LSP_BOTH float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
GPA_LSP_BOTH float3 cross(float3 a, float3 b) { return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
GPA_LSP_BOTH float lerp(float a, float b, float t) { return a + t * (b - a); }
GPA_LSP_BOTH float clamp(float v, float low, float high) { return fmaxf(low, fminf(v, high)); }
GPA_LSP_BOTH int clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
GPA_LSP_BOTH unsigned int clamp(unsigned int v, unsigned int low, unsigned int high) { return v < low ? low : v > high ? high : v; }
GPA_LSP_BOTH float fracf(float v) { return v - floorf(v); }
GPA_LSP_BOTH float smoothstep(float a, float b, float v) { float t = clamp((v - a) / (b - a), 0.0f, 1.0f); return t * t * (3.0f - 2.0f * t); }
#define GPA_LSP_ALL_2(V, T, f, ...) make_##V(f(a.x __VA_ARGS__(x)), f(a.y __VA_ARGS__(y)))
#define GPA_LSP_ALL_3(V, T, f, ...) make_##V(f(a.x __VA_ARGS__(x)), f(a.y __VA_ARGS__(y)), f(a.z __VA_ARGS__(z)))
#define GPA_LSP_ALL_4(V, T, f, ...) make_##V(f(a.x __VA_ARGS__(x)), f(a.y __VA_ARGS__(y)), f(a.z __VA_ARGS__(z)), f(a.w __VA_ARGS__(w)))
#define GPA_LSP_NOTHING(c)
#define GPA_LSP_WITH_B(c) , b.c
#define GPA_LSP_WITH_BOUNDS(c) , low.c, high.c
#define GPA_LSP_WITH_NUMBERS(c) , low, high
#define GPA_LSP_CLAMP(V, T, S) \
    GPA_LSP_BOTH V clamp(V a, T low, T high) { return GPA_LSP_ALL_##S(V, T, clamp, GPA_LSP_WITH_NUMBERS); } \
    GPA_LSP_BOTH V clamp(V a, V low, V high) { return GPA_LSP_ALL_##S(V, T, clamp, GPA_LSP_WITH_BOUNDS); }
#define GPA_LSP_FLOATS(V, S) GPA_LSP_CLAMP(V, float, S) \
    GPA_LSP_BOTH V fabs(V a) { return GPA_LSP_ALL_##S(V, float, fabsf, GPA_LSP_NOTHING); } \
    GPA_LSP_BOTH V floorf(V a) { return GPA_LSP_ALL_##S(V, float, floorf, GPA_LSP_NOTHING); } \
    GPA_LSP_BOTH V fracf(V a) { return GPA_LSP_ALL_##S(V, float, fracf, GPA_LSP_NOTHING); } \
    GPA_LSP_BOTH V fminf(V a, V b) { return GPA_LSP_ALL_##S(V, float, fminf, GPA_LSP_WITH_B); } \
    GPA_LSP_BOTH V fmaxf(V a, V b) { return GPA_LSP_ALL_##S(V, float, fmaxf, GPA_LSP_WITH_B); } \
    GPA_LSP_BOTH V fmodf(V a, V b) { return GPA_LSP_ALL_##S(V, float, fmodf, GPA_LSP_WITH_B); }
#define GPA_LSP_INTEGERS(V, T, S) GPA_LSP_CLAMP(V, T, S) \
    GPA_LSP_BOTH V min(V a, V b) { return GPA_LSP_ALL_##S(V, T, min, GPA_LSP_WITH_B); } \
    GPA_LSP_BOTH V max(V a, V b) { return GPA_LSP_ALL_##S(V, T, max, GPA_LSP_WITH_B); }
GPA_LSP_FLOATS(float2, 2) GPA_LSP_FLOATS(float3, 3) GPA_LSP_FLOATS(float4, 4)
GPA_LSP_INTEGERS(int2, int, 2) GPA_LSP_INTEGERS(int3, int, 3) GPA_LSP_INTEGERS(int4, int, 4)
GPA_LSP_INTEGERS(uint2, unsigned int, 2) GPA_LSP_INTEGERS(uint3, unsigned int, 3) GPA_LSP_INTEGERS(uint4, unsigned int, 4)
GPA_LSP_BOTH int dot(int2 a, int2 b) { return a.x * b.x + a.y * b.y; }
GPA_LSP_BOTH int dot(int3 a, int3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
GPA_LSP_BOTH int dot(int4 a, int4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
#define GPA_LSP_LENGTHS(V) \
    GPA_LSP_BOTH float length(V a) { return sqrtf(dot(a, a)); } \
    GPA_LSP_BOTH V normalize(V a) { return a * (1.0f / sqrtf(dot(a, a))); } \
    GPA_LSP_BOTH V lerp(V a, V b, float t) { return a + t * (b - a); }
GPA_LSP_LENGTHS(float2)
GPA_LSP_LENGTHS(float3)
GPA_LSP_LENGTHS(float4)
GPA_LSP_BOTH float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
/* clang-format on */
#undef GPA_LSP_BOTH
#endif
