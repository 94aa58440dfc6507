/* How a sub-core reads registers: gpa_lsp.execution.simulator.program. */
#include <math.h>

#include "multiprocessor.h"

#define MOST_KEPT 2

/* Of each bank's port, for what is not kept. */
static void find_cycles(const Ports *ports, const Model *model, const Row *row, int64_t warp, double *cycles)
{
    int64_t counts[BANKS] = {0, 0};
    for (int place = 0; place < OPERANDS; ++place) {
        for (int32_t number = row->first[place]; number < row->first[place] + row->count[place]; ++number) {
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

/* Read the operands of an instruction that is to be issued, if they are there in time; those that take longer have to begin at once. */
int gpa_try_read_operands(Ports *ports, const Model *model, const Row *row, int64_t warp, double time)
{
    double cycles[BANKS], ends[BANKS];
    find_cycles(ports, model, row, warp, cycles);
    for (int bank = 0; bank < BANKS; ++bank) {
        ends[bank] = later(ports->free[bank], time) + cycles[bank];
        if (cycles[bank] > 0 && ends[bank] > time + later(model->operand_window_cycles, cycles[bank]))
            return 0;
    }
    for (int bank = 0; bank < BANKS; ++bank) {
        if (cycles[bank] > 0)
            ports->free[bank] = ends[bank];
    }
    for (int place = 0; place < OPERANDS; ++place) {
        int is_kept = row->kept[place] && row->count[place] <= MOST_KEPT;
        for (int32_t number = row->first[place]; number < row->first[place] + row->count[place]; ++number)
            ports->kept[place][number & 1] = is_kept ? warp * REGISTERS + number : -1;
    }
    return 1;
}
