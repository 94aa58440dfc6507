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
GPA_LSP_BOTH float2 fabs(float2 a) { return make_float2(fabsf(a.x), fabsf(a.y)); }
GPA_LSP_BOTH float3 fabs(float3 a) { return make_float3(fabsf(a.x), fabsf(a.y), fabsf(a.z)); }
GPA_LSP_BOTH float3 fminf(float3 a, float3 b) { return make_float3(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z)); }
GPA_LSP_BOTH float3 fmaxf(float3 a, float3 b) { return make_float3(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z)); }
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
