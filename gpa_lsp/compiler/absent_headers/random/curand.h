/* In place of cuRAND's header where it is not installed: what it names. Its generators for the host come as machine code, and are not here. */
#ifndef GPA_LSP_CURAND_H
#define GPA_LSP_CURAND_H
typedef enum { CURAND_STATUS_SUCCESS = 0 } curandStatus_t, curandStatus;
#endif
