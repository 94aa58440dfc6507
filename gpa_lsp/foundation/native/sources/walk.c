/* Steps of gpa_lsp.execution.simulator.execution, one after the other for some warps, until one that Python has to do. */
#include "walk.h"

#include <math.h>

typedef struct {
    uint32_t lanes[LANES];
} Word;

typedef struct {
    uint64_t lanes[LANES];
} Pair;

static uint32_t pack(const uint8_t *marks)
{
    uint32_t bits = 0;
    for (int part = 0; part < LANES / 8; ++part) {
        uint64_t eight;
        memcpy(&eight, marks + 8 * part, sizeof eight);
        bits |= (uint32_t)((eight * UINT64_C(0x0102040810204080)) >> 56) << (8 * part);
    }
    return bits;
}

static void unpack(uint32_t bits, uint8_t *marks)
{
    for (int lane = 0; lane < LANES; ++lane)
        marks[lane] = bits >> lane & 1;
}

static uint32_t read_predicate(const Walk *walk, int32_t predicate, int64_t warp)
{
    int64_t number = predicate & 7;
    uint32_t bits;
    if (predicate & PREDICATE_UNIFORM)
        bits = walk->uniform_predicates[number * walk->warps + warp] ? ALL_LANES : 0;
    else
        bits = pack(walk->predicates + (number * walk->warps + warp) * LANES);
    return predicate & PREDICATE_NEGATED ? ~bits : bits;
}

static void write_predicate(Walk *walk, int32_t predicate, int64_t warp, uint32_t bits, uint32_t value)
{
    if (predicate < 0 || bits == 0)
        return;
    int64_t number = predicate & 7;
    if (predicate & PREDICATE_UNIFORM) {
        walk->uniform_predicates[number * walk->warps + warp] = value & 1;
        return;
    }
    uint8_t *marks = walk->predicates + (number * walk->warps + warp) * LANES;
    if (bits != ALL_LANES)
        value = (value & bits) | (pack(marks) & ~bits);
    unpack(value, marks);
}

static const uint32_t *find_register(const Walk *walk, int64_t number, int64_t warp)
{
    return walk->registers + (number * walk->warps + warp) * LANES;
}

static Word read_bits(const Walk *walk, int32_t file, int64_t number, uint64_t value, int64_t warp)
{
    Word word;
    if (file == FILE_REGISTER) {
        memcpy(word.lanes, find_register(walk, number, warp), sizeof word.lanes);
        return word;
    }
    uint32_t one = file == FILE_UNIFORM ? walk->uniform[number * walk->warps + warp] : (uint32_t)value;
    for (int lane = 0; lane < LANES; ++lane)
        word.lanes[lane] = one;
    return word;
}

static Word read_word(const Walk *walk, const Source *source, int64_t warp)
{
    Word word = read_bits(walk, source->file, source->number, source->value, warp);
    if (source->mask != 0)
        for (int lane = 0; lane < LANES; ++lane)
            word.lanes[lane] = (word.lanes[lane] >> source->shift) & source->mask;
    if (source->signs & SIGN_BAR)
        for (int lane = 0; lane < LANES; ++lane)
            word.lanes[lane] = (int32_t)word.lanes[lane] < 0 ? -word.lanes[lane] : word.lanes[lane];
    if (source->signs & SIGN_NEGATIVE)
        for (int lane = 0; lane < LANES; ++lane)
            word.lanes[lane] = -word.lanes[lane];
    else if (source->signs & SIGN_INVERTED)
        for (int lane = 0; lane < LANES; ++lane)
            word.lanes[lane] = ~word.lanes[lane];
    return word;
}

/* A summand, so that sums have their carry. */
static Pair read_carried(const Walk *walk, const Source *source, int64_t warp)
{
    Word word = read_bits(walk, source->file, source->number, source->value, warp);
    Pair pair;
    for (int lane = 0; lane < LANES; ++lane) {
        uint64_t one = word.lanes[lane];
        if (source->signs & SIGN_NEGATIVE)
            one = (uint64_t)(uint32_t)~word.lanes[lane] + 1;
        else if (source->signs & SIGN_INVERTED)
            one = (uint32_t)~word.lanes[lane];
        pair.lanes[lane] = one;
    }
    return pair;
}

static Pair read_pair(const Walk *walk, const Source *source, int64_t warp)
{
    Pair pair;
    Word low = read_bits(walk, source->file, source->number, source->value, warp);
    Word high = read_bits(walk, source->number < 254 ? source->file : FILE_CONSTANT, source->number + 1, 0, warp);
    for (int lane = 0; lane < LANES; ++lane) {
        uint64_t one = source->file == FILE_CONSTANT ? source->value : low.lanes[lane] | (uint64_t)high.lanes[lane] << 32;
        if (source->signs & SIGN_NEGATIVE)
            one = -one;
        else if (source->signs & SIGN_INVERTED)
            one = ~one;
        pair.lanes[lane] = one;
    }
    return pair;
}

