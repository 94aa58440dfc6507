/* PC sampling: enabled, asked for its reasons, configured, drained; and started again when the hardware's buffer ran full. */
#define _GNU_SOURCE
#include "sampling.h"

#include "sizes.h"

#include <stdlib.h>
#include <string.h>

#define PCS_PER_CALL 4096
#define PCS_OF_REST 4096
#define ROWS_PER_RECORD 8192
#define MOST_CALLS 1000000
#define MOST_EMPTY_CALLS 16
#define MOST_FUNCTIONS (1 << 20)
#define KEPT_NAMES (1 << 16)

struct context_row {
    uint32_t number, device, mode, major, minor, sm_count, clock_khz, period, name, version;
};
struct sample_head {
    uint32_t context, rows;
    uint64_t total, dropped, foreign;
};
struct sample_row {
    uint32_t function, correlation, offset, reason, samples;
};
struct function_row {
    uint32_t number, symbol;
    uint64_t module;
};

struct settings settings = {MODE_SERIALIZED, 100, 0, 100, 1000};

static char *records;      /* of one call */
static size_t record_reasons;
static CUpti_PCSamplingData fetched;
static struct sample_row rows[ROWS_PER_RECORD];
static struct table functions = {.bound = MOST_FUNCTIONS};
static struct table names = {.bound = (size_t)1 << 30};
static uint32_t call_number;

#define PC(base, number) ((CUpti_PCSamplingPCData *)((char *)(base) + (number) * cupti.pc_bytes))

/* -- buffers ------------------------------------------------------------------------------------------------------ */

/* Room for records with their reasons behind them, in one piece. */
static char *make_records(size_t count, size_t reasons) {
    char *found = calloc(count, add_sizes(cupti.pc_bytes, multiply_sizes(reasons, sizeof(CUpti_PCSamplingStallReason))));
    if (found == NULL)
        return NULL;
    CUpti_PCSamplingStallReason *at = (CUpti_PCSamplingStallReason *)(found + count * cupti.pc_bytes);
    for (size_t number = 0; number < count; number++, at += reasons)
        PC(found, number)->stallReason = at;
    return found;
}

static void reset_records(char *base, size_t count, size_t reasons) {
    for (size_t number = 0; number < count; number++) {
        PC(base, number)->size = cupti.pc_bytes;
        PC(base, number)->stallReasonCount = reasons; /* in: room; out: what is in it */
    }
}

/* Names belong to whoever asked for the data, and one may be shared by records of several calls: they are given back only when there are more than
 * any program has functions, and then only those that this call did not have. */
static void keep_name(char *name) {
    int is_new;
    uint32_t *slot = name == NULL ? NULL : find_slot(&names, (uint64_t)(uintptr_t)name, &is_new);
    if (slot != NULL)
        *slot = call_number;
}

static void give_names_back(void) {
    if (names.used < KEPT_NAMES)
        return;
    struct table before = names;
    names = (struct table){.bound = before.bound};
    for (size_t slot = 0; slot < before.capacity; slot++) {
        if (before.keys[slot] == 0)
            continue;
        if (before.values[slot] == call_number)
            keep_name((char *)(uintptr_t)before.keys[slot]);
        else
            free((void *)(uintptr_t)before.keys[slot]);
    }
    clear_table(&before);
}

/* -- rows --------------------------------------------------------------------------------------------------------- */

static uint32_t find_function(const CUpti_PCSamplingPCData *pc) {
    uint64_t key[2] = {pc->cubinCrc, pc->functionIndex};
    int is_new;
    uint32_t *slot = find_slot(&functions, hash_bytes(key, sizeof key), &is_new);
    if (slot == NULL)
        return 0;
    if (is_new) {
        *slot = (uint32_t)functions.used;
        struct function_row row = {*slot, pc->functionIndex, pc->cubinCrc};
        const char *name = pc->functionName == NULL ? "" : pc->functionName;
        write_record(RECORD_FUNCTION, &row, sizeof row, name, strnlen(name, MOST_TEXT_BYTES), NULL, 0);
    }
    return *slot;
}

