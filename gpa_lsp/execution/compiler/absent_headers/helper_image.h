/* In place of the helpers of NVIDIA's samples where a program does not bring them: pictures (PGM, PPM) and files of numbers. */
#ifndef GPA_LSP_HELPER_IMAGE_H
#define GPA_LSP_HELPER_IMAGE_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fstream>
#include <vector>
#include "helper_string.h"

/* What a channel of 8 bits is for a program that wants another type: fractions of 255 where it is no integer. */
template <class T> struct gpa_lsp_channel {
    static T read(unsigned char value) { return (T)value; }
    static unsigned char write(T value) { return (unsigned char)value; }
};
template <> struct gpa_lsp_channel<float> {
    static float read(unsigned char value) { return value / 255.0f; }
    static unsigned char write(float value) { return (unsigned char)(value * 255.0f); }
};

/* The next number of a header, behind blanks and comments; 0 where there is none. */
static inline unsigned int gpa_lsp_read_number(FILE *stream) {
    unsigned int number = 0;
    int letter = fgetc(stream);
    while (letter == '#' || letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r') {
        if (letter == '#')
            while (letter != '\n' && letter != EOF)
                letter = fgetc(stream);
        letter = fgetc(stream);
    }
    for (; letter >= '0' && letter <= '9'; letter = fgetc(stream))
        number = number * 10 + (unsigned int)(letter - '0');
    return number;
}
/* The bytes of a picture; `channels` is that of the file, 1 or 3. */
static inline bool gpa_lsp_load_picture(const char *name, std::vector<unsigned char> &bytes, unsigned int *width, unsigned int *height,
                                        unsigned int *channels) {
    FILE *stream = fopen(name, "rb");
    if (stream == NULL)
        return false;
    bool is_read = fgetc(stream) == 'P';
    int kind = fgetc(stream);
    is_read = is_read && (kind == '5' || kind == '6');
    if (is_read) {
        *channels = kind == '5' ? 1 : 3;
        *width = gpa_lsp_read_number(stream);
        *height = gpa_lsp_read_number(stream);
        gpa_lsp_read_number(stream); /* the largest value, and the blank behind it */
        bytes.resize((size_t)*width * *height * *channels);
        is_read = !bytes.empty() && fread(&bytes[0], 1, bytes.size(), stream) == bytes.size();
    }
    fclose(stream);
    return is_read;
}
static inline bool gpa_lsp_save_picture(const char *name, const std::vector<unsigned char> &bytes, unsigned int width, unsigned int height,
                                        unsigned int channels) {
    FILE *stream = fopen(name, "wb");
    if (stream == NULL)
        return false;
    fprintf(stream, "P%c\n%u\n%u\n255\n", channels == 1 ? '5' : '6', width, height);
    bool is_written = fwrite(&bytes[0], 1, bytes.size(), stream) == bytes.size();
    return fclose(stream) == 0 && is_written;
}
template <class T>
static inline bool gpa_lsp_load(const char *name, T **data, unsigned int *width, unsigned int *height, unsigned int held, unsigned int wanted) {
    std::vector<unsigned char> bytes;
    unsigned int channels = 0;
    if (!gpa_lsp_load_picture(name, bytes, width, height, &channels) || channels != held)
        return false;
    size_t count = (size_t)*width * *height;
    if (*data == NULL)
        *data = (T *)malloc(count * wanted * sizeof(T));
    for (size_t i = 0; i < count; i++)
        for (unsigned int channel = 0; channel < wanted; channel++)
            (*data)[i * wanted + channel] = channel < held ? gpa_lsp_channel<T>::read(bytes[i * held + channel]) : (T)0;
    return true;
}
template <class T>
static inline bool gpa_lsp_save(const char *name, const T *data, unsigned int width, unsigned int height, unsigned int held, unsigned int wanted) {
    size_t count = (size_t)width * height;
    std::vector<unsigned char> bytes(count * wanted);
    for (size_t i = 0; i < count; i++)
        for (unsigned int channel = 0; channel < wanted; channel++)
            bytes[i * wanted + channel] = gpa_lsp_channel<T>::write(data[i * held + channel]);
    return count > 0 && gpa_lsp_save_picture(name, bytes, width, height, wanted);
}
template <class T> static inline bool sdkLoadPGM(const char *name, T **data, unsigned int *width, unsigned int *height) {
    return gpa_lsp_load(name, data, width, height, 1, 1);
}
template <class T> static inline bool sdkLoadPPM4(const char *name, T **data, unsigned int *width, unsigned int *height) {
    return gpa_lsp_load(name, data, width, height, 3, 4);
}
static inline bool sdkLoadPPM4ub(const char *name, unsigned char **data, unsigned int *width, unsigned int *height) {
    return gpa_lsp_load(name, data, width, height, 3, 4);
}
static inline bool sdkLoadPPMub(const char *name, unsigned char **data, unsigned int *width, unsigned int *height) {
    return gpa_lsp_load(name, data, width, height, 3, 3);
}
template <class T> static inline bool sdkSavePGM(const char *name, T *data, unsigned int width, unsigned int height) {
    return gpa_lsp_save(name, data, width, height, 1, 1);
}
static inline bool sdkSavePPM4ub(const char *name, unsigned char *data, unsigned int width, unsigned int height) {
    return gpa_lsp_save(name, data, width, height, 4, 3);
}
static inline bool sdkSavePPMub(const char *name, unsigned char *data, unsigned int width, unsigned int height) {
    return gpa_lsp_save(name, data, width, height, 3, 3);
}