static void write_word(Walk *walk, int32_t file, int64_t number, int64_t warp, uint32_t bits, const uint32_t *value)
{
    if (number < 0 || number >= 255 || bits == 0)
        return;
    if (file == FILE_UNIFORM) {
        walk->uniform[number * walk->warps + warp] = value[0];
        return;
    }
    uint32_t *lanes = walk->registers + (number * walk->warps + warp) * LANES;
    if (bits == ALL_LANES) {
        memcpy(lanes, value, LANES * sizeof *value);
        return;
    }
    for (int lane = 0; lane < LANES; ++lane)
        lanes[lane] = bits >> lane & 1 ? value[lane] : lanes[lane];
}

static void write_pair(Walk *walk, const Step *step, int64_t warp, uint32_t bits, const Pair *pair)
{
    Word low, high;
    for (int lane = 0; lane < LANES; ++lane) {
        low.lanes[lane] = (uint32_t)pair->lanes[lane];
        high.lanes[lane] = (uint32_t)(pair->lanes[lane] >> 32);
    }
    write_word(walk, step->target_file, step->target, warp, bits, low.lanes);
    write_word(walk, step->target_file, step->target < 0 ? -1 : step->target + 1, warp, bits, high.lanes);
}

static void write_target(Walk *walk, const Step *step, int64_t warp, uint32_t bits, const Word *word)
{
    write_word(walk, step->target_file, step->target, warp, bits, word->lanes);
}

/* Carries added to a sum of 64 bits, and given out. */
static void write_sum(Walk *walk, const Step *step, int64_t warp, uint32_t bits, Pair *sum)
{
    for (int number = 0; number < step->predicate_count; ++number) {
        uint32_t carry = read_predicate(walk, step->predicates[number], warp);
        for (int lane = 0; lane < LANES; ++lane)
            sum->lanes[lane] += carry >> lane & 1;
    }
    Word low;
    for (int place = 0; place < step->out_count; ++place) {
        uint32_t over = 0;
        for (int lane = 0; lane < LANES; ++lane)
            over |= (uint32_t)((sum->lanes[lane] >> 32) > (uint64_t)place) << lane;
        write_predicate(walk, step->outs[place], warp, bits, over);
    }
    for (int lane = 0; lane < LANES; ++lane)
        low.lanes[lane] = (uint32_t)sum->lanes[lane];
    write_target(walk, step, warp, bits, &low);
}

static uint64_t widen(uint32_t value, int is_signed)
{
    return is_signed ? (uint64_t)(int64_t)(int32_t)value : value;
}

static void add(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word total = {{0}};
    for (int number = 0; number < step->source_count; ++number) {
        Word word = read_word(walk, &step->sources[number], warp);
        for (int lane = 0; lane < LANES; ++lane)
            total.lanes[lane] += word.lanes[lane];
    }
    write_target(walk, step, warp, bits, &total);
}

static void add_carry(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Pair total = {{0}};
    for (int number = 0; number < step->source_count; ++number) {
        Pair pair = read_carried(walk, &step->sources[number], warp);
        for (int lane = 0; lane < LANES; ++lane)
            total.lanes[lane] += pair.lanes[lane];
    }
    write_sum(walk, step, warp, bits, &total);
}

static void add_pair(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Pair total = {{0}};
    for (int number = 0; number < step->source_count; ++number) {
        Pair pair = read_pair(walk, &step->sources[number], warp);
        for (int lane = 0; lane < LANES; ++lane)
            total.lanes[lane] += pair.lanes[lane];
    }
    write_pair(walk, step, warp, bits, &total);
}

static void multiply(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word one = read_word(walk, &step->sources[0], warp), other = read_word(walk, &step->sources[1], warp);
    if (step->code == OP_MULTIPLY_CARRY) {
        Pair total = read_carried(walk, &step->sources[2], warp);
        for (int lane = 0; lane < LANES; ++lane)
            total.lanes[lane] += (uint32_t)(one.lanes[lane] * other.lanes[lane]);
        write_sum(walk, step, warp, bits, &total);
        return;
    }
    Word total = read_word(walk, &step->sources[2], warp);
    for (int lane = 0; lane < LANES; ++lane)
        total.lanes[lane] += one.lanes[lane] * other.lanes[lane];
    write_target(walk, step, warp, bits, &total);
}

/* A product of 64 bits and a sum, of which all or the upper word is kept. */
static void multiply_wide(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    int is_signed = (step->flags & FLAG_SIGNED) != 0;
    Word one = read_word(walk, &step->sources[0], warp), other = read_word(walk, &step->sources[1], warp), high;
    Pair total = read_pair(walk, &step->sources[2], warp), product;
    uint32_t over = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        product.lanes[lane] = widen(one.lanes[lane], is_signed) * widen(other.lanes[lane], is_signed);
        total.lanes[lane] += product.lanes[lane];
    }
    for (int number = 0; number < step->predicate_count; ++number) {
        uint32_t carry = read_predicate(walk, step->predicates[number], warp);
        for (int lane = 0; lane < LANES; ++lane)
            total.lanes[lane] += carry >> lane & 1;
    }
    for (int lane = 0; lane < LANES; ++lane) {
        over |= (uint32_t)(total.lanes[lane] < product.lanes[lane]) << lane;
        high.lanes[lane] = (uint32_t)(total.lanes[lane] >> 32);
    }
    if (step->out_count > 0)
        write_predicate(walk, step->outs[0], warp, bits, over);
    if (step->code == OP_MULTIPLY_HIGH)
        write_target(walk, step, warp, bits, &high);
    else
        write_pair(walk, step, warp, bits, &total);
}

