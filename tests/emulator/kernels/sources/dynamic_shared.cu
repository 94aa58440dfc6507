// One dynamic shared array carved into parts of several types, beside static ones.

extern "C" __global__ void dynamic_shared(const float* in, double* out, int elements)
{
    extern __shared__ __align__(8) unsigned char bytes[];
    __shared__ int order[32];
    double* doubles = reinterpret_cast<double*>(bytes);
    float* floats = reinterpret_cast<float*>(doubles + elements);
    unsigned char* marks = reinterpret_cast<unsigned char*>(floats + elements);
    const int t = threadIdx.x;
    for (int k = t; k < elements; k += blockDim.x) {
        floats[k] = in[blockIdx.x * elements + k];
        marks[k] = floats[k] > 0.0f;
    }
    if (t < 32)
        order[t] = (t * 5) % 32;
    __syncthreads();
    for (int k = t; k < elements; k += blockDim.x)
        doubles[k] = marks[(k + 1) % elements] ? floats[(k + order[k % 32]) % elements] : -1.0;
    __syncthreads();
    for (int k = t; k < elements; k += blockDim.x)
        out[blockIdx.x * elements + k] = doubles[elements - 1 - k];
}
