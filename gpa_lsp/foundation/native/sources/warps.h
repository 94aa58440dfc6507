/* Warps that execute PTX: what the interpreter and Python share. gpa_lsp.execution.emulator.engine.compiled mirrors both structures. */
#ifndef GPA_LSP_WARPS_H
#define GPA_LSP_WARPS_H

#include "columns.h"

#define MOST_ELEMENTS 4

/* One operation. An operand is the place of its 32 values in the frame of a warp or, complemented, among the constants. */
typedef struct {
    int32_t code;
    int32_t instruction; /* static number */
    int32_t guard;       /* place of the predicate; -1 without one */
    int32_t is_negated;  /* the guard holds where it is false */
    int32_t counts;      /* executions by its guard are counted here */
    int32_t result_bytes;
    int32_t result, other_result; /* places; -1 for none */
    int32_t a, b, c;
    int32_t combination; /* of comparisons: 0 none, 1 and, 2 or, 3 xor, with c */
    int64_t literal;     /* what the operation makes of it */
    /* accesses */
    int32_t space, elements, element_bytes, address_bytes;
    int32_t is_strong, kind, is_float, is_signed;
    int32_t region;   /* the one its lanes went to last */
    int32_t is_known; /* reads of what nobody wrote were reported */
    int32_t places[2 * MOST_ELEMENTS]; /* of values, then of what else an atomic operation takes */
    int32_t register_bytes, number_of_execution;
} Operation;

/* A run of operations, and what comes behind it. */
typedef struct {
    int64_t first, last; /* operations, last excluded */
    int64_t size;        /* instructions */
    int32_t end;
    int32_t predicate, is_negated; /* of branches and guarded exits */
    int32_t instruction;
    int32_t taken, fallen;
    int32_t is_polling, enters_block; /* number of the block; -1 for none */
    int32_t number_of_execution, counts;
} Segment;

enum { END_PYTHON, END_JUMP, END_BRANCH, END_EXIT, END_GUARDED_EXIT, END_BARRIER, END_GATE };
enum { STOP_IDLE, STOP_STEP, STOP_END, STOP_TIME, STOP_BUDGET, STOP_METER, STOP_MEMORY, STOP_POLLED };
enum { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM };

typedef struct {
    int64_t count, room;
    uint32_t *warp, *instruction, *execution, *mask, *other; /* other: lanes that jumped */
    uint8_t *bytes, *space;
    uint64_t *addresses;
    int64_t address_count, address_room;
} Rows;

typedef struct Machine Machine;

/* Some operations of a segment, written in C. Executes them by the warps from one on, and says which warp they cannot be executed by: nothing has
changed but what it stored, which it would store again. The number of warps where all are done; -1 where none can. */
typedef int64_t (*Piece)(Machine *machine, int64_t from);

struct Machine {
    Operation *operations;
    const Segment *segments;
    int64_t segment_count;
    const uint8_t *constants;
    uint8_t *frames;
    int64_t frame_bytes;
    int64_t warps, blocks, threads;
    const int32_t *slots, *ranks; /* of warps: their block in the batch, and which one of it they are */
    const uint32_t *exists;
    uint32_t *live;
    uint8_t *live_lanes;
    int64_t live_count;
    /* the schedule */
    uint32_t *waiting;  /* [segment][warp] */
    int64_t *arrivals;  /* of waiting segments, by when they began to wait; 0 for none */
    int64_t arrived;
    uint32_t *current;
    int64_t segment, operation, phase;
    int64_t polled, patience, least_patience;
    int64_t has_parked, has_arrivals;
    int64_t clock, executed, most_executed, quantum;
    int64_t *warp_executions, *lane_executions, *guarded;
    /* memory */
    uint8_t *arena;
    uint64_t arena_base;
    const uint64_t *region_bases;
    const int64_t *region_bytes;
    const uint8_t *region_spaces;
    int64_t region_count;
    uint8_t *shared;
    int64_t shared_stride, shared_bytes;
    uint8_t *local;
    int64_t local_stride;
    uint8_t *word_marks, *chunk_marks; /* what was touched, by 4 and by 512 bytes of the arena; NULL where nobody asks */
    uint64_t *addresses; /* scratch, by lane */
    uint32_t *masks;     /* scratch, by warp */
    uint64_t *before;    /* scratch, MOST_ELEMENTS by lane */
    /* the trace */
    int64_t traces_accesses, traces_branches, traces_entries, left_out_spaces;
    int64_t held_bytes, metered_bytes, limit_bytes, is_cut_off, most_executions, is_cut;
    uint32_t *executions; /* [number][warp] */
    Rows accesses, branches, entries;
    /* checks of shared memory */
    int64_t checks, unit_shift;
    int64_t *writes, *reads, *others, *losers;
    uint8_t *is_written;
    int64_t units, unwritten, time;
    int64_t *block_since, *warp_since;
    int64_t warps_met, oldest, in_step, has_writes, has_reads, has_losers;
    /* what was written in C: by the operation it begins with, and where it ends */
    Piece *pieces;
    const int64_t *piece_ends;
    uint32_t *held;                            /* all lanes of the segment, while the interpreter does a piece for some warps */
    int64_t is_held, held_piece, held_warp;    /* then: the piece, and the warp that it goes on with */
    int64_t refusals;                          /* warps that pieces left to the interpreter */
    /* batches that follow in the same memory, each of as many blocks */
    const uint32_t *numbers;     /* of blocks in the grid */
    int64_t batch, last_batch;   /* the one at work, and the last one */
    int64_t most_patience, first_segment;
    int64_t zeroed_first, zeroed_bytes; /* of each frame */
    int64_t block_places[3];     /* of the block's index in the grid; -1 for none */
    int64_t grid[2];             /* its first two extents */
};

