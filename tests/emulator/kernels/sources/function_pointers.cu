// Calls through tables of functions and through virtual functions of objects the kernel makes.

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }
__device__ __noinline__ int multiply(int a, int b) { return a * b; }
__device__ __noinline__ int mix(int a, int b) { return a ^ (b << 3); }

using Operation = int (*)(int, int);
__device__ Operation const table[] = {add, subtract, multiply, mix};

struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual ~Shape() {}
};

struct Square : Shape {
    int side;
    __device__ Square(int s) : side(s) {}
    __device__ __noinline__ int area() const override { return side * side; }
};

struct Rectangle : Shape {
    int width, height;
    __device__ Rectangle(int w, int h) : width(w), height(h) {}
    __device__ __noinline__ int area() const override { return width * height; }
};

extern "C" __global__ void function_pointers(const int* in, int* out, int* areas)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = in[i];
    for (int step = 0; step < 6; ++step)
        x = table[(in[i] >> (2 * step)) & 3](x, step + 1);
    out[i] = x;
    Square square(i + 1);
    Rectangle rectangle(i, 3);
    const Shape* shape = in[i] & 1 ? static_cast<const Shape*>(&square) : static_cast<const Shape*>(&rectangle);
    areas[i] = shape->area();
}
