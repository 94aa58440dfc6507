/* Which lines were referred to last. */
#include "recency.h"
#include "sizes.h"

/* Which sets have all their lines for themselves. */
static void find_own(Recency *recency)
{
    const LineSets *of = recency->of;
    int32_t nobody = (int32_t)(of->set_count + of->line_count);
    memset(recency->is_own, 1, (size_t)of->set_count);
    for (int64_t set = 0; set < of->set_count; ++set)
        for (int64_t place = of->set_firsts[set]; place < of->set_firsts[set + 1]; ++place) {
            int32_t *owner = &recency->owners[of->lines[place]];
            if (*owner == nobody)
                *owner = (int32_t)set;
            else if (*owner != set)
                recency->is_own[*owner] = recency->is_own[set] = 0;
        }
}

/* Without what says which sets have their lines for themselves. */
static int open_recency(Recency *recency, const LineSets *of, int64_t most, int has_singles)
{
    size_t sets = (size_t)of->set_count, lines = (size_t)of->line_count + 1;
    memset(recency, 0, sizeof *recency);
    recency->of = of;
    recency->starts = malloc(multiply_sizes(add_sizes(sets, lines), sizeof *recency->starts));
    recency->is_broken = calloc(add_sizes(sets, lines), 1);
    recency->owners = malloc(multiply_sizes(lines, sizeof *recency->owners));
    recency->ranks = calloc(lines, sizeof *recency->ranks);
    recency->is_own = has_singles ? NULL : malloc(sets + 1);
    if (recency->starts == NULL || recency->is_broken == NULL || recency->owners == NULL || recency->ranks == NULL ||
        (!has_singles && recency->is_own == NULL))
        return 0;
    memset(recency->starts, 0xFF, (has_singles ? sets + lines : sets) * sizeof *recency->starts);
    recency->starts[of->set_count + of->line_count] = -1; /* of a set that is never referred to */
    for (int64_t line = 0; line < of->line_count; ++line)
        recency->owners[line] = (int32_t)(of->set_count + of->line_count);
    return gpa_open_marks(&recency->marks, most);
}

int gpa_open_line_recency(Recency *recency, const LineSets *of, int64_t most, int has_singles)
{
    if (!open_recency(recency, of, most, has_singles))
        return 0;
    if (!has_singles)
        find_own(recency);
    return 1;
}

int gpa_open_own_recency(Recency *recency, const LineSets *of, int64_t most, const uint8_t *is_own)
{
    if (!open_recency(recency, of, most, 0))
        return 0;
    memcpy(recency->is_own, is_own, (size_t)of->set_count);
    return 1;
}

void gpa_close_line_recency(Recency *recency)
{
    gpa_close_marks(&recency->marks);
    free(recency->starts);
    free(recency->is_broken);
    free(recency->owners);
    free(recency->ranks);
    free(recency->is_own);
}

void gpa_begin_sequence(Recency *recency, int64_t references)
{
    recency->begin = recency->next;
    gpa_clear_marks(&recency->marks, references);
}

/* A set that is as it was left. */
static int64_t move(Recency *recency, int64_t set, int64_t count)
{
    int64_t before = recency->starts[set] - recency->begin, place = recency->next - recency->begin;
    int64_t others = place > before + count ? gpa_count_between(&recency->marks, before + count - 1, place - 1) : 0;
    gpa_change_run(&recency->marks, before, count, 0);
    return count - 1 + others;
}

/* A line on its way to another set, as the rank-th of so many; where the reference does not erase, these have their marks already. */
static int64_t take(Recency *recency, int64_t set, int64_t line, int64_t rank, int64_t count)
{
    int64_t owner = recency->owners[line], distance = INFINITE;
    if (recency->starts[owner] >= recency->begin) {
        int64_t before = recency->starts[owner] + recency->ranks[line] - recency->begin, last = recency->next + count - 1 - recency->begin;
        distance = gpa_count_between(&recency->marks, before, last) - (count - rank);
        gpa_change_run(&recency->marks, before, 1, 0);
    }
    if (owner != set)
        recency->is_broken[owner] = 1;
    return distance;
}

int64_t gpa_refer(Recency *recency, int64_t set, int is_erasing, int64_t *distances)
{
    int64_t count = gpa_count_lines(recency->of, set), distance = SEVERAL;
    int is_intact = gpa_is_intact(recency, set);
    if (is_intact)
        distance = move(recency, set, count);
    if (!is_erasing)
        gpa_change_run(&recency->marks, recency->next - recency->begin, count, 1);
    int has_lines = !is_intact && !gpa_is_own(recency, set);
    if (!is_intact && !has_lines)
        distance = INFINITE;
    if (has_lines)
        for (int64_t rank = 0; rank < count; ++rank)
            distances[rank] = take(recency, set, gpa_get_line(recency->of, set, rank), rank, count);
    if (has_lines)
        for (int64_t rank = 0; rank < count; ++rank) {
            int64_t line = gpa_get_line(recency->of, set, rank);
            recency->owners[line] = (int32_t)set;
            recency->ranks[line] = (int32_t)rank;
        }
    recency->starts[set] = is_erasing ? -1 : recency->next;
    recency->is_broken[set] = 0;
    recency->next += count;
    return distance;
}
