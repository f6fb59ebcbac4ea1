/* cuDNN's recurrent networks: where the parameters lie in the one buffer that holds them.
 * PyTorch lays out its weights by asking. */
#include "stub.h"

enum { MAX_DIMS = 8 };

struct tensor {
	int type;
	int dims;
	int size[MAX_DIMS];
	int stride[MAX_DIMS];
};

EXPORT int cudnnSetTensorNdDescriptor(struct tensor *tensor, int type, int dims, const int *size,
				      const int *stride)
{
	tensor->type = type;
	tensor->dims = dims < MAX_DIMS ? dims : MAX_DIMS;
	memcpy(tensor->size, size, tensor->dims * sizeof(int));
	memcpy(tensor->stride, stride, tensor->dims * sizeof(int));
	return 0;
}

EXPORT int cudnnGetTensorNdDescriptor(const struct tensor *tensor, int room, int *type, int *dims,
				      int *size, int *stride)
{
	int count = tensor->dims < room ? tensor->dims : room;

	*type = tensor->type;
	*dims = tensor->dims;
	memcpy(size, tensor->size, count * sizeof(int));
	memcpy(stride, tensor->stride, count * sizeof(int));
	return 0;
}

struct network {
	int cell;
	int has_bias;
	int directions;
	int type;
	int input;
	int hidden;
	int output; /* hidden, or less with a projection */
	int layers;
};

EXPORT int cudnnSetRNNDescriptor_v8(struct network *network, int algorithm, int cell, int bias,
				    int direction, int input_mode, int type, int math, int math_type,
				    int32_t input, int32_t hidden, int32_t projection, int32_t layers,
				    void *dropout, uint32_t flags)
{
	(void)algorithm, (void)input_mode, (void)math, (void)math_type, (void)dropout, (void)flags;
	*network = (struct network){
		.cell = cell,
		.has_bias = bias != 0,
		.directions = direction == 0 ? 1 : 2,
		.type = type,
		.input = input,
		.hidden = hidden,
		.output = projection != 0 ? projection : hidden,
		.layers = layers,
	};
	return 0;
}

/* Gates of RNN_RELU, RNN_TANH, LSTM, GRU: each has a matrix for the input and one for
 * the state before. */
static int gates(const struct network *network)
{
	static const int of_cell[] = { 1, 1, 4, 3 };

	return of_cell[network->cell & 3];
}

static int has_projection(const struct network *network)
{
	return network->output != network->hidden;
}

static size_t element_bytes(const struct network *network)
{
	enum { HALF = 2, DOUBLE = 1, BFLOAT16 = 9 };

	switch (network->type) {
	case DOUBLE:
		return 8;
	case HALF:
	case BFLOAT16:
		return 2;
	default:
		return 4;
	}
}

/* Columns of the matrix `id` in a layer; directions count as layers. */
static int columns(const struct network *network, int layer, int id)
{
	if (id >= 2 * gates(network))
		return network->hidden;
	if (id >= gates(network))
		return network->output;
	return layer < network->directions ? network->input : network->output * network->directions;
}

static int rows(const struct network *network, int id)
{
	return id >= 2 * gates(network) ? network->output : network->hidden;
}

static int matrices(const struct network *network)
{
	return 2 * gates(network) + has_projection(network);
}

/* Elements of all matrices before matrix `id` of `layer`. */
static size_t matrix_offset(const struct network *network, int layer, int id)
{
	size_t elements = 0;

	for (int l = 0; l <= layer; l++)
		for (int m = 0; m < (l < layer ? matrices(network) : id); m++)
			elements += (size_t)rows(network, m) * columns(network, l, m);
	return elements;
}

/* Biases follow all matrices: two of each gate, none for a projection. */
static size_t bias_offset(const struct network *network, int layer, int id)
{
	int layers = network->layers * network->directions;
	size_t before = (size_t)layer * 2 * gates(network) + id;

	return matrix_offset(network, layers, 0) + before * network->hidden;
}

EXPORT int cudnnGetRNNWeightSpaceSize(void *handle, const struct network *network, size_t *bytes)
{
	int layers = network->layers * network->directions;
	size_t elements = network->has_bias ? bias_offset(network, layers, 0) : matrix_offset(network, layers, 0);

	(void)handle;
	*bytes = elements * element_bytes(network);
	return 0;
}

/* Stores where a parameter is; callers ask for matrix and bias together or one by one. */
static void store(struct tensor *tensor, void **address, struct tensor description, void *where)
{
	if (tensor != NULL)
		*tensor = description;
	if (address != NULL)
		*address = where;
}

static struct tensor matrix_of(const struct network *network, int height, int width)
{
	return (struct tensor){
		.type = network->type,
		.dims = 3,
		.size = { 1, height, width },
		.stride = { height * width, width, 1 },
	};
}

EXPORT int cudnnGetRNNWeightParams(void *handle, const struct network *network, int32_t layer, size_t bytes,
				   char *weights, int32_t id, struct tensor *matrix, void **matrix_address,
				   struct tensor *bias, void **bias_address)
{
	size_t size = element_bytes(network);

	(void)handle, (void)bytes;
	store(matrix, matrix_address, matrix_of(network, rows(network, id), columns(network, layer, id)),
	      weights + matrix_offset(network, layer, id) * size);
	if (network->has_bias && id < 2 * gates(network))
		store(bias, bias_address, matrix_of(network, network->hidden, 1),
		      weights + bias_offset(network, layer, id) * size);
	else
		store(bias, bias_address, (struct tensor){ .type = network->type }, NULL);
	return 0;
}

EXPORT int cudnnGetRNNTempSpaceSizes(void *handle, const struct network *network, int mode, void *x,
				     size_t *work, size_t *reserve)
{
	(void)handle, (void)network, (void)mode, (void)x;
	if (work != NULL)
		*work = WORKSPACE_BYTES;
	if (reserve != NULL)
		*reserve = WORKSPACE_BYTES;
	return 0;
}
