/* Memory of the device that the host sees as well, and what it holds. */
#include <cuda_runtime_api.h>

#include "checking.h"

int main(void) {
    static unsigned char own[3 << 12], seen[4096];
    unsigned char *managed, *pinned, *device, *mapped;
    GIVES(cudaSuccess, cudaMalloc((void **)&device, 4096));
    GIVES(cudaSuccess, cudaMallocManaged((void **)&managed, 4096, cudaMemAttachGlobal));
    GIVES(cudaSuccess, cudaMallocHost((void **)&pinned, 4096));
    GIVES(cudaSuccess, cudaHostRegister(own + 100, 5000, cudaHostRegisterMapped));
    GIVES(cudaSuccess, cudaHostGetDevicePointer((void **)&mapped, own + 100, 0));
    memset(managed, 1, 4096);
    memset(pinned, 2, 4096);
    memset(own + 100, 3, 5000);
    GIVES(cudaSuccess, cudaMemcpy(device, managed, 4096, cudaMemcpyDefault));
    GIVES(cudaSuccess, cudaMemcpy(pinned + 2048, device, 2048, cudaMemcpyDeviceToHost));
    HOLDS(pinned[2047] == 2 && pinned[2048] == 1 && pinned[4095] == 1);
    GIVES(cudaSuccess, cudaMemcpy(seen, mapped, 4096, cudaMemcpyDeviceToHost));
    HOLDS(seen[0] == 3 && seen[4095] == 3);
    GIVES(cudaSuccess, cudaMemset(mapped, 4, 5000));
    HOLDS(own[99] == 0 && own[100] == 4 && own[5099] == 4 && own[5100] == 0);
    GIVES(cudaSuccess, cudaMemset(managed, 5, 16));
    HOLDS(managed[0] == 5 && managed[15] == 5 && managed[16] == 1);
    GIVES(cudaSuccess, cudaHostUnregister(own + 100));
    HOLDS(own[100] == 4);
    return finish();
}
