/* NVRTC: every program compiles, to nothing. */
#include "stub.h"

enum { IMAGE_BYTES = 16 };

EXPORT int nvrtcVersion(int *major, int *minor)
{
	*major = SIMCUDA_CUDA_VERSION / 1000;
	*minor = SIMCUDA_CUDA_VERSION % 1000 / 10;
	return 0;
}

EXPORT const char *nvrtcGetErrorString(int result)
{
	return result == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}

EXPORT int nvrtcDestroyProgram(void **program)
{
	free(*program);
	*program = NULL;
	return 0;
}

static int image_size(size_t *bytes)
{
	*bytes = IMAGE_BYTES;
	return 0;
}

static int image(char *code)
{
	memset(code, 0, IMAGE_BYTES);
	return 0;
}

EXPORT int nvrtcGetPTXSize(void *program, size_t *bytes)
{
	(void)program;
	return image_size(bytes);
}

EXPORT int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
	(void)program;
	return image_size(bytes);
}

EXPORT int nvrtcGetPTX(void *program, char *code)
{
	(void)program;
	return image(code);
}

EXPORT int nvrtcGetCUBIN(void *program, char *code)
{
	(void)program;
	return image(code);
}

EXPORT int nvrtcGetProgramLogSize(void *program, size_t *bytes)
{
	(void)program;
	*bytes = 1;
	return 0;
}

EXPORT int nvrtcGetProgramLog(void *program, char *log)
{
	(void)program;
	log[0] = '\0';
	return 0;
}

EXPORT int nvrtcGetLoweredName(void *program, const char *expression, const char **name)
{
	(void)program;
	*name = expression;
	return 0;
}
