/* In place of the threads of NVIDIA's samples where a program does not bring them. */
#ifndef GPA_LSP_MULTITHREADING_H
#define GPA_LSP_MULTITHREADING_H
#include <pthread.h>
#include <stddef.h>

typedef pthread_t CUTThread;
typedef void *(*CUT_THREADROUTINE)(void *);
#define CUT_THREADPROC void *
#define CUT_THREADEND return NULL
static inline CUTThread cutStartThread(CUT_THREADROUTINE routine, void *data) {
    CUTThread thread;
    pthread_create(&thread, NULL, routine, data);
    return thread;
}
static inline void cutEndThread(CUTThread thread) { pthread_join(thread, NULL); }
static inline void cutWaitForThreads(const CUTThread *threads, int count) {
    for (int i = 0; i < count; i++)
        cutEndThread(threads[i]);
}
#endif
