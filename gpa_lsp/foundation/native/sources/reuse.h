/* Sums of reuse distances by instruction and array. */
#ifndef GPA_LSP_REUSE_H
#define GPA_LSP_REUSE_H

#include "recency.h"

#define OUTSIDE (-1)
#define RECENT 64

/* Arrays by address, ascending, and their numbers; a key is an instruction times `arrays` and the number of an array. */
typedef struct {
    const uint64_t *bases, *ends;
    const int64_t *numbers;
    int64_t count, arrays;
    Table places; /* of keys */
    int64_t *keys, *bins, *sums; /* sums: streaming references, and distances that are finite */
    int64_t groups, room;
    int64_t recent_keys[RECENT], recent_groups[RECENT];
} ReuseGroups;

int gpa_open_reuse(ReuseGroups *groups, const uint64_t *bases, const uint64_t *ends, const int64_t *numbers, int64_t count, int64_t arrays,
                   int64_t *keys, int64_t *bins, int64_t *sums, int64_t room);
void gpa_close_reuse(ReuseGroups *groups);
/* The number of the array that all bytes from the first to the last address lie in, or OUTSIDE; SEVERAL where they differ. */
int64_t gpa_find_array(const ReuseGroups *groups, uint64_t first, uint64_t last);
/* The group of an instruction and an array; FAILED without room or memory. */
int64_t gpa_find_group(ReuseGroups *groups, int64_t instruction, int64_t array);
/* So many references at one distance. */
void gpa_add_distance(ReuseGroups *groups, int64_t group, int64_t distance, int64_t count);

/* The lines of sets that were used once so far, and whose. Lines may be parts of what has a number: so many bits of theirs say which part. */
typedef struct {
    const LineSets *of;
    const ReuseGroups *groups;
    int part_bits, shift; /* an address over 2**shift is the number of a line */
    int32_t *arrays;      /* by set: of the first bytes of all its lines, or SEVERAL */
    int32_t *of_set;      /* by set: the group that used all its lines first and last, plus one; 0 where that is known by line */
    int32_t *fresh;       /* the same by line; 0 where there is none */
    uint8_t *has_fresh;   /* by set: some of its lines may be such */
} FreshLines;

int gpa_open_fresh(FreshLines *fresh, const LineSets *of, const ReuseGroups *groups, int part_bits, int shift);
void gpa_close_fresh(FreshLines *fresh);
/* What gpa_refer gave for a set, which may have its lines for itself. 0 where there is no room for a group. */
int gpa_sum_set(FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, int is_own, int64_t distance,
                const int64_t *distances);
/* The same line by line; shown are the distances that are counted, which are infinite where a line was dropped in between. */
int gpa_sum_lines(FreshLines *fresh, ReuseGroups *groups, int64_t instruction, int64_t set, const int64_t *distances, const int64_t *shown);

#endif