static void load_address(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word first = read_word(walk, &step->sources[0], warp), upper = {{0}};
    Pair total = read_carried(walk, &step->sources[1], warp);
    int shift = step->tables[0];
    if (step->flags & FLAG_UPPER)
        upper = read_word(walk, &step->sources[2], warp);
    for (int lane = 0; lane < LANES; ++lane) {
        uint64_t value = first.lanes[lane];
        if (!(step->flags & FLAG_HIGH)) {
            total.lanes[lane] += (value << shift) & ALL_LANES;
            continue;
        }
        if (step->flags & FLAG_EXTENDED)
            value = widen(first.lanes[lane], 1);
        value |= (uint64_t)upper.lanes[lane] << 32;
        total.lanes[lane] += (value << shift) >> 32;
    }
    write_sum(walk, step, warp, bits, &total);
}

static uint32_t combine(int table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t total = 0;
    for (int bits = 0; bits < 8; ++bits)
        if (table >> bits & 1)
            total |= (bits & 4 ? a : ~a) & (bits & 2 ? b : ~b) & (bits & 1 ? c : ~c);
    return total;
}

static void logic(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word a = read_word(walk, &step->sources[0], warp), b = read_word(walk, &step->sources[1], warp);
    Word c = read_word(walk, &step->sources[2], warp), found = {{0}};
    uint32_t truth = 0;
    for (int row = 0; row < 8; ++row) {
        if (!(step->tables[0] >> row & 1))
            continue;
        uint32_t not_a = row & 4 ? 0 : ALL_LANES, not_b = row & 2 ? 0 : ALL_LANES, not_c = row & 1 ? 0 : ALL_LANES;
        for (int lane = 0; lane < LANES; ++lane)
            found.lanes[lane] |= (a.lanes[lane] ^ not_a) & (b.lanes[lane] ^ not_b) & (c.lanes[lane] ^ not_c);
    }
    write_target(walk, step, warp, bits, &found);
    if (step->out_count == 0)
        return;
    for (int lane = 0; lane < LANES; ++lane)
        truth |= (uint32_t)(found.lanes[lane] != 0) << lane;
    for (int number = 0; number < step->predicate_count; ++number) {
        uint32_t joined = read_predicate(walk, step->predicates[number], warp);
        truth = step->flags & FLAG_AND ? truth & joined : truth | joined;
    }
    write_predicate(walk, step->outs[0], warp, bits, truth);
}

static void predicate_logic(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    uint32_t values[3];
    for (int number = 0; number < 3; ++number)
        values[number] = read_predicate(walk, step->predicates[number], warp);
    for (int place = 0; place < step->out_count; ++place)
        write_predicate(walk, step->outs[place], warp, bits, combine(step->tables[place], values[0], values[1], values[2]));
}

static int is_less(uint64_t one, uint64_t other, int is_signed)
{
    return is_signed ? (int64_t)one < (int64_t)other : one < other;
}

static void compare(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    int is_signed = (step->flags & FLAG_SIGNED) != 0;
    Pair one, other;
    if (step->code == OP_COMPARE_PAIR) {
        one = read_pair(walk, &step->sources[0], warp);
        other = read_pair(walk, &step->sources[1], warp);
    } else {
        Word left = read_word(walk, &step->sources[0], warp), right = read_word(walk, &step->sources[1], warp);
        for (int lane = 0; lane < LANES; ++lane) {
            one.lanes[lane] = widen(left.lanes[lane], is_signed);
            other.lanes[lane] = widen(right.lanes[lane], is_signed);
        }
    }
    uint32_t less = 0, equal = 0, truth;
    for (int lane = 0; lane < LANES; ++lane) {
        less |= (uint32_t)is_less(one.lanes[lane], other.lanes[lane], is_signed) << lane;
        equal |= (uint32_t)(one.lanes[lane] == other.lanes[lane]) << lane;
    }
    uint32_t more = ~(less | equal);
    if (step->flags & FLAG_LOWER) {
        uint32_t lower = read_predicate(walk, step->predicates[1], warp);
        uint32_t strict = step->compare == COMPARE_LT || step->compare == COMPARE_LE ? less : more;
        truth = step->compare == COMPARE_NE   ? ~equal | lower
                : step->compare == COMPARE_EQ ? equal & lower
                                              : strict | (equal & lower);
    } else {
        const uint32_t truths[] = {less, less | equal, more, more | equal, equal, ~equal};
        truth = truths[step->compare];
    }
    uint32_t beside = read_predicate(walk, step->predicates[0], warp);
    for (int place = 0; place < step->out_count; ++place) {
        uint32_t own = place ? ~truth : truth;
        own = step->join == JOIN_AND ? own & beside : step->join == JOIN_OR ? own | beside : own ^ beside;
        write_predicate(walk, step->outs[place], warp, bits, own);
    }
}

