/* Which lines were referred to last, of one sequence after the other: a set whose lines nobody else took since is moved as one. */
#ifndef GPA_LSP_RECENCY_H
#define GPA_LSP_RECENCY_H

#include "distances.h"
#include "sets.h"

#define INFINITE (-1)
/* In place of the distance of all lines of a set: each has its own. */
#define SEVERAL (-3)

/* Places go on from sequence to sequence; those before `begin` are of earlier ones. Behind the sets there is one of each line by itself. */
typedef struct {
    const LineSets *of;
    MarkCounts marks;
    int64_t *starts;    /* by set: the place of its first line when it was referred to last; -1 where it is not known */
    uint8_t *is_broken; /* by set: another one took a line since */
    int32_t *owners;    /* by line: the set it was referred to by */
    int32_t *ranks;     /* by line: its rank in it */
    uint8_t *is_own;    /* by set: no line of it is in another one, so that nothing of it is known by line; NULL where lines are referred to alone */
    int64_t begin, next;
} Recency;

/* For sequences of so many references to lines at most, of sets alone or of single lines as well; 0 without memory. Closed in either case. */
int gpa_open_line_recency(Recency *recency, const LineSets *of, int64_t most, int has_singles);
/* The same of sets alone, of which it is known whether they have their lines for themselves; those need no lines. */
int gpa_open_own_recency(Recency *recency, const LineSets *of, int64_t most, const uint8_t *is_own);
void gpa_close_line_recency(Recency *recency);
/* A new sequence of so many references. */
void gpa_begin_sequence(Recency *recency, int64_t references);
static inline int64_t gpa_count_lines(const LineSets *of, int64_t set)
{
    return set < of->set_count ? of->set_firsts[set + 1] - of->set_firsts[set] : 1;
}
/* The number of a line of a set. */
static inline int64_t gpa_get_line(const LineSets *of, int64_t set, int64_t rank)
{
    return set < of->set_count ? of->lines[of->set_firsts[set] + rank] : set - of->set_count;
}
/* References to all lines of a set, in their order. Gives their distance, or SEVERAL and the distance of each. Those that erase have none.
 * Of a set that has its lines for itself they are one distance. */
int64_t gpa_refer(Recency *recency, int64_t set, int is_erasing, int64_t *distances);
/* Whether a set has its lines for itself, as far as is known. */
static inline int gpa_is_own(const Recency *recency, int64_t set)
{
    return recency->is_own != NULL && recency->is_own[set];
}
/* Whether a set was referred to in this sequence, and none of its lines by another one since. */
static inline int gpa_is_intact(const Recency *recency, int64_t set)
{
    return recency->starts[set] >= recency->begin && !recency->is_broken[set];
}

#endif
