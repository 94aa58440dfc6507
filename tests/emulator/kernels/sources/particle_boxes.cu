// Forces between particles of a box and its neighbours, in double precision with an exponential.

struct Particle {
    double v, x, y, z;
};

struct Box {
    int first;
    int neighbours;
    int neighbour[4];
};

extern "C" __global__ void particle_boxes(const Box* boxes, const Particle* particles, const double* charges, Particle* forces, double alpha, int per_box)
{
    __shared__ Particle own[32];
    __shared__ Particle others[32];
    __shared__ double other_charges[32];
    const Box box = boxes[blockIdx.x];
    const int t = threadIdx.x;
    const double factor = 2.0 * alpha * alpha;
    for (int k = t; k < per_box; k += blockDim.x)
        own[k] = particles[box.first + k];
    __syncthreads();
    for (int step = 0; step < 1 + box.neighbours; ++step) {
        const int other = step == 0 ? blockIdx.x : box.neighbour[step - 1];
        const int first = boxes[other].first;
        for (int k = t; k < per_box; k += blockDim.x) {
            others[k] = particles[first + k];
            other_charges[k] = charges[first + k];
        }
        __syncthreads();
        for (int k = t; k < per_box; k += blockDim.x) {
            Particle force = forces[box.first + k];
            for (int j = 0; j < per_box; ++j) {
                const double product = own[k].x * others[j].x + own[k].y * others[j].y + own[k].z * others[j].z;
                const double distance = own[k].v + others[j].v - product;
                const double weight = exp(-factor * distance);
                const double pull = 2.0 * weight;
                force.v += other_charges[j] * weight;
                force.x += other_charges[j] * pull * (own[k].x - others[j].x);
                force.y += other_charges[j] * pull * (own[k].y - others[j].y);
                force.z += other_charges[j] * pull * (own[k].z - others[j].z);
            }
            forces[box.first + k] = force;
        }
        __syncthreads();
    }
}