static void write_samples(const struct sampled *sampled, const CUpti_PCSamplingData *data, uint32_t correlation) {
    struct sample_head head = {sampled->number, 0, data->totalSamples, data->droppedSamples, data->nonUsrKernelsTotalSamples};
    size_t count = data->totalNumPcs < data->collectNumPcs ? data->totalNumPcs : data->collectNumPcs;
    call_number++;
    for (size_t number = 0; number < count; number++) {
        const CUpti_PCSamplingPCData *pc = PC(data->pPcData, number);
        uint32_t function = find_function(pc), launch = correlation;
        if (cupti.has_correlation)
            memcpy(&launch, (const char *)pc + PC_CORRELATION, sizeof launch);
        size_t reasons = pc->stallReasonCount < sampled->reason_count ? pc->stallReasonCount : sampled->reason_count;
        for (size_t reason = 0; reason < reasons; reason++) {
            if (pc->stallReason[reason].samples == 0)
                continue;
            if (head.rows == ROWS_PER_RECORD) {
                write_record(RECORD_SAMPLES, &head, sizeof head, rows, sizeof rows, NULL, 0);
                head = (struct sample_head){sampled->number, 0, 0, 0, 0};
            }
            rows[head.rows++] = (struct sample_row){
                function, launch, (uint32_t)pc->pcOffset, pc->stallReason[reason].pcSamplingStallReasonIndex,
                pc->stallReason[reason].samples,
            };
        }
        keep_name(pc->functionName);
    }
    if (head.rows != 0 || head.total != 0 || head.dropped != 0 || head.foreign != 0)
        write_record(RECORD_SAMPLES, &head, sizeof head, rows, head.rows * sizeof *rows, NULL, 0);
    give_names_back();
}

