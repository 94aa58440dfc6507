/* Sampling of one context, from its beginning to its end. Every function here is called with the lock of CUPTI held. */
#ifndef GPA_LSP_COLLECTOR_SAMPLING_H
#define GPA_LSP_COLLECTOR_SAMPLING_H

#include "cupti_library.h"

enum mode { MODE_TIMING = 0, MODE_SERIALIZED = 1, MODE_CONTINUOUS = 2 };

struct settings {
    enum mode mode;
    int duty_percent;      /* of continuous sampling */
    uint32_t period;       /* exponent; 0 for what CUPTI chooses */
    uint32_t interval_ms;  /* between two visits of the thread */
    uint32_t cycle_ms;     /* a window of sampling and the pause behind it */
};

struct sampled {
    CUcontext context;
    uint32_t number;
    enum mode mode; /* what is done, whatever was asked for */
    int is_started;
    int must_restart;
    uint64_t turn_ns; /* when the window, or the pause, is over */
    size_t reason_count;
    CUpti_PCSamplingData rest; /* CUPTI's own: what is left when sampling ends */
};

HIDDEN extern struct settings settings;
HIDDEN void begin_sampling(struct sampled *sampled);
HIDDEN void drain(struct sampled *sampled, uint32_t correlation);
HIDDEN void end_sampling(struct sampled *sampled);
HIDDEN void restart_sampling(struct sampled *sampled);
/* Opens or closes the window of a duty cycle where it is time; the GPU is idle. */
HIDDEN int is_turn_due(const struct sampled *sampled, uint64_t now_ns);
HIDDEN void take_turn(struct sampled *sampled, uint64_t now_ns);

#endif
