// A dense switch in a loop: an indirect branch through a table, cases that fall through included.
// flags: --jump-table-density=1

extern "C" __global__ void switch_table(const unsigned char* programs, unsigned* out, int length)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned char* program = programs + i * length;
    unsigned a = i + 1;
    unsigned b = 0;
    for (int k = 0; k < length; ++k) {
        switch (program[k] & 15) {
        case 0: a += 17; break;
        case 1: b = a; break;
        case 2: a ^= b << 1;
        case 3: a *= 2654435761u; break;
        case 4: b += a >> 16; break;
        case 5: if (a & 1) { b = ~b; break; }
        case 6: a -= b; break;
        case 7: { const unsigned swapped = a; a = b; b = swapped; break; }
        case 8: a = a << 3 | a >> 29; break;
        case 9: k += 1; break;
        case 10: b = b * b + 1; break;
        case 11: a = __popc(b) + a; break;
        case 12: b ^= 0xdeadbeefu; break;
        case 13: out[i] = a + 2 * b; return;
        default: a += b + k; break;
        }
    }
    out[i] = a ^ b;
}
