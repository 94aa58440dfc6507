/* Warps that execute machine code: what the walk and Python share. gpa_lsp.execution.simulator.execution.lowering mirrors Source, Step and the
   codes, gpa_lsp.execution.simulator.execution.compiled_steps Bytes and Walk. */
#ifndef GPA_LSP_WALK_H
#define GPA_LSP_WALK_H

#include "columns.h"

#define ALL_LANES UINT32_C(0xFFFFFFFF)
#define GLOBAL_BASE INT64_C(0x700000000)
#define LOCAL_BASE (INT64_C(1) << 48)
#define SECTOR_SHIFT 5
#define WORD_STRIDE (4 * LANES)
#define BANK_BYTES 4
#define BANKED_BYTES (32 * BANK_BYTES) /* what a pass through shared memory moves at most */
#define MOST_SOURCES 4
#define MOST_PREDICATES 4
#define MOST_OUTS 2
#define MOST_TERMS 3
#define MOST_LANE_SECTORS 4

/* What Python does, nothing, and what gives results that nobody knows come before what is known. */
enum {
    OP_PYTHON, OP_SKIP, OP_OPAQUE, OP_MOVE, OP_MOVE_PAIR, OP_ADD, OP_ADD_CARRY, OP_ADD_PAIR, OP_MULTIPLY, OP_MULTIPLY_CARRY,
    OP_MULTIPLY_HIGH, OP_MULTIPLY_WIDE, OP_LOAD_ADDRESS, OP_LOGIC, OP_PREDICATE_LOGIC, OP_COMPARE, OP_COMPARE_PAIR, OP_SHIFT, OP_SELECT,
    OP_EXTREME, OP_PERMUTE, OP_FADD, OP_FMUL, OP_FFMA, OP_HADD, OP_HMUL, OP_HFMA, OP_LOAD, OP_STORE
};
enum { FILE_CONSTANT, FILE_REGISTER, FILE_UNIFORM };
enum { SIGN_NEGATIVE = 1, SIGN_INVERTED = 2, SIGN_BAR = 4 };
enum { PREDICATE_UNIFORM = 8, PREDICATE_NEGATED = 16 };
enum { COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE, COMPARE_EQ, COMPARE_NE };
enum { JOIN_AND, JOIN_OR, JOIN_XOR };
enum { IN_GLOBAL, IN_SHARED, IN_LOCAL, SPACES };
/* Of an operation, what its code needs to know beside its operands. */
enum {
    FLAG_SIGNED = 1, FLAG_LEFT = 2, FLAG_HIGH = 4, FLAG_WRAPS = 8, FLAG_WIDE = 16, FLAG_EXTENDED = 32, FLAG_AND = 64, FLAG_LOWER = 128,
    FLAG_ASKED = 256, FLAG_UPPER = 512
};

typedef struct {
    uint64_t value; /* of a constant */
    int32_t file, number;
    int32_t signs;
    uint32_t shift, mask; /* the part that is read; all of it where the mask is 0 */
    int32_t scale, is_pair; /* of a term of an address */
    int32_t upper_signs;    /* of the upper one of two halves, whose shift is the mask */
} Source;

typedef struct {
    Source sources[MOST_SOURCES];
    int64_t offset; /* of an address */
    int32_t code, flags;
    int32_t source_count, predicate_count, out_count;
    int32_t predicates[MOST_PREDICATES], outs[MOST_OUTS]; /* numbers with PREDICATE_ bits; -1 for an out that goes nowhere */
    int32_t target_file, target; /* -1 for none; of stores, the registers that are stored */
    int32_t tables[2];
    int32_t compare, join;
    int32_t guard, guard_resource; /* -1 without one */
    int32_t first_read, read_count, first_write, write_count, first_address, address_count; /* among the resources */
    int32_t space, width, words, sign_bytes;
} Step;

typedef struct {
    uint8_t *data;
    uint8_t *unknown; /* by word; NULL while all is known */
    int64_t size;
} Bytes;

typedef struct {
    uint32_t *registers, *uniform;
    uint8_t *predicates, *uniform_predicates;
    uint32_t *unknown;
    uint8_t *tainted;
    const int64_t *lengths;
    const int64_t *shared_starts;
    const int32_t *resources;
    int64_t warps, has_unknown, keeps_walks;
    int64_t shared_bytes, local_bytes;
    Bytes memories[SPACES];
    int64_t *access_warp, *access_place, *access_passes, *access_sectors;
    int64_t access_count, access_room;
    int64_t *sectors;
    int64_t sector_count, sector_room;
    int64_t *guard_warp, *guard_place, *guard_bits;
    int64_t guard_count, guard_room;
} Walk;

#endif