static void shift(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word low = read_word(walk, &step->sources[0], warp), by = read_word(walk, &step->sources[1], warp);
    Word high = read_word(walk, &step->sources[2], warp), found;
    int wraps = (step->flags & FLAG_WRAPS) != 0;
    uint64_t most = step->flags & FLAG_WIDE ? 63 : wraps ? 31 : 32;
    for (int lane = 0; lane < LANES; ++lane) {
        uint64_t value = low.lanes[lane] | (uint64_t)high.lanes[lane] << 32;
        uint64_t count = wraps ? by.lanes[lane] & most : by.lanes[lane] < most ? by.lanes[lane] : most;
        if (step->flags & FLAG_LEFT)
            value <<= count;
        else if (step->flags & FLAG_SIGNED)
            value = (uint64_t)((int64_t)value >> count);
        else
            value >>= count;
        found.lanes[lane] = (uint32_t)(step->flags & FLAG_HIGH ? value >> 32 : value);
    }
    write_target(walk, step, warp, bits, &found);
}

/* SEL, and IMNMX: the smaller where the predicate holds, else the larger. */
static void choose(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word one = read_word(walk, &step->sources[0], warp), other = read_word(walk, &step->sources[1], warp);
    uint32_t chosen = read_predicate(walk, step->predicates[0], warp);
    int is_signed = (step->flags & FLAG_SIGNED) != 0;
    for (int lane = 0; lane < LANES; ++lane) {
        int takes_first = chosen >> lane & 1;
        if (step->code == OP_EXTREME)
            takes_first = takes_first == is_less(widen(one.lanes[lane], is_signed), widen(other.lanes[lane], is_signed), is_signed);
        one.lanes[lane] = takes_first ? one.lanes[lane] : other.lanes[lane];
    }
    write_target(walk, step, warp, bits, &one);
}

static void permute(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    Word low = read_word(walk, &step->sources[0], warp), selector = read_word(walk, &step->sources[1], warp);
    Word high = read_word(walk, &step->sources[2], warp), found;
    for (int lane = 0; lane < LANES; ++lane) {
        uint64_t value = low.lanes[lane] | (uint64_t)high.lanes[lane] << 32;
        uint32_t total = 0;
        for (int place = 0; place < 4; ++place) {
            uint32_t pick = selector.lanes[lane] >> (4 * place) & 15;
            uint32_t byte = (uint32_t)(value >> (8 * (pick & 7))) & 255;
            if (pick & 8)
                byte = byte & 128 ? 255 : 0;
            total |= byte << (8 * place);
        }
        found.lanes[lane] = total;
    }
    write_target(walk, step, warp, bits, &found);
}

static double read_single(uint32_t bits, int32_t signs, float *value)
{
    if (signs & SIGN_BAR)
        bits &= ~UINT32_C(0x80000000);
    if (signs & SIGN_NEGATIVE)
        bits ^= UINT32_C(0x80000000);
    memcpy(value, &bits, sizeof *value);
    return *value;
}

/* 0 where a result is not a number: which one is left to numpy. */
static int compute_single(const Walk *walk, const Step *step, int64_t warp, uint32_t bits, Word *found)
{
    Word words[3];
    for (int number = 0; number < step->source_count; ++number)
        words[number] = read_bits(walk, step->sources[number].file, step->sources[number].number, step->sources[number].value, warp);
    uint32_t odd = 0;
    for (int lane = 0; lane < LANES; ++lane) {
        float one, other, value;
        double first = read_single(words[0].lanes[lane], step->sources[0].signs, &one);
        double second = read_single(words[1].lanes[lane], step->sources[1].signs, &other);
        if (step->code == OP_FADD) {
            value = one + other;
        } else if (step->code == OP_FMUL) {
            value = one * other;
        } else {
            float third;
            double added = read_single(words[2].lanes[lane], step->sources[2].signs, &third);
            value = (float)(first * second + added);
        }
        odd |= (uint32_t)(value != value) << lane;
        memcpy(&found->lanes[lane], &value, sizeof value);
    }
    return (odd & bits) == 0;
}

static double widen_half(uint32_t bits)
{
    uint32_t moved = (bits & 0x7FFF) << 13;
    float value;
    if (moved >= UINT32_C(0x0F800000)) {
        moved |= UINT32_C(0x7F800000);
        memcpy(&value, &moved, sizeof value);
    } else {
        memcpy(&value, &moved, sizeof value);
        value *= 0x1p112f;
    }
    return bits & 0x8000 ? -value : value;
}

/* Rounded to the nearest one, to the even one of two. */
static uint32_t narrow_half(double value)
{
    double size = fabs(value), base = 0x1p28; /* whose last place is that of the smallest half */
    uint64_t bits, first;
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    if (size >= 65520.0)
        return sign | 0x7C00;
    if (size < 0x1p-14) {
        size += base;
        memcpy(&bits, &size, sizeof bits);
        memcpy(&first, &base, sizeof first);
        return sign | (uint32_t)(bits - first);
    }
    memcpy(&bits, &size, sizeof bits);
    bits += (UINT64_C(1) << 41) - 1 + (bits >> 42 & 1);
    return sign | (uint32_t)((bits >> 42) - ((UINT64_C(1023) - 15) << 10));
}

