// A tree of branches, each on another bit of the data, with work on both sides and after each join.

extern "C" __global__ void nested_ifs(const unsigned* in, unsigned* out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned x = in[i];
        unsigned path = 1;
        if (x & 1) {
            path = path * 3 + 1;
            if (x & 2) {
                path *= 5;
                if ((x & 12) == 4)
                    path ^= x >> 4;
                else if ((x & 12) == 8)
                    path += x * 7;
                else
                    path = out[i];
            } else {
                for (unsigned k = 0; k < (x >> 2 & 7); ++k)
                    path = path * 31 + k;
            }
            path += 11;
        } else if (x & 16) {
            path = x & 32 ? path - x : path + (x >> 3);
            if (x & 64)
                path = ~path;
        } else {
            unsigned k = x & 15;
            while (k) {
                if (k & 1)
                    path += k;
                else
                    path ^= k << 8;
                k >>= 1;
            }
        }
        if ((x % 5 == 0 && path & 1) || (x % 7 == 3 && !(path & 4)))
            path = path / 3 + 1000;
        out[i] = path;
    }
}
