/* Where instructions and constant operands come from: gpa_lsp.execution.simulator.memory_path. */
#include "multiprocessor.h"
#include "sizes.h"

int gpa_open_recency(Recency *recency, int32_t numbers)
{
    size_t size = (size_t)numbers + 1;
    recency->before = malloc(multiply_sizes(size, sizeof *recency->before));
    recency->after = malloc(multiply_sizes(size, sizeof *recency->after));
    recency->oldest = recency->newest = -1;
    recency->count = 0;
    return recency->before != NULL && recency->after != NULL;
}

void gpa_close_recency(Recency *recency)
{
    free(recency->before);
    free(recency->after);
}

void gpa_forget_number(Recency *recency, int32_t number)
{
    int32_t before = recency->before[number], after = recency->after[number];
    if (before >= 0)
        recency->after[before] = after;
    else
        recency->oldest = after;
    if (after >= 0)
        recency->before[after] = before;
    else
        recency->newest = before;
    recency->count -= 1;
}

void gpa_append_number(Recency *recency, int32_t number)
{
    recency->before[number] = recency->newest;
    recency->after[number] = -1;
    if (recency->newest >= 0)
        recency->after[recency->newest] = number;
    else
        recency->oldest = number;
    recency->newest = number;
    recency->count += 1;
}

int gpa_open_supply(Supply *supply, const Model *model, int32_t lines, int32_t constants, int32_t far_constants)
{
    size_t ahead = (size_t)lines + (size_t)model->code_prefetch_lines + 1;
    int is_well = 1;
    memset(supply, 0, sizeof *supply);
    supply->lines = lines;
    for (int sub_core = 0; sub_core < SUB_CORES; ++sub_core) {
        supply->near[sub_core] = malloc(multiply_sizes((size_t)lines + 1, sizeof *supply->near[sub_core]));
        supply->is_near[sub_core] = calloc((size_t)lines + 1, 1);
        is_well = is_well && supply->near[sub_core] != NULL && supply->is_near[sub_core] != NULL;
        is_well = gpa_open_recency(&supply->recency[sub_core], lines) && is_well;
    }
    supply->shared = malloc(multiply_sizes(ahead, sizeof *supply->shared));
    supply->constants = malloc(multiply_sizes((size_t)constants + 1, sizeof *supply->constants));
    supply->far_constants = malloc(multiply_sizes((size_t)far_constants + 1, sizeof *supply->far_constants));
    supply->is_shared = calloc(ahead, 1);
    supply->is_constant = calloc((size_t)constants + 1, 1);
    supply->is_far_constant = calloc((size_t)far_constants + 1, 1);
    return is_well && supply->shared != NULL && supply->constants != NULL && supply->far_constants != NULL
           && supply->is_shared != NULL && supply->is_constant != NULL && supply->is_far_constant != NULL;
}

void gpa_close_supply(Supply *supply)
{
    for (int sub_core = 0; sub_core < SUB_CORES; ++sub_core) {
        free(supply->near[sub_core]);
        free(supply->is_near[sub_core]);
        gpa_close_recency(&supply->recency[sub_core]);
    }
    free(supply->shared);
    free(supply->constants);
    free(supply->far_constants);
    free(supply->is_shared);
    free(supply->is_constant);
    free(supply->is_far_constant);
}

/* When a line is in the SM; those behind it are fetched with it. */
static double fetch_shared(Supply *supply, const Model *model, int32_t line, double time)
{
    if (supply->is_shared[line])
        return supply->shared[line];
    double ready = time + (supply->any_shared ? model->code_cold_cycles : model->code_first_cycles);
    supply->any_shared = 1;
    supply->shared[line] = ready;
    supply->is_shared[line] = 1;
    for (int32_t ahead = 1; ahead <= (int32_t)model->code_prefetch_lines; ++ahead) {
        if (supply->is_shared[line + ahead])
            continue;
        supply->shared[line + ahead] = ready + ahead * model->code_stream_cycles;
        supply->is_shared[line + ahead] = 1;
    }
    return ready;
}

double gpa_fetch_code(Supply *supply, const Model *model, int sub_core, int32_t line, double time)
{
    Recency *recency = &supply->recency[sub_core];
    double *near = supply->near[sub_core];
    uint8_t *is_near = supply->is_near[sub_core];
    if (is_near[line]) {
        if (recency->newest != line) {
            gpa_forget_number(recency, line);
            gpa_append_number(recency, line);
        }
        return near[line];
    }
    double shared = fetch_shared(supply, model, line, time);
    int follows = line > 0 && is_near[line - 1];
    double ready = later(time + (follows ? model->code_stream_cycles : model->code_near_cycles), shared);
    near[line] = ready;
    is_near[line] = 1;
    gpa_append_number(recency, line);
    if (recency->count > model->code_cache_lines) {
        is_near[recency->oldest] = 0;
        gpa_forget_number(recency, recency->oldest);
    }
    return ready;
}

double gpa_read_constant(Supply *supply, const Model *model, int32_t line, int32_t far_line, double time)
{
    if (!supply->is_constant[line]) {
        if (!supply->is_far_constant[far_line]) {
            supply->far_constants[far_line] = time + model->constant_cold_cycles;
            supply->is_far_constant[far_line] = 1;
        }
        supply->constants[line] = later(supply->far_constants[far_line], time + model->constant_near_cycles);
        supply->is_constant[line] = 1;
    }
    return supply->constants[line];
}
