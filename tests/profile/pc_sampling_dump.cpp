/* Has NVIDIA's own library write what tests/profile/test_pc_sampling.py says: records of two buffers, from standard input.
 *
 * A line "buffer TOTAL DROPPED FOREIGN", then lines "pc CRC OFFSET INDEX NAME CORRELATION COUNT (REASON SAMPLES)..." of it. */
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <cuda.h>

#include <cupti_pcsampling.h>
#include <cupti_pcsampling_util.h>

using namespace CUPTI::PcSamplingUtil;

static std::vector<char *> names;
static std::vector<uint32_t> indices;

/* Fields of packed structures cannot be read into. */
static uint64_t read_number(std::istream &text) {
    uint64_t number = 0;
    text >> number;
    return number;
}

static int put(CUpti_PCSamplingData &data, std::vector<CUpti_PCSamplingPCData> &records, const char *file) {
    CUpti_PCSamplingConfigurationInfo settings[2];
    memset(settings, 0, sizeof settings);
    settings[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
    settings[0].attributeData.stallReasonData.stallReasonCount = indices.size();
    settings[0].attributeData.stallReasonData.pStallReasonIndex = indices.data();
    settings[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
    settings[1].attributeData.samplingPeriodData.samplingPeriod = 11;
    PcSamplingStallReasons reasons = {names.size(), names.data(), indices.data()};
    data.size = sizeof data;
    data.collectNumPcs = data.totalNumPcs = records.size();
    data.pPcData = records.data();
    CUptiUtil_PutPcSampDataParams asked;
    memset(&asked, 0, sizeof asked);
    asked.size = CUptiUtil_PutPcSampDataParamsSize;
    asked.bufferType = PC_SAMPLING_BUFFER_PC_TO_COUNTER_DATA;
    asked.pSamplingData = &data;
    asked.numAttributes = 2;
    asked.pPCSamplingConfigurationInfo = settings;
    asked.pPcSamplingStallReasons = &reasons;
    asked.fileName = file;
    return CuptiUtilPutPcSampData(&asked);
}

int main(int, char **words) {
    std::string line, word;
    std::vector<CUpti_PCSamplingPCData> records;
    CUpti_PCSamplingData data;
    bool has_buffer = false;
    while (std::getline(std::cin, line)) {
        std::istringstream text(line);
        text >> word;
        if (word == "reason") {
            uint32_t index;
            text >> index >> word;
            char *name = static_cast<char *>(calloc(1, CUPTI_STALL_REASON_STRING_SIZE));
            strcpy(name, word.c_str());
            names.push_back(name);
            indices.push_back(index);
        } else if (word == "buffer") {
            if (has_buffer && put(data, records, words[1]) != 0)
                return 1;
            has_buffer = true;
            records.clear();
            memset(&data, 0, sizeof data);
            data.totalSamples = read_number(text);
            data.droppedSamples = read_number(text);
            data.nonUsrKernelsTotalSamples = read_number(text);
        } else if (word == "pc") {
            CUpti_PCSamplingPCData record;
            uint32_t correlation;
            memset(&record, 0, sizeof record);
            record.size = sizeof record;
            record.cubinCrc = read_number(text);
            record.pcOffset = read_number(text);
            record.functionIndex = static_cast<uint32_t>(read_number(text));
            text >> word;
            correlation = static_cast<uint32_t>(read_number(text));
            record.stallReasonCount = read_number(text);
            record.functionName = strdup(word.c_str());
            record.correlationId = correlation;
            record.stallReason = new CUpti_PCSamplingStallReason[record.stallReasonCount];
            for (size_t at = 0; at < record.stallReasonCount; at++) {
                record.stallReason[at].pcSamplingStallReasonIndex = static_cast<uint32_t>(read_number(text));
                record.stallReason[at].samples = static_cast<uint32_t>(read_number(text));
            }
            records.push_back(record);
        }
    }
    return has_buffer ? put(data, records, words[1]) : 0;
}
