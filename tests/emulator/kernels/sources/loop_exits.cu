// Loops with break, continue, goto, do-while and a loop in a loop that ends both.

extern "C" __global__ void loop_exits(const int* in, int* out, int width)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int* row = in + i * width;
    int sum = 0;
    for (int k = 0; k < width; ++k) {
        if (row[k] < 0)
            continue;
        if (row[k] > 90)
            break;
        sum += row[k];
    }
    int k = width;
    do {
        --k;
        sum ^= row[k];
    } while (k > 0 && row[k] % 4 != 1);
    for (int a = 0; a < width; ++a)
        for (int b = a + 1; b < width; ++b)
            if (row[a] + row[b] == 50) {
                sum += 1000 * a + b;
                goto found;
            }
    sum = -sum;
found:
    int turns = 0;
    while (true) {
        if (++turns > 40)
            break;
        sum += 7;
        if (sum % 16 == 3)
            break;
        if (sum % 16 == 5)
            continue;
        sum -= 2;
    }
    out[i] = sum;
}
