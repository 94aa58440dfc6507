/* A program that loads a cubin and launches its kernels from two places.
 *
 *   application CUBIN KERNEL LAUNCHES [WORDS...]
 *
 * Words: failing (one launch is refused), capture (one launch is captured, and a graph launched), unload (the module goes and comes back),
 * exec (another program is started by a child), fork (a child lives and ends), subscribe (this program is a profiler itself), kill (it ends itself at
 * the end), meanwhile (a thread launches while another captures), pause (10 ms after each launch), destroy (the context goes before the end).
 */
#define _GNU_SOURCE
#include <cuda.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

CUresult fake_create_context(CUcontext *context);
CUresult fake_destroy_context(CUcontext context);
void fake_capture(int begins);

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *content = malloc(size);
    if (fread(content, 1, size, file) != size)
        exit(3);
    fclose(file);
    return content;
}

static int has(int count, char **words, const char *word) {
    for (int at = 4; at < count; at++)
        if (strcmp(words[at], word) == 0)
            return 1;
    return 0;
}

__attribute__((noinline)) static CUresult launch_small(CUfunction kernel) {
    CUresult result = cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 256, NULL, NULL, NULL);
    return result;
}

__attribute__((noinline)) static CUresult launch_large(CUfunction kernel) {
    CUlaunchConfig wanted = {.gridDimX = 16, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 256, .blockDimY = 1, .blockDimZ = 1};
    CUresult result = cuLaunchKernelEx(&wanted, kernel, NULL, NULL);
    return result;
}

__attribute__((noinline)) static void train(CUfunction kernel, int launches, int pauses) {
    struct timespec pause = {0, 10000000};
    for (int number = 0; number < launches; number++) {
        if (number % 2)
            launch_large(kernel);
        else
            launch_small(kernel);
        if (pauses)
            nanosleep(&pause, NULL);
    }
}

struct other_launch {
    CUcontext context;
    CUfunction kernel;
};

static void *launch_elsewhere(void *data) {
    struct other_launch *launch = data;
    cuCtxPushCurrent(launch->context);
    launch_small(launch->kernel);
    return NULL;
}

int main(int count, char **words) {
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    if (count < 4)
        return 2;
    cuInit(0);
    fake_create_context(&context);
    char *cubin = read_file(words[1]);
    cuModuleLoadData(&module, cubin);
    if (cuModuleGetFunction(&kernel, module, words[2]) != CUDA_SUCCESS)
        return 4;
    int launches = atoi(words[3]), pauses = has(count, words, "pause");
    train(kernel, launches, pauses);
    if (has(count, words, "failing") && cuLaunchKernel(kernel, 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL) == CUDA_SUCCESS)
        return 5;
    if (has(count, words, "meanwhile")) {
        pthread_t other;
        CUcontext before;
        struct other_launch launch = {context, kernel};
        fake_capture(1); /* this thread captures while another launches */
        pthread_create(&other, NULL, launch_elsewhere, &launch);
        pthread_join(other, NULL);
        fake_capture(0);
        cuCtxPopCurrent(&before);
    }
    if (has(count, words, "capture")) {
        fake_capture(1);
        launch_small(kernel);
        fake_capture(0);
        cuGraphLaunch(NULL, NULL);
    }
    if (has(count, words, "unload")) {
        cuModuleUnload(module);
        cuModuleLoadData(&module, cubin);
        cuModuleGetFunction(&kernel, module, words[2]);
        train(kernel, launches, pauses);
    }
    if (has(count, words, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            launch_small(kernel);
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (has(count, words, "exec")) {
        pid_t child = fork();
        if (child == 0)
            execl(words[0], words[0], words[1], words[2], words[3], (char *)NULL);
        waitpid(child, NULL, 0);
    }
    if (has(count, words, "contexts")) {
        CUcontext other;
        for (int number = 0; number < 100; number++) {
            fake_create_context(&other);
            if (!has(count, words, "stay"))
                fake_destroy_context(other);
        }
        fake_create_context(&context);
        cuModuleLoadData(&module, cubin);
        cuModuleGetFunction(&kernel, module, words[2]);
        train(kernel, launches, pauses);
    }
    if (has(count, words, "destroy"))
        fake_destroy_context(context);
    printf("done\n");
    fflush(stdout);
    if (has(count, words, "kill"))
        raise(SIGKILL);
    return 0;
}
