/* Arrays, copies of them, and texture and surface objects: those of the runtime. */
#define _GNU_SOURCE
#include "driver.h"

#include <string.h>

static cudaArray_t array_of(CUarray array) { return (cudaArray_t)array; }

/* Bits of each channel, as the runtime describes them; no bits for a format it has not. */
static struct cudaChannelFormatDesc describe_channels(CUarray_format format, unsigned int channels) {
    int bits = 0;
    enum cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: bits = 8; break;
    case CU_AD_FORMAT_UNSIGNED_INT16: bits = 16; break;
    case CU_AD_FORMAT_UNSIGNED_INT32: bits = 32; break;
    case CU_AD_FORMAT_SIGNED_INT8: bits = 8, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_SIGNED_INT16: bits = 16, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_SIGNED_INT32: bits = 32, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_HALF: bits = 16, kind = cudaChannelFormatKindFloat; break;
    case CU_AD_FORMAT_FLOAT: bits = 32, kind = cudaChannelFormatKindFloat; break;
    default: break;
    }
    return (struct cudaChannelFormatDesc){bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}
static CUarray_format find_format(const struct cudaChannelFormatDesc *channels) {
    static const CUarray_format formats[] = {
        CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT8,
        CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_SIGNED_INT32,   CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT,
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct cudaChannelFormatDesc one = describe_channels(formats[i], 1);
        if (one.x == channels->x && one.f == channels->f)
            return formats[i];
    }
    return CU_AD_FORMAT_FLOAT;
}

PUBLIC CUresult cuArray3DCreate(CUarray *into, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
    REFUSE_IF(wanted == NULL || (wanted->NumChannels != 1 && wanted->NumChannels != 2 && wanted->NumChannels != 4), CUDA_ERROR_INVALID_VALUE);
    struct cudaChannelFormatDesc channels = describe_channels(wanted->Format, wanted->NumChannels);
    if (channels.x == 0)
        return refuse_call("an array of this format");
    struct cudaExtent extent = {wanted->Width, wanted->Height, wanted->Depth};
    CALL(cudaMalloc3DArray((cudaArray_t *)into, &channels, extent, wanted->Flags)); /* flags have the same numbers */
}
PUBLIC CUresult cuArrayCreate(CUarray *into, const CUDA_ARRAY_DESCRIPTOR *wanted) {
    REFUSE_IF(wanted == NULL, CUDA_ERROR_INVALID_VALUE);
    CUDA_ARRAY3D_DESCRIPTOR deep = {
        .Width = wanted->Width, .Height = wanted->Height, .Format = wanted->Format, .NumChannels = wanted->NumChannels};
    return cuArray3DCreate(into, &deep);
}
PUBLIC CUresult cuArrayDestroy(CUarray array) { CALL(cudaFreeArray(array_of(array))); }
PUBLIC CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *into, CUarray array) {
    struct cudaChannelFormatDesc channels;
    struct cudaExtent extent;
    unsigned int flags;
    cudaError_t error = cudaArrayGetInfo(&channels, &extent, &flags, array_of(array));
    if (error != cudaSuccess || into == NULL)
        return error != cudaSuccess ? translate(error) : CUDA_ERROR_INVALID_VALUE;
    unsigned int count = (channels.x > 0) + (channels.y > 0) + (channels.z > 0) + (channels.w > 0);
    *into = (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width, .Height = extent.height, .Depth = extent.depth,
                                      .Format = find_format(&channels), .NumChannels = count, .Flags = flags};
    CALL(error);
}
PUBLIC CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR *into, CUarray array) {
    CUDA_ARRAY3D_DESCRIPTOR deep;
    CUresult error = cuArray3DGetDescriptor(&deep, array);
    if (error != CUDA_SUCCESS || into == NULL)
        return error != CUDA_SUCCESS ? error : CUDA_ERROR_INVALID_VALUE;
    *into = (CUDA_ARRAY_DESCRIPTOR){
        .Width = deep.Width, .Height = deep.Height, .Format = deep.Format, .NumChannels = deep.NumChannels};
    return error;
}

