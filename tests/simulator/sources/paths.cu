// What ptxas does with control flow: copies of loop bodies with what remains, predicates in place of branches, calls, spilled registers.

extern "C" __global__ void straight(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] * n + 1;
}

extern "C" __global__ void unrolled(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
#pragma unroll 4
    for (int k = 0; k < n; k++) sum += in[(i + k) & 255] * k;
    out[i] = sum;
}

extern "C" __global__ void predicated(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = in[i];
    if (value > n) value = value * 3 - n;
    if (i & 1) out[i] = value;
}

extern "C" __global__ void nested(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int k = 0; k < (i & 7); k++) {
        for (int j = 0; j < k + n; j++) {
            if (in[(i * j + k) & 255] & 1) sum += j;
            else sum ^= k;
        }
    }
    out[i] = sum;
}

__device__ __noinline__ int triangle(const int* in, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++) sum += in[k & 255];
    return sum;
}

extern "C" __global__ void calling(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int first = triangle(in, (i & 3) + n);
    if (i % 3 == 0) first += triangle(in + 1, 2);
    out[i] = first;
}

extern "C" __global__ void leaving(const int* in, int* out, int n) {
    __shared__ int kept[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    kept[threadIdx.x] = in[i];
    if (in[i] & 4) {
        out[i] = -1;
        return;
    }
    out[i] = kept[threadIdx.x] + 2;
}

extern "C" __global__ void __launch_bounds__(64) spilling(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int held[12];
    for (int k = 0; k < 12; k++) held[k] = in[(i + k) & 255];
    for (int k = 0; k < n; k++) held[(k * 5 + i) % 12] += held[(k + i) % 12];
    int sum = 0;
    for (int k = 0; k < 12; k++) sum = sum * 3 + held[k];
    out[i] = sum;
}

extern "C" __global__ void meeting(const int* in, int* out, int n) {
    __shared__ int sums[64];
    int t = threadIdx.x;
    sums[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (t < half) sums[t] += sums[t + half];
        __syncthreads();
    }
    int lower = __shfl_down_sync(0xffffffff, sums[0] + t, 4);
    unsigned chosen = __ballot_sync(0xffffffff, lower & 1);
    if (t == 0) atomicAdd(&out[0], sums[0] + __popc(chosen) * n);
}

__device__ __noinline__ int climb(int n) { return n < 2 ? n : climb(n - 1) + climb(n - 2); }

extern "C" __global__ void recursing(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + climb(i % n);
}

extern "C" __global__ void dividing(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long large = in[i] * 123456789123LL + i, small = i % n + 3;
    out[i] = (int)(large / small) + (int)(large % small) + (in[(large / small) & 255] > 50);
}

typedef int (*Step)(const int*, int);

__device__ __noinline__ int take(const int* in, int k) { return in[k & 255]; }

__device__ __noinline__ int take_twice(const int* in, int k) { return in[k & 255] + in[in[k & 255] & 255]; }

__device__ Step steps[2] = {take, take_twice};

extern "C" __global__ void pointing(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % n) out[i] = steps[i & 1](in, i) + steps[blockIdx.x & 1](in, i + 1);
}

struct Shape {
    __device__ virtual int size(const int* in, int k) const = 0;
};

struct Line : Shape {
    __device__ int size(const int* in, int k) const override { return in[k & 255]; }
};

struct Area : Shape {
    __device__ int size(const int* in, int k) const override { return in[k & 255] * in[(k + 1) & 255]; }
};

extern "C" __global__ void dispatching(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Line line;
    Area area;
    const Shape* shape = in[i] > n ? (const Shape*)&line : (const Shape*)&area;
    out[i] = shape->size(in, i);
}
