/* Operations on the 32 lanes of one warp, each lane by itself or with those of its warp. */
#include "lane_operations.h"

/* clang-format off */
#define EXCHANGES(X) \
    X(shfl_up) X(shfl_down) X(shfl_bfly) X(shfl_idx) X(vote_ballot) X(vote_any) X(vote_all) X(activemask) X(multiply_matrices)
/* clang-format on */

#define NAME_CODE(name, R, expression) CODE_##name,
#define EXCHANGE_CODE(name) CODE_##name,
enum { OPERATIONS(NAME_CODE) EXCHANGES(EXCHANGE_CODE) CODES };
#define FIRST_EXCHANGE CODE_shfl_up

#define NAME_TEXT(name, R, expression) #name,
#define EXCHANGE_TEXT(name) #name,
static const char *const names[] = {OPERATIONS(NAME_TEXT) EXCHANGES(EXCHANGE_TEXT)};

/* The name of an operation, up to 31 letters and a zero, into 32 bytes; -1 where there are no more. */
EXPORT int64_t name_operation(int64_t code, uint8_t *name)
{
    if (code < 0 || code >= CODES)
        return FAILED;
    memset(name, 0, 32);
    strncpy((char *)name, names[code], 31);
    return 0;
}

uint32_t gpa_pack_predicate(const uint8_t *values)
{
    uint32_t found = 0;
    for (int part = 0; part < 4; ++part) {
        uint64_t eight;
        memcpy(&eight, values + 8 * part, 8);
        found |= (uint32_t)((eight * UINT64_C(0x0102040810204080)) >> 56) << (8 * part);
    }
    return found;
}

#define BLEND(T)                                                                                                       \
    for (int l = 0; l < LANES; ++l)                                                                                    \
        ((T *)to)[l] = mask >> l & 1 ? ((const T *)from)[l] : ((const T *)to)[l];

static void put(uint8_t *to, const uint8_t *from, int32_t bytes, uint32_t mask)
{
    if (mask == UINT32_MAX) {
        if (to != from)
            memcpy(to, from, (size_t)bytes * LANES);
        return;
    }
    switch (bytes) {
    case 1:
        BLEND(uint8_t)
        break;
    case 2:
        BLEND(uint16_t)
        break;
    case 4:
        BLEND(uint32_t)
        break;
    default:
        BLEND(uint64_t)
    }
}

/* What shfl gives: the lane each lane reads from, and whether that is within its segment. */
static void shuffle(const Operation *operation, const uint8_t *pa, const uint8_t *pb, const uint8_t *pc, uint32_t *values, uint8_t *inside)
{
    for (int lane = 0; lane < LANES; ++lane) {
        int distance = ((const uint32_t *)pb)[lane] & 31, clamp = ((const uint32_t *)pc)[lane] & 31;
        int segment = ((const uint32_t *)pc)[lane] >> 8 & 31, lowest = lane & segment, highest = lowest | (clamp & ~segment & 31);
        int from;
        switch (operation->code) {
        case CODE_shfl_up:
            from = lane - distance;
            inside[lane] = from >= highest;
            break;
        case CODE_shfl_down:
            from = lane + distance;
            inside[lane] = from <= highest;
            break;
        case CODE_shfl_bfly:
            from = lane ^ distance;
            inside[lane] = from <= highest;
            break;
        default:
            from = lowest | (distance & ~segment & 31);
            inside[lane] = from <= highest;
        }
        values[lane] = ((const uint32_t *)pa)[inside[lane] ? from & 31 : lane];
    }
}

static void combine(const Operation *operation, const uint8_t *pc, uint8_t *holds, uint8_t *opposite)
{
    for (int l = 0; l < LANES; ++l) {
        uint8_t held = holds[l], other = !held;
        switch (operation->combination) {
        case 1:
            holds[l] = held & pc[l];
            opposite[l] = other & pc[l];
            break;
        case 2:
            holds[l] = held | pc[l];
            opposite[l] = other | pc[l];
            break;
        case 3:
            holds[l] = held ^ pc[l];
            opposite[l] = other ^ pc[l];
            break;
        default:
            opposite[l] = other;
        }
    }
}

/* Operands: the layout of a product, and where the registers of D, A, B and C lie. */
static void multiply(const uint8_t *layout, const int32_t *places, uint8_t *frame, const uint8_t *constants, uint32_t written)
{
    uint32_t results[MOST_REGISTERS * LANES];
    int32_t count = gpa_multiply_matrices(layout, places, frame, constants, results);
    for (int32_t number = 0; number < count; ++number)
        put(frame + places[number], (const uint8_t *)(results + number * LANES), 4, written);
}

/* A result may have the place of an operand, but then lane by lane: no lane reads what another has written. */
#define RUN(name, R, expression)                                                                                       \
    case CODE_##name:                                                                                                  \
        _Pragma("GCC ivdep")                                                                                           \
        for (int l = 0; l < LANES; ++l)                                                                                \
            ((R *)out)[l] = (R)(expression);                                                                           \
        break;

void gpa_execute(const Operation *operation, uint8_t *frame, const uint8_t *constants, uint32_t mask, uint32_t exists, uint32_t lanes)
{
    const uint8_t *pa = gpa_operand(frame, constants, operation->a), *pb = gpa_operand(frame, constants, operation->b);
    const uint8_t *pc = gpa_operand(frame, constants, operation->c);
    _Alignas(64) uint8_t buffer[8 * LANES];
    _Alignas(64) uint8_t also[8 * LANES];
    /* What no thread stands for is computed as well: shuffles may read it. */
    int64_t literal = operation->literal;
    uint32_t written = (mask & exists) == exists ? UINT32_MAX : mask;
    int is_plain = written == UINT32_MAX && operation->combination < 0 && operation->result >= 0 && operation->code < FIRST_EXCHANGE;
    uint8_t *out = is_plain ? frame + operation->result : buffer;
    switch (operation->code) {
        OPERATIONS(RUN)
    case CODE_shfl_up:
    case CODE_shfl_down:
    case CODE_shfl_bfly:
    case CODE_shfl_idx:
        shuffle(operation, pa, pb, pc, (uint32_t *)out, also);
        break;
    case CODE_vote_ballot:
        for (int l = 0; l < LANES; ++l)
            ((uint32_t *)out)[l] = gpa_pack_predicate(pa) & mask;
        break;
    case CODE_vote_any:
        memset(out, (gpa_pack_predicate(pa) & mask) != 0, LANES);
        break;
    case CODE_vote_all:
        memset(out, (~gpa_pack_predicate(pa) & mask) == 0, LANES);
        break;
    case CODE_activemask:
        for (int l = 0; l < LANES; ++l)
            ((uint32_t *)out)[l] = lanes;
        break;
    case CODE_multiply_matrices:
        multiply(pa, (const int32_t *)pb, frame, constants, written);
        return;
    default:
        return;
    }
    if (operation->combination >= 0)
        combine(operation, pc, out, also);
    if (operation->result >= 0)
        put(frame + operation->result, out, operation->result_bytes, written);
    if (operation->other_result >= 0)
        put(frame + operation->other_result, also, 1, written);
}

int gpa_is_pure(int32_t code)
{
    return code < CODES;
}
