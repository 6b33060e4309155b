/* A libcuda.so.1 that knows no memory and answers at once, for studies/device_cost.py: what is left of a call's cost is
 * palmette's part. Without a context, as of a program that loads the driver and makes none.
 */
#include <stddef.h>

#define ANSWER(name, code) \
    int name(void) { return code; }

enum { success = 0, not_initialized = 3, not_supported = 801 };

ANSWER(cuDriverGetVersion, success)
ANSWER(cuGetErrorName, not_supported)
ANSWER(cuDeviceGetCount, not_initialized)
ANSWER(cuDeviceGetName, not_initialized)
ANSWER(cuDeviceGetPCIBusId, not_initialized)
ANSWER(cuDevicePrimaryCtxGetState, not_initialized)
ANSWER(cuDevicePrimaryCtxRetain, not_initialized)
ANSWER(cuDevicePrimaryCtxRelease_v2, not_initialized)
ANSWER(cuCtxGetCurrent, not_initialized)
ANSWER(cuCtxGetDevice, not_initialized)
ANSWER(cuCtxPushCurrent_v2, not_initialized)
ANSWER(cuCtxPopCurrent_v2, not_initialized)
ANSWER(cuPointerGetAttributes, not_initialized)
ANSWER(cuPointerGetAttribute, not_initialized)
ANSWER(cuMemGetAddressRange_v2, not_initialized)
ANSWER(cuStreamCreate, not_initialized)
ANSWER(cuStreamDestroy_v2, not_initialized)
ANSWER(cuStreamSynchronize, not_initialized)
ANSWER(cuEventCreate, not_initialized)
ANSWER(cuEventDestroy_v2, not_initialized)
ANSWER(cuEventRecord, not_initialized)
ANSWER(cuEventQuery, not_initialized)
ANSWER(cuEventSynchronize, not_initialized)
ANSWER(cuMemcpyAsync, not_initialized)
ANSWER(cuMemcpy2DAsync_v2, not_initialized)
ANSWER(cuMemHostRegister_v2, not_initialized)
ANSWER(cuMemHostUnregister, not_initialized)
ANSWER(cuMemAlloc_v2, not_initialized)
ANSWER(cuMemFree_v2, not_initialized)
