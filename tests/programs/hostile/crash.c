/* Ends by a signal, in a way that is chosen. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "checking.h"

static unsigned char *p;
static void *write_there(void *unused) {
    *p = 1;
    return unused;
}
static void own_handler(int number) {
    write(1, "own handler\n", 12);
    _exit(number);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strcmp(how, "handler") == 0)
        signal(SIGSEGV, own_handler);
    if (strcmp(how, "at once") != 0 && cudaMalloc((void **)&p, 4096) != cudaSuccess)
        return 1;
    if (strcmp(how, "at once") == 0)
        *(volatile int *)0 = 1;
    else if (strcmp(how, "null") == 0)
        *(volatile int *)8 = 1;
    else if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGSEGV);
    else if (strcmp(how, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, write_there, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "read") == 0)
        return p[16];
    else if (strcmp(how, "freed") == 0) {
        cudaFree(p);
        p[0] = 1;
    } else
        write_there(NULL);
    return 0;
}