static void write_context(const struct sampled *sampled, uint32_t period) {
    struct context_row row = {.number = sampled->number, .mode = sampled->mode, .period = period, .version = cupti.version};
    CUdevice device = 0;
    int value = 0;
    char name[256] = "";
    cupti.GetDeviceId(sampled->context, &row.device);
    driver.DeviceGet(&device, (int)row.device);
    driver.DeviceGetName(name, sizeof name - 1, device);
    row.name = intern_text(name);
#define TAKE(member, attribute)                                                                                        \
    if (driver.DeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS)                                          \
        row.member = (uint32_t)value;
    TAKE(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
    TAKE(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    TAKE(sm_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    TAKE(clock_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
    write_record(RECORD_CONTEXT, &row, sizeof row, NULL, 0, NULL, 0);
}

/* -- beginning and end -------------------------------------------------------------------------------------------- */

/* Only after sampling was enabled: before, there are none since 13.1. */
static CUptiResult read_reasons(struct sampled *sampled, char **into, uint32_t *indices, size_t room) {
    for (size_t number = 0; number < room; number++)
        into[number] = (char *)(into + room) + number * CUPTI_STALL_REASON_STRING_SIZE;
    CUpti_PCSamplingGetStallReasonsParams asked = {
        .size = CUpti_PCSamplingGetStallReasonsParamsSize, .ctx = sampled->context, .numStallReasons = room,
        .stallReasonIndex = indices, .stallReasons = into,
    };
    return cupti.PCSamplingGetStallReasons(&asked);
}

static CUptiResult ask_reasons(struct sampled *sampled) {
    size_t count = 0;
    CUpti_PCSamplingGetNumStallReasonsParams asked = {
        .size = CUpti_PCSamplingGetNumStallReasonsParamsSize, .ctx = sampled->context, .numStallReasons = &count,
    };
    CUptiResult result = cupti.PCSamplingGetNumStallReasons(&asked);
    if (result != CUPTI_SUCCESS || count == 0 || count > 1024)
        return result != CUPTI_SUCCESS ? result : CUPTI_ERROR_UNKNOWN;
    char **texts = calloc(count, sizeof(char *) + CUPTI_STALL_REASON_STRING_SIZE);
    uint32_t *indices = calloc(multiply_sizes(count, 2), sizeof *indices);
    result = texts == NULL || indices == NULL ? CUPTI_ERROR_OUT_OF_MEMORY : read_reasons(sampled, texts, indices, count);
    if (result == CUPTI_SUCCESS) {
        uint32_t head[2] = {sampled->number, (uint32_t)count};
        for (size_t number = 0; number < count; number++)
            indices[count + number] = intern_text(texts[number]);
        write_record(RECORD_REASONS, head, sizeof head, indices, count * 2 * sizeof *indices, NULL, 0);
        sampled->reason_count = count;
    }
    free(texts);
    free(indices);
    return result;
}

static int make_buffers(struct sampled *sampled) {
    if (sampled->rest.pPcData == NULL)
        sampled->rest.pPcData = (CUpti_PCSamplingPCData *)make_records(PCS_OF_REST, sampled->reason_count);
    if (record_reasons < sampled->reason_count) {
        free(records);
        records = make_records(PCS_PER_CALL, sampled->reason_count);
        record_reasons = records == NULL ? 0 : sampled->reason_count;
    }
    if (sampled->rest.pPcData == NULL || records == NULL)
        return 0;
    sampled->rest.size = sizeof sampled->rest;
    sampled->rest.collectNumPcs = PCS_OF_REST;
    sampled->rest.totalNumPcs = 0;
    reset_records((char *)sampled->rest.pPcData, PCS_OF_REST, sampled->reason_count);
    return 1;
}

static CUptiResult configure(struct sampled *sampled) {
    CUpti_PCSamplingConfigurationInfo wanted[5];
    size_t count = 0;
    memset(wanted, 0, sizeof wanted);
    wanted[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
    wanted[count++].attributeData.collectionModeData.collectionMode =
        sampled->mode == MODE_SERIALIZED ? CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED
                                         : CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
    wanted[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT;
    wanted[count++].attributeData.outputDataFormatData.outputDataFormat = CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED;
    wanted[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
    wanted[count++].attributeData.samplingDataBufferData.samplingDataBuffer = &sampled->rest;
    if (sampled->mode == MODE_CONTINUOUS && settings.duty_percent < 100) {
        wanted[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
        wanted[count++].attributeData.enableStartStopControlData.enableStartStopControl = 1;
    }
    if (settings.period != 0) { /* not asked for, it is left alone: on some GPUs there are no samples with any that is set */
        wanted[count].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
        wanted[count++].attributeData.samplingPeriodData.samplingPeriod = settings.period;
    }
    CUpti_PCSamplingConfigurationInfoParams asked = {
        .size = CUpti_PCSamplingConfigurationInfoParamsSize, .ctx = sampled->context, .numAttributes = count,
        .pPCSamplingConfigurationInfo = wanted,
    };
    return cupti.PCSamplingSetConfigurationAttribute(&asked);
}

static uint32_t read_period(const struct sampled *sampled) {
    CUpti_PCSamplingConfigurationInfo wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    CUpti_PCSamplingConfigurationInfoParams asked = {
        .size = CUpti_PCSamplingConfigurationInfoParamsSize, .ctx = sampled->context, .numAttributes = 1,
        .pPCSamplingConfigurationInfo = &wanted,
    };
    int is_known = cupti.PCSamplingGetConfigurationAttribute(&asked) == CUPTI_SUCCESS;
    return is_known ? wanted.attributeData.samplingPeriodData.samplingPeriod : settings.period;
}

static int enable(struct sampled *sampled) {
    CUpti_PCSamplingEnableParams asked = {.size = CUpti_PCSamplingEnableParamsSize, .ctx = sampled->context};
    CUptiResult result = cupti.PCSamplingEnable(&asked);
    const char *where = "cuptiPCSamplingEnable";
    if (result == CUPTI_SUCCESS) {
        where = "cuptiPCSamplingGetStallReasons";
        result = ask_reasons(sampled);
        if (result == CUPTI_SUCCESS && !make_buffers(sampled))
            result = CUPTI_ERROR_OUT_OF_MEMORY;
        if (result == CUPTI_SUCCESS) {
            where = "cuptiPCSamplingSetConfigurationAttribute";
            result = configure(sampled);
        }
        if (result != CUPTI_SUCCESS) {
            CUpti_PCSamplingDisableParams undone = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = sampled->context};
            cupti.PCSamplingDisable(&undone);
            write_trouble(TROUBLE_CONFIGURE, (int32_t)result, where);
        }
    } else {
        write_trouble(TROUBLE_ENABLE, (int32_t)result, where);
    }
    if (result != CUPTI_SUCCESS)
        sampled->mode = MODE_TIMING;
    sampled->is_started = result == CUPTI_SUCCESS && !(sampled->mode == MODE_CONTINUOUS && settings.duty_percent < 100);
    return result == CUPTI_SUCCESS;
}

void begin_sampling(struct sampled *sampled) {
    uint32_t period = 0;
    sampled->mode = settings.mode;
    if (sampled->mode != MODE_TIMING && enable(sampled))
        period = read_period(sampled);
    write_context(sampled, period);
    flush_rows();
}

static void start_or_stop(struct sampled *sampled, int starts) {
    CUpti_PCSamplingStartParams begun = {.size = CUpti_PCSamplingStartParamsSize, .ctx = sampled->context};
    CUpti_PCSamplingStopParams ended = {.size = CUpti_PCSamplingStopParamsSize, .ctx = sampled->context};
    CUptiResult result = starts ? cupti.PCSamplingStart(&begun) : cupti.PCSamplingStop(&ended);
    if (result != CUPTI_SUCCESS)
        write_trouble(TROUBLE_DRAIN, (int32_t)result, starts ? "cuptiPCSamplingStart" : "cuptiPCSamplingStop");
    sampled->is_started = starts && result == CUPTI_SUCCESS;
}

int is_turn_due(const struct sampled *sampled, uint64_t now_ns) {
    return sampled->mode == MODE_CONTINUOUS && settings.duty_percent < 100 && now_ns >= sampled->turn_ns;
}

void take_turn(struct sampled *sampled, uint64_t now_ns) {
    uint64_t cycle_ns = (uint64_t)settings.cycle_ms * 1000000, window_ns = cycle_ns / 100 * (uint64_t)settings.duty_percent;
    if (sampled->is_started) {
        start_or_stop(sampled, 0);
        drain(sampled, 0);
    } else {
        start_or_stop(sampled, 1);
    }
    sampled->turn_ns = now_ns + (sampled->is_started ? window_ns : cycle_ns - window_ns);
}

/* A part at a time, as often as there is more; records are room in, and what was found out. */
void drain(struct sampled *sampled, uint32_t correlation) {
    int empty = 0;
    if (sampled->mode == MODE_TIMING || sampled->must_restart || records == NULL)
        return;
    for (int call = 0; call < MOST_CALLS; call++) {
        reset_records(records, PCS_PER_CALL, record_reasons);
        memset(&fetched, 0, sizeof fetched);
        fetched.size = sizeof fetched;
        fetched.collectNumPcs = PCS_PER_CALL;
        fetched.pPcData = (CUpti_PCSamplingPCData *)records;
        CUpti_PCSamplingGetDataParams asked = {
            .size = CUpti_PCSamplingGetDataParamsSize, .ctx = sampled->context, .pcSamplingData = &fetched,
        };
        CUptiResult result = cupti.PCSamplingGetData(&asked);
        int is_full = result == CUPTI_ERROR_OUT_OF_MEMORY || fetched.hardwareBufferFull;
        if (result == CUPTI_SUCCESS || is_full)
            write_samples(sampled, &fetched, correlation);
        if (is_full) {
            sampled->must_restart = 1; /* stopping and starting does not do it */
            write_trouble(TROUBLE_BUFFER_FULL, (int32_t)result, "cuptiPCSamplingGetData");
            return;
        }
        if (result != CUPTI_SUCCESS) {
            write_trouble(TROUBLE_DRAIN, (int32_t)result, "cuptiPCSamplingGetData");
            sampled->mode = MODE_TIMING;
            return;
        }
        empty = fetched.totalNumPcs == 0 ? empty + 1 : 0;
        if (fetched.remainingNumPcs == 0 || empty == MOST_EMPTY_CALLS)
            return;
    }
}

static void disable(struct sampled *sampled) {
    CUpti_PCSamplingDisableParams asked = {.size = CUpti_PCSamplingDisableParamsSize, .ctx = sampled->context};
    sampled->rest.totalNumPcs = 0;
    if (cupti.PCSamplingDisable(&asked) == CUPTI_SUCCESS && sampled->rest.totalNumPcs != 0)
        write_samples(sampled, &sampled->rest, 0);
}

void end_sampling(struct sampled *sampled) {
    if (sampled->mode == MODE_TIMING)
        return;
    if (sampled->mode == MODE_CONTINUOUS && settings.duty_percent < 100 && sampled->is_started)
        start_or_stop(sampled, 0);
    drain(sampled, 0);
    disable(sampled);
    sampled->mode = MODE_TIMING;
}

void restart_sampling(struct sampled *sampled) {
    disable(sampled);
    sampled->must_restart = 0;
    sampled->turn_ns = 0;
    enable(sampled);
}