static double read_half(uint32_t word, uint32_t shift, int32_t signs)
{
    double value = widen_half(word >> shift & 0xFFFF);
    value = signs & SIGN_BAR ? fabs(value) : value;
    return signs & SIGN_NEGATIVE ? -value : value;
}

static int compute_halves(const Walk *walk, const Step *step, int64_t warp, uint32_t bits, Word *found)
{
    Word words[3];
    for (int number = 0; number < step->source_count; ++number)
        words[number] = read_bits(walk, step->sources[number].file, step->sources[number].number, step->sources[number].value, warp);
    for (int lane = 0; lane < LANES; ++lane) {
        if (!(bits >> lane & 1))
            continue;
        found->lanes[lane] = 0;
        for (int half = 0; half < 2; ++half) {
            double values[3] = {0.0, 0.0, 0.0}, value;
            for (int number = 0; number < step->source_count; ++number) {
                const Source *source = &step->sources[number];
                values[number] = read_half(words[number].lanes[lane], half ? source->mask : source->shift,
                                           half ? source->upper_signs : source->signs);
            }
            value = step->code == OP_HADD ? values[0] + values[1] : values[0] * values[1] + values[2];
            if (value != value)
                return 0;
            found->lanes[lane] |= narrow_half(value) << (16 * half);
        }
    }
    return 1;
}

/* Marks. ------------------------------------------------------------------------------------------------------------------------------- */

static uint32_t *find_marks(const Walk *walk, int64_t place)
{
    return walk->unknown + (int64_t)walk->resources[place] * walk->warps;
}

static uint32_t find_unknown(const Walk *walk, int32_t first, int32_t count, int64_t warp)
{
    uint32_t found = 0;
    for (int32_t place = first; place < first + count; ++place)
        found |= find_marks(walk, place)[warp];
    return found;
}

static int is_touched(const Walk *walk, const Step *step)
{
    int found = 0;
    for (int32_t place = 0; place < step->read_count; ++place)
        found |= walk->tainted[walk->resources[step->first_read + place]];
    for (int32_t place = 0; place < step->write_count; ++place)
        found |= walk->tainted[walk->resources[step->first_write + place]];
    return found;
}

/* Note in which lanes what a step wrote is not known. */
static void mark(Walk *walk, const Step *step, const int64_t *warps, int64_t count, const uint32_t *bits, const uint32_t *unknown)
{
    for (int32_t place = step->first_write; place < step->first_write + step->write_count; ++place) {
        int32_t resource = walk->resources[place];
        uint32_t *marks = find_marks(walk, place), any = 0;
        int is_uniform = resource >> 8 == 1 || resource >> 8 == 3;
        for (int64_t index = 0; index < count; ++index) {
            uint32_t *mark = &marks[warps[index]], found = unknown[index] & bits[index];
            if (is_uniform)
                *mark = bits[index] == 0 ? *mark : found != 0 ? ALL_LANES : 0;
            else
                *mark = found | (*mark & ~bits[index]);
        }
        for (int64_t warp = 0; warp < walk->warps; ++warp)
            any |= marks[warp];
        walk->tainted[resource] = any != 0;
    }
    for (int64_t index = 0; index < count; ++index)
        walk->has_unknown |= (unknown[index] & bits[index]) != 0;
}

/* Memory. ------------------------------------------------------------------------------------------------------------------------------ */

static void find_addresses(const Walk *walk, const Step *step, int64_t warp, int64_t *addresses)
{
    for (int lane = 0; lane < LANES; ++lane)
        addresses[lane] = step->offset;
    for (int number = 0; number < step->source_count; ++number) {
        const Source *term = &step->sources[number];
        Word low = read_bits(walk, term->file, term->number, 0, warp);
        for (int lane = 0; lane < LANES; ++lane)
            addresses[lane] += (int64_t)low.lanes[lane] * term->scale;
        if (!term->is_pair)
            continue;
        Word high = read_bits(walk, term->file, term->number + 1, 0, warp);
        for (int lane = 0; lane < LANES; ++lane)
            addresses[lane] += (int64_t)((uint64_t)high.lanes[lane] << 32);
    }
    if (step->space != IN_GLOBAL)
        for (int lane = 0; lane < LANES; ++lane)
            addresses[lane] &= ALL_LANES;
}

/* Places in the bytes of the space; 0 where a lane goes outside of what is its own, or is not aligned. */
static int find_places(const Walk *walk, const Step *step, int64_t warp, uint32_t bits, const int64_t *addresses, int64_t *places)
{
    int64_t limit = step->space == IN_SHARED ? walk->shared_bytes : walk->local_bytes;
    int64_t width = step->space == IN_LOCAL && step->width > 4 ? 4 : step->width;
    for (int lane = 0; lane < LANES; ++lane) {
        int64_t address = addresses[lane];
        if (step->space == IN_GLOBAL)
            places[lane] = address - GLOBAL_BASE;
        else if (step->space == IN_SHARED)
            places[lane] = address + walk->shared_starts[warp];
        else
            places[lane] = (address >> 2) * WORD_STRIDE + (address & 3) + warp * walk->local_bytes * LANES + lane * 4;
        if (!(bits >> lane & 1))
            continue;
        if ((step->space != IN_GLOBAL && address + step->width > limit) || (places[lane] & (width - 1)))
            return 0;
    }
    return 1;
}

