/* In place of the helpers of NVIDIA's samples where a program does not bring them: a stop watch. */
#ifndef GPA_LSP_HELPER_TIMER_H
#define GPA_LSP_HELPER_TIMER_H
#include <time.h>

class StopWatchInterface {
  public:
    double total_ms = 0, begun_ms = 0;
    int sessions = 0;
    bool is_running = false;
    static double now_ms() {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
    }
    void start() {
        begun_ms = now_ms();
        is_running = true;
    }
    void stop() {
        total_ms += now_ms() - begun_ms;
        sessions++;
        is_running = false;
    }
    void reset() {
        total_ms = 0;
        sessions = 0;
        begun_ms = now_ms();
    }
    float getTime() { return (float)(total_ms + (is_running ? now_ms() - begun_ms : 0)); }
    float getAverageTime() { return sessions > 0 ? (float)(total_ms / sessions) : 0.0f; }
};
typedef StopWatchInterface StopWatchLinux;

static inline bool sdkCreateTimer(StopWatchInterface **timer) {
    *timer = new StopWatchInterface;
    return true;
}
static inline bool sdkDeleteTimer(StopWatchInterface **timer) {
    delete *timer;
    *timer = nullptr;
    return true;
}
static inline bool sdkStartTimer(StopWatchInterface **timer) {
    (*timer)->start();
    return true;
}
static inline bool sdkStopTimer(StopWatchInterface **timer) {
    (*timer)->stop();
    return true;
}
static inline bool sdkResetTimer(StopWatchInterface **timer) {
    (*timer)->reset();
    return true;
}
static inline float sdkGetTimerValue(StopWatchInterface **timer) { return (*timer)->getTime(); }
static inline float sdkGetAverageTimerValue(StopWatchInterface **timer) { return (*timer)->getAverageTime(); }
#endif
