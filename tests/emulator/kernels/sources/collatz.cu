// Loops whose length each lane finds out for itself: the steps of 3n + 1, and greatest common divisors.

extern "C" __global__ void collatz(const unsigned* in, unsigned* steps, unsigned* peaks, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = in[i];
    unsigned count = 0;
    unsigned peak = x;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        peak = max(peak, x);
        ++count;
    }
    steps[i] = count;
    peaks[i] = peak;
}

extern "C" __global__ void greatest_divisor(const unsigned* a, const unsigned* b, unsigned* out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = a[i];
    unsigned y = b[i];
    while (y != 0) {
        const unsigned rest = x % y;
        x = y;
        y = rest;
    }
    out[i] = x;
}
