// Bytes and strings: lengths, words, the first place of a pattern, a checksum by table, letters turned.

__constant__ unsigned char vowels[] = "aeiou";

__device__ bool is_vowel(char letter)
{
    for (int k = 0; vowels[k]; ++k)
        if (letter == vowels[k])
            return true;
    return false;
}

extern "C" __global__ void byte_strings(char* text, const int* starts, const char* pattern, int pattern_length, int* lengths, int* words, int* places,
                                        unsigned* checksums)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    char* line = text + starts[i];
    int length = 0;
    int count = 0;
    bool in_word = false;
    unsigned checksum = 0xffffffffu;
    for (; line[length]; ++length) {
        const bool is_letter = line[length] != ' ';
        if (is_letter && !in_word)
            ++count;
        in_word = is_letter;
        checksum ^= static_cast<unsigned char>(line[length]);
        for (int bit = 0; bit < 8; ++bit)
            checksum = checksum >> 1 ^ (checksum & 1 ? 0xedb88320u : 0);
    }
    lengths[i] = length;
    words[i] = count;
    checksums[i] = ~checksum;
    places[i] = -1;
    for (int start = 0; start + pattern_length <= length; ++start) {
        int k = 0;
        while (k < pattern_length && line[start + k] == pattern[k])
            ++k;
        if (k == pattern_length) {
            places[i] = start;
            break;
        }
    }
    for (int k = 0; k < length; ++k)
        if (is_vowel(line[k]))
            line[k] = line[k] - 'a' + 'A';
}
