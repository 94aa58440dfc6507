/* What kernels written in C are made of: gpa_lsp.execution.emulator.compiled.translated calls these, one after the other, for the 32 lanes of each warp.

Functions that access memory say whether they could; what they cannot do the interpreter does. */
#ifndef GPA_LSP_PIECES_H
#define GPA_LSP_PIECES_H

#include "lane_operations.h"

#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline, unused))
#define LANES_OF(T) _Alignas(64) T
#define FOR_LANES(lane, mask) for (uint32_t left_##lane = (mask), lane; left_##lane && (lane = (uint32_t)__builtin_ctz(left_##lane), 1); left_##lane &= left_##lane - 1)

/* Each operation, of one lane. */
#define LANE(name, R, expression)                                                                                      \
    INLINE void lane_##name(uint8_t *out, const uint8_t *pa, const uint8_t *pb, const uint8_t *pc, int l, int64_t literal) \
    {                                                                                                                  \
        (void)pa, (void)pb, (void)pc, (void)literal;                                                                   \
        ((R *)out)[l] = (R)(expression);                                                                               \
    }
OPERATIONS(LANE)

INLINE uint32_t pack(const uint8_t *values)
{
    uint32_t found = 0;
    for (int part = 0; part < 4; ++part) {
        uint64_t eight;
        memcpy(&eight, values + 8 * part, 8);
        found |= (uint32_t)((eight * UINT64_C(0x0102040810204080)) >> 56) << (8 * part);
    }
    return found;
}

/* Which lanes write what they computed: all, where all that exist do, for shuffles may read what no thread stands for. */
INLINE uint32_t find_written(uint32_t mask, uint32_t exists)
{
    return (mask & exists) == exists ? UINT32_MAX : mask;
}

#define CHOOSE(T)                                                                                                      \
    for (int l = 0; l < LANES; ++l)                                                                                    \
        ((T *)to)[l] = mask >> l & 1 ? ((const T *)from)[l] : ((const T *)to)[l];

/* The values of some lanes. */
INLINE void choose(uint8_t *to, const uint8_t *from, int bytes, uint32_t mask)
{
    if (bytes == 1)
        CHOOSE(uint8_t)
    else if (bytes == 2)
        CHOOSE(uint16_t)
    else if (bytes == 4)
        CHOOSE(uint32_t)
    else
        CHOOSE(uint64_t)
}

/* Into the frame of a warp. */
INLINE void keep(uint8_t *to, const uint8_t *from, int bytes, uint32_t written)
{
    if (__builtin_expect(written == UINT32_MAX, 1))
        memcpy(to, from, (size_t)bytes * LANES);
    else
        choose(to, from, bytes, written);
}

/* --- accesses --- */

/* Where an instruction may access: from what its addresses count, and no further behind the base. */
typedef struct {
    uint8_t *memory;
    uint64_t base, furthest;
    int is_open;
} Site;

INLINE Site find_global(const Machine *machine, int64_t operation, int is_load, int is_generic, uint64_t bytes)
{
    Site site = {(uint8_t *)((uintptr_t)machine->arena - (uintptr_t)machine->arena_base), 0, 0, 0};
    int64_t region = machine->operations[operation].region;
    if (region < 0 || region >= machine->region_count || (uint64_t)machine->region_bytes[region] < bytes)
        return site;
    site.base = machine->region_bases[region];
    site.furthest = (uint64_t)machine->region_bytes[region] - bytes;
    site.is_open = machine->region_spaces[region] == SPACE_GLOBAL || (is_load && !is_generic);
    return site;
}

INLINE Site find_shared(const Machine *machine, uint64_t bytes)
{
    Site site = {machine->shared, 0, (uint64_t)machine->shared_bytes - bytes, (uint64_t)machine->shared_bytes >= bytes && !machine->checks};
    return site;
}

/* Whether two instructions were last seen in different regions. */
INLINE int are_apart(const Machine *machine, int64_t first, int64_t second)
{
    return machine->operations[first].region != machine->operations[second].region;
}

