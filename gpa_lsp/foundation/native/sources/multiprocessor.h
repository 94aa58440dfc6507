/* One SM that is simulated: what its sources share. gpa_lsp.execution.simulator.streaming_multiprocessor mirrors Model and Row; what is done, and in which order, is
   that of gpa_lsp.execution.simulator.streaming_multiprocessor and its neighbours. */
#ifndef GPA_LSP_MULTIPROCESSOR_H
#define GPA_LSP_MULTIPROCESSOR_H

#include "columns.h"

#define SUB_CORES 4
#define UNITS 4
#define PIPES 8
#define SCOREBOARDS 6
#define REASONS 16
#define LINE_SECTORS 4
#define BANKS 2
#define OPERANDS 3
#define MOST_OPERAND_REGISTERS 4
#define REGISTERS 256
#define MOST_LEFT 63 /* of what a DEPBAR lets be outstanding */
#define SECTOR_BYTES 32.0

enum {
    FIXED, LOAD, STORE, SHARED, SPECIAL, BARRIER_WAIT, BRANCH, REDUCTION, MEMBAR_WAIT, ASYNC_FENCE, RETURN, CONVERGE, ATOMIC, KINDS
};
enum { LSU = 0 };
enum {
    SELECTED, NOT_SELECTED, WAIT, BRANCH_RESOLVING, NO_INSTRUCTIONS, LONG_SCOREBOARD, SHORT_SCOREBOARD, IMC_MISS, BARRIER, MEMBAR,
    MATH_PIPE_THROTTLE, LG_THROTTLE, MIO_THROTTLE, TEX_THROTTLE, DRAIN, DISPATCH_STALL
};

/* The fields of gpa_lsp.execution.simulator.machine.SmModel, in their order. */
typedef struct {
    double accept_cycles;
    double address_cycles;
    double l1_lines;
    double l1_tags_per_cycle;
    double l2_bytes_per_cycle;
    double l2_cycles;
    double l2_hit_ratio;
    double dram_bytes_per_cycle;
    double dram_cycles;
    double written_back_ratio;
    double atomic_cycles;
    double block_interval_cycles;
    double queue_cycles;
    double mio_queue_instructions;
    double lg_queue_instructions;
    double data_queue_cycles;
    double tag_queue_cycles;
    double read_cycles;
    double store_queue_instructions;
    double store_bytes_per_cycle;
    double store_retire_cycles;
    double read_backlog_cycles;
    double write_buffer_cycles;
    double miss_queue_instructions;
    double branch_resolve_cycles;
    double jump_fetch_cycles;
    double return_resolve_cycles;
    double converge_cycles;
    double exit_resolve_cycles;
    double barrier_open_cycles;
    double membar_cycles;
    double warp_start_cycles;
    double code_first_cycles;
    double code_cold_cycles;
    double code_prefetch_lines;
    double code_stream_cycles;
    double code_near_cycles;
    double code_cache_lines;
    double constant_cold_cycles;
    double constant_near_cycles;
    double warp_launch_cycles;
    double block_launch_cycles;
    double launch_cycles;
    double operand_window_cycles;
    double bank_registers_per_cycle;
} Model;

/* A row of gpa_lsp.execution.simulator.program.SassProgram. */
typedef struct {
    double interval, latency, stall;
    int32_t kind, pipe, unit, is_lg, throttle, is_long, uses_l1, is_shared_unit, is_async;
    int32_t gate; /* numbered from 0 */
    int32_t write_board, read_board, wait_mask, depbar_board, depbar_left;
    int32_t fetch_line;
    int32_t constant, far_constant; /* lines numbered from 0; -1 for none */
    int32_t first[OPERANDS], count[OPERANDS], kept[OPERANDS]; /* registers that are read, by the place of the operand; -1 for none */
} Row;

/* Values that come and go in their order. */
typedef struct {
    double *values;
    int64_t first, count, mask;
} Queue;

/* Numbers from the least to the most recently used one. */
typedef struct {
    int32_t *before, *after; /* of each number; -1 at the ends */
    int32_t oldest, newest, count;
} Recency;

/* The lines that L1 holds, each with the times at which its sectors are there. */
typedef struct {
    int64_t *lines;
    double (*ready)[LINE_SECTORS];
    uint8_t *known;  /* a bit per sector */
    int32_t *heads;  /* of chains of slots, by hash */
    int32_t *chains; /* the next slot of each */
    int64_t mask;
    int32_t room;
    Recency recency;
} LineCache;

typedef struct {
    Queue queues[SUB_CORES][UNITS], lg_queues[SUB_CORES], leaving, misses;
    double last[SUB_CORES][UNITS], unit_free[SUB_CORES][UNITS], shared_free[UNITS];
    double accept_free, data_free, tag_free, store_free, write_back_free, l2_free, dram_free, reads_until, hits_due;
    double l2_bytes, dram_bytes, tag_cycles, data_cycles;
    LineCache l1;
    Table l2_seen;
    Table held; /* sectors with atomic operations, until when: bits of a time, of which none is negative */
} Memory;

typedef struct {
    double *near[SUB_CORES];
    uint8_t *is_near[SUB_CORES];
    Recency recency[SUB_CORES];
    double *shared, *constants, *far_constants;
    uint8_t *is_shared, *is_constant, *is_far_constant;
    int32_t lines; /* of code */
    int any_shared;
} Supply;

/* gpa_lsp.execution.simulator.program.RegisterPorts. */
typedef struct {
    double free[BANKS];
    int64_t kept[OPERANDS][BANKS];
} Ports;

/* An execution of a block that has begun, as memory sees it. */
typedef struct {
    const int32_t *passes, *lines;
    const int64_t *first_sector, *last_sector, *sectors;
    const uint8_t *is_private;
} Columns;

typedef struct {
    double result, read, left;
} Passage;

/* All give 0 where there is no memory. */
int gpa_open_memory(Memory *memory, const Model *model);
void gpa_close_memory(Memory *memory);
int gpa_find_queue_room(Memory *memory, const Model *model, const Row *row, int sub_core, double time, double *until);
int gpa_enter_memory(Memory *memory, const Model *model, const Row *row, const Columns *columns, int64_t place, int64_t shift,
                     int sub_core, double time, Passage *passage);

int gpa_open_recency(Recency *recency, int32_t numbers);
void gpa_close_recency(Recency *recency);
void gpa_forget_number(Recency *recency, int32_t number);
void gpa_append_number(Recency *recency, int32_t number);

int gpa_open_supply(Supply *supply, const Model *model, int32_t lines, int32_t constants, int32_t far_constants);
void gpa_close_supply(Supply *supply);
double gpa_fetch_code(Supply *supply, const Model *model, int sub_core, int32_t line, double time);
double gpa_read_constant(Supply *supply, const Model *model, int32_t line, int32_t far_line, double time);

void gpa_open_ports(Ports *ports);
int gpa_try_read_operands(Ports *ports, const Model *model, const Row *row, int64_t warp, double time);

static inline double later(double one, double other)
{
    return other > one ? other : one;
}

#endif
