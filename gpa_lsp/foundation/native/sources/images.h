/* Bytes of device code that a program has in memory, as the driver takes it. Source: cuda-binary-utilities show what a fat binary has. */
#ifndef GPA_LSP_IMAGES_H
#define GPA_LSP_IMAGES_H

#include <elf.h>
#include <string.h>

#include "mapped_memory.h"

#define FATBIN_WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u
#define IMAGE_PAGE 4096u

/* The header is 16 bytes, its last 8 the size of what follows. */
struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
};

static inline size_t measure_fatbin(const struct fatbin *fatbin) { return add_sizes(fatbin->header_bytes, fatbin->bytes); }

/* The end of machine code is nowhere told: it is that of the last thing in it. */
static inline size_t measure_elf(const Elf64_Ehdr *head) {
    size_t end = add_sizes(head->e_shoff, (size_t)head->e_shnum * head->e_shentsize);
    size_t segments = add_sizes(head->e_phoff, (size_t)head->e_phnum * head->e_phentsize);
    const Elf64_Shdr *sections = (const Elf64_Shdr *)step_on(head, head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum && can_read(&sections[i], sizeof *sections); i++) {
        size_t section = add_sizes(sections[i].sh_offset, sections[i].sh_size);
        if (sections[i].sh_type != SHT_NOBITS && section > end)
            end = section;
    }
    return segments > end ? segments : end;
}

/* Of text that ends with a zero, without it. */
static inline size_t measure_text(const char *text) {
    size_t size = 0;
    for (size_t seen = 0; size < seen || can_read(text + size, 1); size++) {
        if (size == seen) /* a page at a time */
            seen += IMAGE_PAGE - (uintptr_t)(text + size) % IMAGE_PAGE;
        if (text[size] == 0)
            return size;
    }
    return 0;
}

/* Of a fat binary without its wrapper, of machine code, or of the text of PTX; 0 where it is not all in memory. */
static inline size_t measure_image(const void *image) {
    uint32_t magic = 0;
    if (can_read(image, sizeof(struct fatbin)))
        memcpy(&magic, image, sizeof magic);
    int is_elf = magic != 0 && memcmp(image, ELFMAG, SELFMAG) == 0 && can_read(image, sizeof(Elf64_Ehdr));
    size_t size = magic == FATBIN_MAGIC ? measure_fatbin(image) : is_elf ? measure_elf(image) : measure_text(image);
    return can_read(image, size) ? size : 0;
}

#endif
