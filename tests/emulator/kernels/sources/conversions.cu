// Conversions between numbers: each rounding, saturation, NaN and infinity, narrow integers.

extern "C" __global__ void conversions(const float* in, const double* doubles, int* out, long long* wide, float* floats, double* double_out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = in[i];
    const double d = doubles[i];
    out[0 * n + i] = __float2int_rn(x);
    out[1 * n + i] = __float2int_rz(x);
    out[2 * n + i] = __float2int_rd(x);
    out[3 * n + i] = __float2int_ru(x);
    out[4 * n + i] = static_cast<int>(__float2uint_rn(x));
    out[5 * n + i] = __double2int_rn(d);
    out[6 * n + i] = static_cast<int>(__double2uint_rz(d));
    out[7 * n + i] = __float_as_int(x) >> 3;
    out[8 * n + i] = __double2hiint(d) ^ __double2loint(d);
    out[9 * n + i] = static_cast<short>(__float2int_rz(x)) + static_cast<unsigned char>(__float2int_rz(x));
    wide[0 * n + i] = __float2ll_rn(x);
    wide[1 * n + i] = __double2ll_rd(d);
    wide[2 * n + i] = static_cast<long long>(__double2ull_rn(d));
    wide[3 * n + i] = __double_as_longlong(d) / 2;
    floats[0 * n + i] = __double2float_rn(d);
    floats[1 * n + i] = __double2float_rz(d);
    floats[2 * n + i] = __double2float_ru(d);
    floats[3 * n + i] = __int2float_rn(__float_as_int(x));
    floats[4 * n + i] = __int2float_rd(__float_as_int(x));
    floats[5 * n + i] = __uint2float_rz(static_cast<unsigned>(__float_as_int(x)));
    floats[6 * n + i] = __ll2float_rn(__double_as_longlong(d));
    floats[7 * n + i] = __saturatef(x);
    floats[8 * n + i] = truncf(x);
    floats[9 * n + i] = rintf(x);
    floats[10 * n + i] = floorf(x);
    floats[11 * n + i] = ceilf(x);
    double_out[0 * n + i] = static_cast<double>(x);
    double_out[1 * n + i] = __ll2double_rn(__double_as_longlong(d));
    double_out[2 * n + i] = __ull2double_ru(static_cast<unsigned long long>(__double_as_longlong(d)));
    double_out[3 * n + i] = rint(d);
}