/* One side of a copy: an array, whose places count elements, or a pointer, whose places count bytes. */
struct side {
    cudaArray_t array;
    struct cudaPitchedPtr pointer;
    struct cudaPos place;
};
static cudaError_t find_side(struct side *side, CUmemorytype type, CUarray array, const void *host, CUdeviceptr address,
                             size_t pitch, size_t height, struct cudaPos place, size_t *element_bytes) {
    *side = (struct side){.place = place};
    if (type != CU_MEMORYTYPE_ARRAY) {
        void *base = type == CU_MEMORYTYPE_HOST ? (void *)host : (void *)(uintptr_t)address;
        side->pointer = (struct cudaPitchedPtr){.ptr = base, .pitch = pitch, .xsize = pitch, .ysize = height};
        return cudaSuccess;
    }
    struct cudaChannelFormatDesc channels;
    cudaError_t error = cudaArrayGetInfo(&channels, NULL, NULL, array_of(array));
    if (error != cudaSuccess)
        return error;
    *element_bytes = (size_t)(channels.x + channels.y + channels.z + channels.w) / 8;
    side->array = array_of(array);
    side->place.x /= *element_bytes;
    return place.x % *element_bytes == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
PUBLIC CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *box, CUstream stream) {
    struct side from, to;
    size_t element_bytes = 1;
    REFUSE_IF(box == NULL, CUDA_ERROR_INVALID_VALUE);
    cudaError_t error = find_side(&from, box->srcMemoryType, box->srcArray, box->srcHost, box->srcDevice, box->srcPitch,
                                  box->srcHeight, (struct cudaPos){box->srcXInBytes, box->srcY, box->srcZ}, &element_bytes);
    if (error == cudaSuccess)
        error = find_side(&to, box->dstMemoryType, box->dstArray, box->dstHost, box->dstDevice, box->dstPitch, box->dstHeight,
                          (struct cudaPos){box->dstXInBytes, box->dstY, box->dstZ}, &element_bytes);
    if (error != cudaSuccess || box->WidthInBytes % element_bytes != 0)
        return error != cudaSuccess ? translate(error) : CUDA_ERROR_INVALID_VALUE;
    struct cudaMemcpy3DParms parameters = {
        .srcArray = from.array, .srcPos = from.place, .srcPtr = from.pointer, .dstArray = to.array, .dstPos = to.place,
        .dstPtr = to.pointer, .extent = {box->WidthInBytes / element_bytes, box->Height, box->Depth}, .kind = cudaMemcpyDefault};
    CALL(cudaMemcpy3DAsync(&parameters, stream));
}
PUBLIC CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *box) { return cuMemcpy3DAsync_v2(box, NULL); }
PUBLIC CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *box, CUstream stream) {
    REFUSE_IF(box == NULL, CUDA_ERROR_INVALID_VALUE);
    CUDA_MEMCPY3D deep = {
        .srcXInBytes = box->srcXInBytes, .srcY = box->srcY, .srcMemoryType = box->srcMemoryType, .srcHost = box->srcHost,
        .srcDevice = box->srcDevice, .srcArray = box->srcArray, .srcPitch = box->srcPitch, .dstXInBytes = box->dstXInBytes,
        .dstY = box->dstY, .dstMemoryType = box->dstMemoryType, .dstHost = box->dstHost, .dstDevice = box->dstDevice,
        .dstArray = box->dstArray, .dstPitch = box->dstPitch, .WidthInBytes = box->WidthInBytes, .Height = box->Height, .Depth = 1};
    return cuMemcpy3DAsync_v2(&deep, stream);
}
PUBLIC CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *box) { return cuMemcpy2DAsync_v2(box, NULL); }
PUBLIC CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *box) { return cuMemcpy2D_v2(box); }
PUBLIC CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t size) {
    CALL(cudaMemcpy2DToArray(array_of(to), offset, 0, from, size, size, 1, cudaMemcpyDefault));
}
PUBLIC CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t size) {
    CALL(cudaMemcpy2DFromArray(to, size, array_of(from), offset, 0, size, 1, cudaMemcpyDefault));
}
PUBLIC CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t size) {
    return cuMemcpyHtoA_v2(to, offset, (const void *)(uintptr_t)from, size);
}
PUBLIC CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t size) {
    return cuMemcpyAtoH_v2((void *)(uintptr_t)to, from, offset, size);
}