template <class T> static inline bool sdkReadFile(const char *name, T **data, unsigned int *count, bool) {
    std::ifstream stream(name);
    if (!stream.good())
        return false;
    std::vector<T> found;
    for (T value; stream >> value;)
        found.push_back(value);
    if (*data == NULL)
        *data = (T *)malloc((found.size() + 1) * sizeof(T));
    for (size_t i = 0; i < found.size(); i++)
        (*data)[i] = found[i];
    *count = (unsigned int)found.size();
    return true;
}
template <class T, class S>
static inline bool sdkWriteFile(const char *name, const T *data, unsigned int count, const S epsilon, bool, bool appends = false) {
    std::fstream stream(name, appends ? std::fstream::out | std::fstream::ate | std::fstream::app : std::fstream::out);
    if (!stream.good())
        return false;
    stream << "# " << epsilon << "\n";
    for (unsigned int i = 0; i < count; i++)
        stream << data[i] << ' ';
    stream << std::endl;
    return stream.good();
}
static inline void sdkDumpBin(void *data, unsigned int bytes, const char *name) {
    FILE *stream = fopen(name, "wb");
    if (stream != NULL) {
        fwrite(data, bytes, 1, stream);
        fclose(stream);
    }
}
template <class T, class S>
static inline bool compareData(const T *reference, const T *data, const unsigned int count, const S epsilon, const float share) {
    unsigned int wrong = 0;
    for (unsigned int i = 0; i < count; i++)
        wrong += !(fabs((double)reference[i] - (double)data[i]) <= (double)epsilon);
    return wrong <= share * count;
}
template <class T, class S>
static inline bool compareDataAsFloatThreshold(const T *reference, const T *data, const unsigned int count, const S epsilon, const float share) {
    return compareData(reference, data, count, epsilon, share);
}
static inline bool sdkCompareL2fe(const float *reference, const float *data, const unsigned int count, const float epsilon) {
    double error = 0, size = 0;
    for (unsigned int i = 0; i < count; i++) {
        error += ((double)reference[i] - data[i]) * ((double)reference[i] - data[i]);
        size += (double)reference[i] * reference[i];
    }
    return size > 0 && sqrt(error) / sqrt(size) < epsilon;
}
static inline bool sdkComparePPM(const char *name, const char *reference, const float epsilon, const float share, bool = false) {
    unsigned char *data = NULL, *wanted = NULL;
    unsigned int width = 0, height = 0, wanted_width = 0, wanted_height = 0;
    bool is_equal = sdkLoadPPM4ub(name, &data, &width, &height) && sdkLoadPPM4ub(reference, &wanted, &wanted_width, &wanted_height) &&
                    width == wanted_width && height == wanted_height && compareData(wanted, data, width * height * 4, epsilon, share);
    free(data);
    free(wanted);
    return is_equal;
}
#endif
