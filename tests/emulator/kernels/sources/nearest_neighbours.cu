// Distances of places on the map from one place, the root of a sum of squares.
// flags: -fmad=false

struct Place {
    float latitude, longitude;
};

extern "C" __global__ void nearest_neighbours(const Place* places, float* distances, int count, float latitude, float longitude)
{
    const int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
    if (i < count) {
        const Place* place = places + i;
        distances[i] = sqrtf((latitude - place->latitude) * (latitude - place->latitude) + (longitude - place->longitude) * (longitude - place->longitude));
    }
}