static CUresult read_resource(struct cudaResourceDesc *into, const CUDA_RESOURCE_DESC *from) {
    REFUSE_IF(from == NULL, CUDA_ERROR_INVALID_VALUE);
    memset(into, 0, sizeof *into);
    switch (from->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        into->resType = cudaResourceTypeArray;
        into->res.array.array = array_of(from->res.array.hArray);
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_LINEAR:
        into->resType = cudaResourceTypeLinear;
        into->res.linear.devPtr = (void *)(uintptr_t)from->res.linear.devPtr;
        into->res.linear.desc = describe_channels(from->res.linear.format, from->res.linear.numChannels);
        into->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
        into->resType = cudaResourceTypePitch2D;
        into->res.pitch2D.devPtr = (void *)(uintptr_t)from->res.pitch2D.devPtr;
        into->res.pitch2D.desc = describe_channels(from->res.pitch2D.format, from->res.pitch2D.numChannels);
        into->res.pitch2D.width = from->res.pitch2D.width;
        into->res.pitch2D.height = from->res.pitch2D.height;
        into->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return CUDA_SUCCESS;
    default: return refuse_call("a texture of a mipmapped array");
    }
}
static int is_narrow_integer(const struct cudaResourceDesc *resource) {
    struct cudaChannelFormatDesc channels = resource->res.linear.desc;
    if (resource->resType == cudaResourceTypePitch2D)
        channels = resource->res.pitch2D.desc;
    else if (resource->resType == cudaResourceTypeArray)
        cudaGetChannelDesc(&channels, resource->res.array.array);
    return channels.f != cudaChannelFormatKindFloat && channels.x < 32;
}
PUBLIC CUresult cuTexObjectCreate(CUtexObject *into, const CUDA_RESOURCE_DESC *wanted, const CUDA_TEXTURE_DESC *how,
                                  const CUDA_RESOURCE_VIEW_DESC *view) {
    struct cudaResourceDesc resource;
    struct cudaTextureDesc texture = {0};
    CUresult error = how == NULL ? CUDA_ERROR_INVALID_VALUE : read_resource(&resource, wanted);
    if (error != CUDA_SUCCESS)
        return error;
    for (int i = 0; i < 3; i++)
        texture.addressMode[i] = (enum cudaTextureAddressMode)how->addressMode[i]; /* modes and filters have the same numbers */
    texture.filterMode = (enum cudaTextureFilterMode)how->filterMode;
    texture.normalizedCoords = (how->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    int is_integer = (how->flags & CU_TRSF_READ_AS_INTEGER) != 0 || !is_narrow_integer(&resource);
    texture.readMode = is_integer ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    memcpy(texture.borderColor, how->borderColor, sizeof texture.borderColor);
    CALL(cudaCreateTextureObject((cudaTextureObject_t *)into, &resource, &texture, NULL));
}
PUBLIC CUresult cuTexObjectDestroy(CUtexObject object) { CALL(cudaDestroyTextureObject(object)); }
PUBLIC CUresult cuSurfObjectCreate(CUsurfObject *into, const CUDA_RESOURCE_DESC *wanted) {
    struct cudaResourceDesc resource;
    CUresult error = read_resource(&resource, wanted);
    if (error != CUDA_SUCCESS)
        return error;
    CALL(cudaCreateSurfaceObject((cudaSurfaceObject_t *)into, &resource));
}
PUBLIC CUresult cuSurfObjectDestroy(CUsurfObject object) { CALL(cudaDestroySurfaceObject(object)); }
