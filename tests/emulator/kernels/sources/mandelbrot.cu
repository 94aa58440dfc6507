// Turns until a point escapes; a fixed order of operations makes the counts exact.
// flags: -fmad=false

extern "C" __global__ void mandelbrot(unsigned char* out, int width, int height, float left, float top, float step)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const float real = left + x * step;
    const float imaginary = top + y * step;
    float a = real;
    float b = imaginary;
    int turns = 0;
    while (turns < 100 && a * a + b * b <= 4.0f) {
        const float next = a * a - b * b + real;
        b = 2.0f * a * b + imaginary;
        a = next;
        ++turns;
    }
    out[y * width + x] = turns;
}