/* warp_operations.c: an operation on the lanes of one warp by themselves. */
void gpa_execute(const Operation *operation, uint8_t *frame, const uint8_t *constants, uint32_t mask, uint32_t exists, uint32_t lanes);
int gpa_is_pure(int32_t code);
uint32_t gpa_pack_predicate(const uint8_t *values);
/* matrices.c: D of a product, register by register; how many there are. */
#define MOST_REGISTERS 8
int32_t gpa_multiply_matrices(const uint8_t *described, const int32_t *places, const uint8_t *frame, const uint8_t *constants, uint32_t *results);
/* warp_memory.c: STOP_IDLE where it is done, else why not. */
int gpa_access(Machine *machine, Operation *operation);
int gpa_divide(Machine *machine, Operation *operation);
int gpa_note_branch(Machine *machine, const Segment *segment, const uint32_t *taken);
int gpa_note_entry(Machine *machine, const Segment *segment);
int gpa_find_room(Machine *machine);
void gpa_pass_barrier(Machine *machine);

static inline const uint8_t *gpa_operand(const uint8_t *frame, const uint8_t *constants, int32_t place)
{
    return place >= 0 ? frame + place : constants + ~place;
}

/* Marks, as gpa_lsp.execution.emulator.engine.marks has them. */
enum { MARK_READ = 1, MARK_WRITTEN = 2 };
#define WORD_SHIFT 2
#define CHUNK_SHIFT 9 /* no longer than what one instruction of a warp accesses in a row */

/* Of a word that an instruction writes in part the rest counts as read: what was there before still matters. */
static inline uint8_t gpa_choose_marks(uint64_t bytes, uint8_t marks)
{
    return bytes < 1u << WORD_SHIFT ? marks | MARK_READ : marks;
}

/* Looks before it writes: most of what is accessed was accessed before, and lanes often meet. */
static inline void gpa_add_mark(uint8_t *to, uint8_t marks)
{
    if ((*to & marks) != marks)
        *to |= marks;
}

/* Some bytes one behind the other were accessed. */
static inline __attribute__((always_inline)) void gpa_mark_words(const Machine *machine, uint64_t address, uint64_t bytes, uint8_t marks)
{
    uint64_t first = (address - machine->arena_base) >> WORD_SHIFT, last = (address - machine->arena_base + bytes - 1) >> WORD_SHIFT;
    uint8_t *words = machine->word_marks + first;
    if ((address | bytes) & ((1u << WORD_SHIFT) - 1))
        for (uint64_t word = 0; word <= last - first; ++word)
            words[word] |= marks;
    else
        for (uint64_t word = 0; word < bytes >> WORD_SHIFT; ++word)
            words[word] |= marks;
}
static inline void gpa_mark_chunk(const Machine *machine, uint64_t address, uint8_t marks)
{
    gpa_add_mark(machine->chunk_marks + ((address - machine->arena_base) >> CHUNK_SHIFT), marks);
}

/* What some lanes accessed, wherever it lies: each whole words, or a part of one. */
static inline __attribute__((always_inline)) void gpa_mark_lanes(const Machine *machine, const uint64_t *address, uint64_t offset,
                                                                 uint64_t bytes, uint32_t mask, uint8_t marks)
{
    for (int lane = 0; lane < LANES; ++lane)
        if (mask >> lane & 1) {
            uint64_t place = address[lane] + offset - machine->arena_base;
            for (uint64_t behind = 0; behind < bytes; behind += 1u << WORD_SHIFT)
                gpa_add_mark(machine->word_marks + ((place + behind) >> WORD_SHIFT), marks);
            gpa_add_mark(machine->chunk_marks + (place >> CHUNK_SHIFT), marks);
        }
}

/* Codes beyond those of lanes. */
enum { CODE_PYTHON = 1000, CODE_LOAD, CODE_STORE, CODE_ATOMIC, CODE_DIVIDE };

#endif
