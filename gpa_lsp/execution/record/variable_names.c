/* Reads the symbols of machine code, and the declarations of PTX. What an image says of itself is believed only inside of it. */
#include "variable_names.h"

#include <ctype.h>
#include <string.h>

enum { SYMBOL_TABLE = 2, OBJECT = 1, SECTION_BYTES = 64, SYMBOL_BYTES = 24 };

typedef void (*taker)(uint64_t owner, const char *name, size_t length);

static uint64_t read_number(const unsigned char *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

/* ---- machine code: ELF of 64 bits ---- */

struct section {
    uint64_t name, type, offset, size, link;
};
struct file {
    const unsigned char *data;
    size_t size;
    uint64_t sections, count;
};

static int read_section(const struct file *file, uint64_t number, struct section *out) {
    uint64_t at = file->sections + number * SECTION_BYTES;
    if (number >= file->count || at + SECTION_BYTES > file->size)
        return 0;
    const unsigned char *row = file->data + at;
    out->name = read_number(row, 4);
    out->type = read_number(row + 4, 4);
    out->offset = read_number(row + 24, 8);
    out->size = read_number(row + 32, 8);
    out->link = read_number(row + 40, 4);
    return out->offset <= file->size && out->size <= file->size - out->offset;
}

static const char *read_text(const struct file *file, const struct section *table, uint64_t offset, size_t *length) {
    if (offset >= table->size)
        return NULL;
    const char *text = (const char *)file->data + table->offset + offset;
    *length = strnlen(text, (size_t)(table->size - offset));
    return *length < table->size - offset ? text : NULL;
}

static int begins(const char *text, size_t length, const char *with) {
    size_t wanted = strlen(with);
    return length >= wanted && memcmp(text, with, wanted) == 0;
}

static void list_symbols(const struct file *file, const struct section *symbols, const struct section *names,
                         uint64_t owner, taker take) {
    struct section strings, place;
    if (!read_section(file, symbols->link, &strings))
        return;
    for (uint64_t at = 0; at + SYMBOL_BYTES <= symbols->size; at += SYMBOL_BYTES) {
        const unsigned char *row = file->data + symbols->offset + at;
        size_t length = 0, section_length = 0;
        if ((row[4] & 15) != OBJECT || read_number(row + 16, 8) == 0 ||
            !read_section(file, read_number(row + 6, 2), &place))
            continue;
        const char *name = read_text(file, &strings, read_number(row, 4), &length);
        const char *section = read_text(file, names, place.name, &section_length);
        if (name != NULL && section != NULL && length != 0 &&
            (begins(section, section_length, ".nv.global") || begins(section, section_length, ".nv.constant3")))
            take(owner, name, length);
    }
}

static void list_of_code(const unsigned char *image, size_t size, uint64_t owner, taker take) {
    if (size < 64)
        return;
    struct file file = {image, size, read_number(image + 40, 8), read_number(image + 60, 2)};
    struct section names, one;
    if (file.sections > size || !read_section(&file, read_number(image + 62, 2), &names))
        return;
    for (uint64_t number = 0; number < file.count; number++)
        if (read_section(&file, number, &one) && one.type == SYMBOL_TABLE)
            list_symbols(&file, &one, &names, owner, take);
}

/* ---- PTX: lines that begin with directives, one of them .global or .const ---- */

static const char *skip_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

static const char *skip_word(const char *at, const char *end) {
    while (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == '$' || *at == '.' || *at == '%'))
        at++;
    return at;
}

static void read_declaration(const char *at, const char *end, uint64_t owner, taker take) {
    int is_variable = 0;
    for (at = skip_blanks(at, end); at < end; at = skip_blanks(at, end)) {
        const char *begin = at;
        if (*at == '(') { /* of .attribute */
            const char *closed = memchr(at, ')', (size_t)(end - at));
            at = closed == NULL ? end : closed + 1;
            continue;
        }
        at = skip_word(at, end);
        size_t length = (size_t)(at - begin);
        if (length == 0)
            return;
        if ((length == 7 && memcmp(begin, ".global", 7) == 0) || (length == 6 && memcmp(begin, ".const", 6) == 0))
            is_variable = 1;
        else if ((length == 6 && memcmp(begin, ".param", 6) == 0) || (*begin != '.' && !is_variable))
            return;
        else if (*begin != '.' && !isdigit((unsigned char)*begin)) {
            const char *stop = memchr(at, ';', (size_t)(end - at)); /* another one may follow */
            take(owner, begin, length);
            at = stop == NULL ? end : stop + 1;
            is_variable = 0;
        }
    }
}

static void list_of_text(const char *text, size_t size, uint64_t owner, taker take) {
    const char *end = text + size;
    for (const char *line = text; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop == NULL ? end : stop;
        read_declaration(line, stop, owner, take);
        line = stop + 1;
    }
}

void list_variable_names(const unsigned char *image, size_t size, uint64_t owner, taker take) {
    if (size >= 4 && memcmp(image, "\177ELF", 4) == 0)
        list_of_code(image, size, owner, take);
    else if (size >= 4 && read_number(image, 4) != 0xBA55ED50u)
        list_of_text((const char *)image, strnlen((const char *)image, size), owner, take);
}
