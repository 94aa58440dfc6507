/* How a sub-core reads registers: gpa_lsp.simulator.register_ports. */
#include <math.h>

#include "multiprocessor.h"

#define MOST_KEPT 2

typedef struct {
    int32_t first, count, kept;
} Operand;

static void list_operands(const Row *row, Operand *operands)
{
    operands[0] = (Operand){row->first_a, row->count_a, row->kept_a};
    operands[1] = (Operand){row->first_b, row->count_b, row->kept_b};
    operands[2] = (Operand){row->first_c, row->count_c, row->kept_c};
}

/* Of each bank's port, for what is not kept. */
static void find_cycles(const Ports *ports, const Model *model, const Operand *operands, int64_t warp, double *cycles)
{
    int64_t counts[BANKS] = {0, 0};
    for (int place = 0; place < OPERANDS; ++place) {
        for (int32_t number = operands[place].first; number < operands[place].first + operands[place].count; ++number) {
            if (ports->kept[place][number & 1] != warp * REGISTERS + number)
                counts[number & 1] += 1;
        }
    }
    for (int bank = 0; bank < BANKS; ++bank)
        cycles[bank] = ceil((double)counts[bank] / model->bank_registers_per_cycle);
}

void gpa_open_ports(Ports *ports)
{
    for (int bank = 0; bank < BANKS; ++bank) {
        ports->free[bank] = 0.0;
        for (int place = 0; place < OPERANDS; ++place)
            ports->kept[place][bank] = -1;
    }
}

/* Whether the operands of an instruction that is issued are there in time; those that take longer have to begin at once. */
int gpa_can_read_operands(const Ports *ports, const Model *model, const Row *row, int64_t warp, double time)
{
    Operand operands[OPERANDS];
    double cycles[BANKS];
    list_operands(row, operands);
    find_cycles(ports, model, operands, warp, cycles);
    for (int bank = 0; bank < BANKS; ++bank) {
        double allowed = later(model->operand_window_cycles, cycles[bank]);
        if (cycles[bank] > 0 && later(ports->free[bank], time) + cycles[bank] > time + allowed)
            return 0;
    }
    return 1;
}

/* Read the operands of an instruction that is issued. */
void gpa_read_operands(Ports *ports, const Model *model, const Row *row, int64_t warp, double time)
{
    Operand operands[OPERANDS];
    double cycles[BANKS];
    list_operands(row, operands);
    find_cycles(ports, model, operands, warp, cycles);
    for (int bank = 0; bank < BANKS; ++bank) {
        if (cycles[bank] > 0)
            ports->free[bank] = later(ports->free[bank], time) + cycles[bank];
    }
    for (int place = 0; place < OPERANDS; ++place) {
        int is_kept = operands[place].kept && operands[place].count <= MOST_KEPT;
        for (int32_t number = operands[place].first; number < operands[place].first + operands[place].count; ++number)
            ports->kept[place][number & 1] = is_kept ? warp * REGISTERS + number : -1;
    }
}
