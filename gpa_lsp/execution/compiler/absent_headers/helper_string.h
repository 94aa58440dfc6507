/* In place of the helpers of NVIDIA's samples where a program does not bring them: words of the command line, and where files lie. */
#ifndef GPA_LSP_HELPER_STRING_H
#define GPA_LSP_HELPER_STRING_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif
#ifndef STRCASECMP
#define STRCASECMP strcasecmp
#define STRNCASECMP strncasecmp
#define STRCPY(to, size, from) strcpy(to, from)
#define FOPEN(stream, name, mode) ((stream) = fopen(name, mode))
#define FOPEN_FAIL(stream) ((stream) == NULL)
#define SPRINTF sprintf
#define SSCANF sscanf
#endif

/* What stands behind a word such as "n=" or "n" on the command line; NULL where it does not. */
static inline const char *gpa_lsp_find_word(int count, const char **words, const char *name) {
    size_t length = strlen(name);
    if (length > 0 && name[length - 1] == '=')
        length--;
    for (int i = 1; i < count; i++) {
        const char *word = words[i];
        while (*word == '-')
            word++;
        if (strncasecmp(word, name, length) == 0 && (word[length] == 0 || word[length] == '='))
            return word[length] == '=' ? word + length + 1 : word + length;
    }
    return NULL;
}
static inline bool checkCmdLineFlag(int count, const char **words, const char *name) {
    return gpa_lsp_find_word(count, words, name) != NULL;
}
static inline int getCmdLineArgumentInt(int count, const char **words, const char *name) {
    const char *found = gpa_lsp_find_word(count, words, name);
    return found == NULL ? 0 : atoi(found);
}
static inline float getCmdLineArgumentFloat(int count, const char **words, const char *name) {
    const char *found = gpa_lsp_find_word(count, words, name);
    return found == NULL ? 0.0f : (float)atof(found);
}
static inline bool getCmdLineArgumentString(int count, const char **words, const char *name, char **into) {
    const char *found = gpa_lsp_find_word(count, words, name);
    *into = const_cast<char *>(found);
    return found != NULL;
}
static inline char *sdkFindFilePath(const char *name, const char *program) {
    static const char *const folders[] = {"./", "./data/", "../data/", "../../data/", "../common/data/", "../../common/data/"};
    (void)program;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", folders[i], name);
        FILE *stream = fopen(path, "rb");
        if (stream != NULL) {
            fclose(stream);
            return strdup(path);
        }
    }
    return NULL;
}
#endif