/* How the addresses of a warp lie: each so many bytes behind the one before, all at one place, or anyhow between two. */
enum { SCATTERED, IN_A_ROW, AT_ONE_PLACE };
typedef struct {
    uint64_t low, high, bits;
    int order;
} Lie;

RARE Lie find_scattered(const uint64_t *address, uint32_t mask)
{
    uint64_t first = mask ? address[__builtin_ctz(mask)] : 0;
    Lie lie = {first, first, 0, SCATTERED};
    for (int l = 0; l < LANES; ++l) {
        uint64_t found = mask >> l & 1 ? address[l] : first;
        lie.low = found < lie.low ? found : lie.low;
        lie.high = found > lie.high ? found : lie.high;
        lie.bits |= found;
    }
    return lie;
}

INLINE Lie find_lie(const uint64_t *address, uint64_t bytes, uint32_t mask)
{
    if (__builtin_expect(mask == UINT32_MAX, 1)) {
        uint64_t first = address[0], beside = 0, apart = 0;
        for (int l = 0; l < LANES; ++l) {
            beside |= address[l] - first - (uint64_t)l * bytes;
            apart |= address[l] ^ first;
        }
        if (beside == 0)
            return (Lie){first, first + (LANES - 1) * bytes, first, IN_A_ROW};
        if (apart == 0)
            return (Lie){first, first, first, AT_ONE_PLACE};
    }
    return find_scattered(address, mask);
}

INLINE void widen(uint64_t *to, const uint8_t *from)
{
    for (int l = 0; l < LANES; ++l)
        to[l] = ((const uint32_t *)from)[l];
}

INLINE int fits(Lie lie, Site site, uint64_t offset, uint64_t bytes)
{
    uint64_t low = lie.low + offset - site.base, high = lie.high + offset - site.base;
    return site.is_open & (high <= site.furthest) & (low <= high) & (((lie.bits | offset) & (bytes - 1)) == 0);
}

/* What lanes are about to access, where somebody asks. */
INLINE void mark(const Machine *machine, const uint64_t *address, Lie lie, uint64_t offset, uint64_t bytes, uint32_t mask, uint8_t marks)
{
    if (__builtin_expect(machine->word_marks == NULL, 0))
        return;
    marks = gpa_choose_marks(bytes, marks);
    if (lie.order == IN_A_ROW) {
        gpa_mark_words(machine, lie.low + offset, bytes * LANES, marks);
        gpa_mark_chunk(machine, lie.low + offset, marks);
        gpa_mark_chunk(machine, lie.high + offset, marks);
    } else
        gpa_mark_lanes(machine, address, offset, bytes, lie.order == AT_ONE_PLACE ? 1 : mask, marks);
}

#define SPREAD(T)                                                                                                      \
    {                                                                                                                  \
        T value;                                                                                                       \
        memcpy(&value, from + lie.low, sizeof value);                                                                  \
        for (int l = 0; l < LANES; ++l)                                                                                \
            ((T *)to)[l] = value;                                                                                      \
    }

#define GATHER(T)                                                                                                      \
    RARE void gather_##T(uint8_t *to, const uint8_t *from, const uint64_t *address, uint32_t mask)                     \
    {                                                                                                                  \
        if (mask == UINT32_MAX)                                                                                        \
            for (int l = 0; l < LANES; ++l)                                                                            \
                memcpy(to + l * (int)sizeof(T), from + address[l], sizeof(T));                                         \
        else                                                                                                           \
            FOR_LANES(l, mask)                                                                                         \
                memcpy(to + l * sizeof(T), from + address[l], sizeof(T));                                              \
    }                                                                                                                  \
    RARE void scatter_##T(uint8_t *to, const uint8_t *from, const uint64_t *address, uint32_t mask)                    \
    {                                                                                                                  \
        FOR_LANES(l, mask)                                                                                             \
            memcpy(to + address[l], from + l * sizeof(T), sizeof(T));                                                  \
    }
GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

/* One value of each lane, as wide as its register; from is what addresses count from, offset included. */
INLINE void load(uint8_t *to, const uint8_t *from, const uint64_t *address, Lie lie, int bytes, uint32_t mask)
{
    if (lie.order == IN_A_ROW) {
        memcpy(to, from + lie.low, (size_t)bytes * LANES);
    } else if (lie.order == AT_ONE_PLACE && mask == UINT32_MAX) {
        if (bytes == 4)
            SPREAD(uint32_t)
        else if (bytes == 8)
            SPREAD(uint64_t)
        else if (bytes == 2)
            SPREAD(uint16_t)
        else
            SPREAD(uint8_t)
    } else if (bytes == 4)
        gather_uint32_t(to, from, address, mask);
    else if (bytes == 8)
        gather_uint64_t(to, from, address, mask);
    else if (bytes == 2)
        gather_uint16_t(to, from, address, mask);
    else
        gather_uint8_t(to, from, address, mask);
}

INLINE void store(uint8_t *to, const uint8_t *from, const uint64_t *address, Lie lie, int bytes, uint32_t mask)
{
    if (lie.order == IN_A_ROW)
        memcpy(to + lie.low, from, (size_t)bytes * LANES);
    else if (bytes == 4)
        scatter_uint32_t(to, from, address, mask);
    else if (bytes == 8)
        scatter_uint64_t(to, from, address, mask);
    else if (bytes == 2)
        scatter_uint16_t(to, from, address, mask);
    else
        scatter_uint8_t(to, from, address, mask);
}

/* How one element of each of several lies. */
INLINE Lie part(Lie lie)
{
    lie.order = lie.order == AT_ONE_PLACE ? AT_ONE_PLACE : SCATTERED;
    return lie;
}

/* The same where registers are wider than what is in memory. */
RARE void load_narrow(uint8_t *to, const uint8_t *from, const uint64_t *address, int bytes, int register_bytes, int is_signed, uint32_t mask)
{
    int unused = 64 - 8 * bytes;
    FOR_LANES(l, mask)
    {
        uint64_t value = 0;
        memcpy(&value, from + address[l], (size_t)bytes);
        if (is_signed)
            value = (uint64_t)((int64_t)(value << unused) >> unused);
        memcpy(to + l * (uint32_t)register_bytes, &value, (size_t)register_bytes);
    }
}

RARE void store_narrow(uint8_t *to, const uint8_t *from, const uint64_t *address, int bytes, int register_bytes, uint32_t mask)
{
    FOR_LANES(l, mask)
        memcpy(to + address[l], from + l * (uint32_t)register_bytes, (size_t)bytes);
}

/* Quotients, or remainders, of integers; whether no divisor is 0. */
#define DIVIDE(name, T, by_minus_one)                                                                                  \
    RARE int name(uint8_t *to, const uint8_t *of, const uint8_t *by, int rest, uint32_t mask)                          \
    {                                                                                                                  \
        FOR_LANES(l, mask)                                                                                             \
            if (((const T *)by)[l] == 0)                                                                               \
                return 0;                                                                                              \
        FOR_LANES(l, mask)                                                                                             \
        {                                                                                                              \
            T first = ((const T *)of)[l], second = ((const T *)by)[l];                                                 \
            if (by_minus_one && second == (T)-1)                                                                       \
                ((T *)to)[l] = rest ? 0 : (T)(0 - (uint64_t)first);                                                    \
            else                                                                                                       \
                ((T *)to)[l] = rest ? (T)(first % second) : (T)(first / second);                                       \
        }                                                                                                              \
        return 1;                                                                                                      \
    }
DIVIDE(divide_u16, uint16_t, 0)
DIVIDE(divide_u32, uint32_t, 0)
DIVIDE(divide_u64, uint64_t, 0)
DIVIDE(divide_s16, int16_t, 1)
DIVIDE(divide_s32, int32_t, 1)
DIVIDE(divide_s64, int64_t, 1)

#endif