static void sort_sectors(int64_t *sectors, int count)
{
    for (int place = 1; place < count; ++place) {
        int64_t one = sectors[place];
        int to = place;
        while (to > 0 && sectors[to - 1] > one) {
            sectors[to] = sectors[to - 1];
            to -= 1;
        }
        sectors[to] = one;
    }
}

static int list_sectors(const Step *step, uint32_t bits, const int64_t *shown, int64_t *sectors)
{
    int count = 0, words = step->space == IN_LOCAL && step->width > 4 ? step->width / 4 : 1;
    int64_t base = step->space == IN_LOCAL ? LOCAL_BASE >> SECTOR_SHIFT : 0, before = -1;
    for (int word = 0; word < words; ++word) {
        for (int lane = 0; lane < LANES; ++lane) {
            int64_t sector = (shown[lane] >> SECTOR_SHIFT) + base + 4 * word;
            if ((bits >> lane & 1) && (count == 0 || sector != before)) {
                sectors[count++] = sector;
                before = sector;
            }
        }
    }
    sort_sectors(sectors, count);
    int kept = 0;
    for (int place = 0; place < count; ++place)
        if (kept == 0 || sectors[kept - 1] != sectors[place])
            sectors[kept++] = sectors[place];
    return kept;
}

/* Passes of a request that goes in so many parts: of each, the most different units of one group of banks. */
static int64_t count_passes(const int64_t *addresses, uint32_t bits, int64_t bytes, int parts)
{
    int64_t passes = 0, groups = BANKED_BYTES / bytes;
    for (int part = 0; part < parts; ++part) {
        int64_t known[LANES][LANES];
        int used[LANES] = {0}, most = 0;
        for (int lane = part * LANES / parts; lane < (part + 1) * LANES / parts; ++lane) {
            if (!(bits >> lane & 1))
                continue;
            int64_t unit = addresses[lane] / bytes, group = unit % groups;
            int place = 0;
            while (place < used[group] && known[group][place] != unit)
                ++place;
            if (place == used[group])
                known[group][used[group]++] = unit;
            most = used[group] > most ? used[group] : most;
        }
        passes += most;
    }
    return passes;
}

static int is_paired(const int64_t *addresses, uint32_t bits, int step)
{
    for (int lane = 0; lane < LANES; ++lane)
        if ((bits >> lane & 1) && (bits >> (lane ^ step) & 1) && addresses[lane] != addresses[lane ^ step])
            return 0;
    return 1;
}

/* gpa_lsp.code.symbolic_accesses.wavefronts.count_wavefronts of one load or store. */
static int64_t count_wavefronts(const int64_t *addresses, uint32_t bits, int64_t width, int is_load)
{
    int64_t bytes = width < BANK_BYTES ? BANK_BYTES : width;
    int parts = (int)(bytes / BANK_BYTES);
    int64_t passes = count_passes(addresses, bits, bytes, parts);
    if (!is_load || (parts != 2 && parts != 4) || (!is_paired(addresses, bits, 1) && !is_paired(addresses, bits, 2)))
        return passes;
    int64_t joined = count_passes(addresses, bits, bytes, parts / 2);
    return joined < passes ? joined : passes;
}

static void note_access(Walk *walk, const Step *step, int64_t warp, int64_t offset, uint32_t bits, const int64_t *addresses,
                        const int64_t *places)
{
    if (!walk->keeps_walks || bits == 0)
        return;
    int64_t passes = 0, found = 0;
    int is_load = step->code == OP_LOAD, is_banked = step->space == IN_SHARED || (step->space != IN_LOCAL && is_load);
    if (is_banked) {
        int64_t words = (step->width + 3) / 4;
        passes = count_wavefronts(addresses, bits, step->width, is_load);
        if (step->space != IN_SHARED && passes < words)
            passes = words;
    }
    if (step->space != IN_SHARED) {
        int64_t *sectors = walk->sectors + walk->sector_count, line = -1;
        found = list_sectors(step, bits, step->space == IN_LOCAL ? places : addresses, sectors);
        for (int64_t place = 0; place < found; ++place) {
            passes += !is_banked && (place == 0 || sectors[place] >> 2 != line);
            line = sectors[place] >> 2;
        }
        walk->sector_count += found;
    }
    walk->access_warp[walk->access_count] = warp;
    walk->access_place[walk->access_count] = walk->lengths[warp] + offset;
    walk->access_passes[walk->access_count] = passes;
    walk->access_sectors[walk->access_count] = found;
    walk->access_count += 1;
}

static uint32_t load_value(const Bytes *memory, int64_t place, int size, int sign_bytes)
{
    if (place < 0 || place + size > memory->size)
        return 0;
    const uint8_t *from = memory->data + place;
    if (size == 4) {
        uint32_t value;
        memcpy(&value, from, sizeof value);
        return value;
    }
    uint32_t value = size == 1 ? from[0] : from[0] | (uint32_t)from[1] << 8;
    return sign_bytes == 1 ? (uint32_t)(int8_t)value : sign_bytes == 2 ? (uint32_t)(int16_t)value : value;
}

/* Lanes in which the word around a place has no known value. */
static int is_unknown(const Bytes *memory, int64_t place)
{
    return place < 0 || place + 1 > memory->size || (memory->unknown != NULL && memory->unknown[place >> 2]);
}

static uint32_t load(Walk *walk, const Step *step, int64_t warp, uint32_t bits, const int64_t *places)
{
    const Bytes *memory = &walk->memories[step->space];
    int64_t stride = step->space == IN_LOCAL ? WORD_STRIDE : 4;
    int size = step->width < 4 ? step->width : 4;
    uint32_t unknown = 0;
    for (int word = 0; word < step->words; ++word) {
        Word found = {{0}};
        for (int lane = 0; lane < LANES; ++lane) {
            if (!(bits >> lane & 1))
                continue;
            int64_t place = places[lane] + word * stride;
            found.lanes[lane] = load_value(memory, place, size, step->sign_bytes);
            unknown |= (uint32_t)is_unknown(memory, place) << lane;
        }
        write_word(walk, step->target_file, step->target < 0 ? -1 : step->target + word, warp, bits, found.lanes);
    }
    return unknown;
}

static void store(Walk *walk, const Step *step, int64_t warp, uint32_t bits, uint32_t unknown, const int64_t *places)
{
    Bytes *memory = &walk->memories[step->space];
    int64_t stride = step->space == IN_LOCAL ? WORD_STRIDE : 4;
    int size = step->width < 4 ? step->width : 4;
    for (int word = 0; word < step->words; ++word) {
        Word value = read_bits(walk, step->target < 0 ? FILE_CONSTANT : step->target_file, step->target + word, 0, warp);
        for (int lane = 0; lane < LANES; ++lane) {
            int64_t place = places[lane] + word * stride;
            if (!(bits >> lane & 1) || place < 0)
                continue;
            if (place + size <= memory->size)
                memcpy(memory->data + place, &value.lanes[lane], (size_t)size);
            if (place + 1 <= memory->size && memory->unknown != NULL)
                memory->unknown[place >> 2] = unknown >> lane & 1;
        }
    }
}

/* Whether Python has to do an access: it goes nowhere, depends on what is not known, or there is no room to note it. */
static int is_left(const Walk *walk, const Step *step, const int64_t *warps, int64_t count, const uint32_t *bits)
{
    int64_t addresses[LANES], places[LANES];
    if (walk->access_count + count > walk->access_room || walk->sector_count + count * LANES * MOST_LANE_SECTORS > walk->sector_room)
        return 1;
    for (int64_t index = 0; index < count; ++index) {
        if (bits[index] == 0)
            continue;
        if (walk->has_unknown && (find_unknown(walk, step->first_address, step->address_count, warps[index]) & bits[index]))
            return 1;
        if (step->code == OP_STORE && (step->flags & FLAG_ASKED) && walk->memories[step->space].unknown == NULL && walk->has_unknown
            && (find_unknown(walk, step->first_read, step->read_count, warps[index]) & bits[index]))
            return 1;
        find_addresses(walk, step, warps[index], addresses);
        if (!find_places(walk, step, warps[index], bits[index], addresses, places))
            return 1;
    }
    return 0;
}

static void access_memory(Walk *walk, const Step *step, const int64_t *warps, int64_t count, const uint32_t *bits, int64_t offset,
                          uint32_t *unknown)
{
    int64_t addresses[LANES], places[LANES];
    uint32_t any = 0;
    for (int64_t index = 0; index < count; ++index) {
        int64_t warp = warps[index];
        unknown[index] = 0;
        if (bits[index] == 0)
            continue;
        find_addresses(walk, step, warp, addresses);
        find_places(walk, step, warp, bits[index], addresses, places);
        note_access(walk, step, warp, offset, bits[index], addresses, places);
        if (!(step->flags & FLAG_ASKED))
            continue;
        if (step->code == OP_LOAD) {
            unknown[index] = load(walk, step, warp, bits[index], places);
            any |= unknown[index];
        } else {
            uint32_t stored = walk->has_unknown ? find_unknown(walk, step->first_read, step->read_count, warp) : 0;
            store(walk, step, warp, bits[index], stored, places);
        }
    }
    if (any || (walk->has_unknown && is_touched(walk, step)))
        mark(walk, step, warps, count, bits, unknown);
}

/* Steps. ------------------------------------------------------------------------------------------------------------------------------- */

static int compute(Walk *walk, const Step *step, int64_t warp, uint32_t bits)
{
    switch (step->code) {
    case OP_MOVE: {
        Word word = read_word(walk, &step->sources[0], warp);
        write_target(walk, step, warp, bits, &word);
        return 1;
    }
    case OP_MOVE_PAIR: {
        Pair pair = read_pair(walk, &step->sources[0], warp);
        write_pair(walk, step, warp, bits, &pair);
        return 1;
    }
    case OP_ADD: add(walk, step, warp, bits); return 1;
    case OP_ADD_CARRY: add_carry(walk, step, warp, bits); return 1;
    case OP_ADD_PAIR: add_pair(walk, step, warp, bits); return 1;
    case OP_MULTIPLY:
    case OP_MULTIPLY_CARRY: multiply(walk, step, warp, bits); return 1;
    case OP_MULTIPLY_HIGH:
    case OP_MULTIPLY_WIDE: multiply_wide(walk, step, warp, bits); return 1;
    case OP_LOAD_ADDRESS: load_address(walk, step, warp, bits); return 1;
    case OP_LOGIC: logic(walk, step, warp, bits); return 1;
    case OP_PREDICATE_LOGIC: predicate_logic(walk, step, warp, bits); return 1;
    case OP_COMPARE:
    case OP_COMPARE_PAIR: compare(walk, step, warp, bits); return 1;
    case OP_SHIFT: shift(walk, step, warp, bits); return 1;
    case OP_SELECT:
    case OP_EXTREME: choose(walk, step, warp, bits); return 1;
    case OP_PERMUTE: permute(walk, step, warp, bits); return 1;
    default: return 1;
    }
}

static int compute_floats(const Walk *walk, const Step *step, int64_t warp, uint32_t bits, Word *found)
{
    return step->code >= OP_HADD ? compute_halves(walk, step, warp, bits, found) : compute_single(walk, step, warp, bits, found);
}

/* All warps or none, as what it computes may be left to numpy. */
static int compute_all_floats(Walk *walk, const Step *step, const int64_t *warps, int64_t count, const uint32_t *bits, Word *results)
{
    for (int64_t index = 0; index < count; ++index)
        if (bits[index] != 0 && !compute_floats(walk, step, warps[index], bits[index], &results[index]))
            return 0;
    for (int64_t index = 0; index < count; ++index)
        if (bits[index] != 0)
            write_target(walk, step, warps[index], bits[index], &results[index]);
    return 1;
}

static int find_guarded(const Walk *walk, const Step *step, const int64_t *warps, int64_t count, const uint32_t *whole, uint32_t *bits)
{
    if (step->guard < 0) {
        memcpy(bits, whole, (size_t)count * sizeof *bits);
        return 1;
    }
    const uint32_t *marks = walk->unknown + (int64_t)(step->guard_resource < 0 ? 0 : step->guard_resource) * walk->warps;
    for (int64_t index = 0; index < count; ++index) {
        if (walk->has_unknown && step->guard_resource >= 0 && (marks[warps[index]] & whole[index]))
            return 0;
        bits[index] = whole[index] & read_predicate(walk, step->guard, warps[index]);
    }
    return walk->guard_count + count <= walk->guard_room;
}

static void note_guard(Walk *walk, const int64_t *warps, int64_t count, const uint32_t *bits, int64_t offset)
{
    for (int64_t index = 0; index < count; ++index) {
        walk->guard_warp[walk->guard_count] = warps[index];
        walk->guard_place[walk->guard_count] = walk->lengths[warps[index]] + offset;
        walk->guard_bits[walk->guard_count] = bits[index];
        walk->guard_count += 1;
    }
}

static int execute(Walk *walk, const Step *step, const int64_t *warps, int64_t count, const uint32_t *bits, int64_t offset, uint32_t *unknown)
{
    if (step->code == OP_LOAD || step->code == OP_STORE) {
        if (is_left(walk, step, warps, count, bits))
            return 0;
        access_memory(walk, step, warps, count, bits, offset, unknown);
        return 1;
    }
    if (step->code == OP_OPAQUE) {
        mark(walk, step, warps, count, bits, bits);
        return 1;
    }
    if (step->code >= OP_FADD && step->code <= OP_HFMA) {
        if (!compute_all_floats(walk, step, warps, count, bits, (Word *)(unknown + count)))
            return 0;
    } else if (step->code != OP_SKIP) {
        for (int64_t index = 0; index < count; ++index)
            if (bits[index] != 0)
                compute(walk, step, warps[index], bits[index]);
    }
    if (walk->has_unknown && is_touched(walk, step)) {
        for (int64_t index = 0; index < count; ++index)
            unknown[index] = find_unknown(walk, step->first_read, step->read_count, warps[index]);
        mark(walk, step, warps, count, bits, unknown);
    }
    return 1;
}

/* Steps from a place on, for some warps with their lanes; the place of the first step that is left to Python, or their number. Room is
   uint32[34 * count]. */
EXPORT int64_t walk_steps(Walk *walk, const Step *steps, int64_t step_count, int64_t place, const int64_t *warps, const uint32_t *whole,
                          int64_t count, uint32_t *room, int64_t step_bytes)
{
    if (step_bytes != (int64_t)sizeof(Step))
        return FAILED;
    for (; place < step_count; ++place) {
        const Step *step = &steps[place];
        if (step->code == OP_PYTHON || !find_guarded(walk, step, warps, count, whole, room)
            || !execute(walk, step, warps, count, room, place, room + count))
            break;
        if (step->guard >= 0)
            note_guard(walk, warps, count, room, place);
    }
    return place;
}
