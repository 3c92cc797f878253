/* Octet's inference engine in C: everything of octet/engine.h.
 *
 *   octet_engine* engine = NULL;
 *   octet_context* context = NULL;
 *   if (octet_engine_load("resnet18.octet", &engine) != OCTET_OK ||
 *       octet_context_create(engine, NULL, &context) != OCTET_OK) {
 *     fprintf(stderr, "%s\n", octet_last_error());
 *     exit(1);
 *   }
 *   octet_context_bind_input(context, 0, image);     the caller's floats, used in place
 *   octet_context_bind_output(context, 0, logits);
 *   while (read_camera(image)) octet_context_run(context);
 *   octet_context_free(context);
 *   octet_engine_free(engine);
 *
 * Every tensor is dense in the order of its shape (NCHW for images), of float32 unless it is bound with a type.
 * Functions that can fail return a status; octet_last_error() then gives one sentence. No C++ exception leaves them.
 * Structs carry their size in the first member, so that programs built with another version of this header keep
 * working: start from the ..._INIT macros. Pointers given out live as long as the object they came from. Needs C99; C++
 * may include it. */
#ifndef OCTET_OCTET_H
#define OCTET_OCTET_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octet_engine octet_engine;         /* a loaded file; any thread may use it */
typedef struct octet_context octet_context;       /* memory and threads for one inference at a time */
typedef struct octet_throughput octet_throughput; /* single-threaded contexts behind a queue; any thread may use it */

typedef enum octet_status {
  OCTET_OK = 0,
  OCTET_ERROR = 1,      /* a person can mend it: octet_last_error() says how */
  OCTET_INTERNAL = 2,   /* a fault of Octet */
  OCTET_QUEUE_FULL = 3, /* octet_throughput_submit without waiting */
} octet_status;

/* One sentence about the last failure in this thread; empty when there was none. */
const char* octet_last_error(void);
/* "0.1.0" */
const char* octet_version(void);

/* ---- engine ---- */

/* Replace a file that is in use by renaming another one over it, not by writing over it (octet/engine.h). */
octet_status octet_engine_load(const char* path, octet_engine** engine);
/* The same from memory (copied); `name` is for messages and may be NULL. */
octet_status octet_engine_from_memory(const void* bytes, size_t size, const char* name, octet_engine** engine);
/* Contexts may outlive their engine. NULL is allowed in all ..._free functions. */
void octet_engine_free(octet_engine* engine);

/* Of the elements of a tensor in memory. A bool is a byte that is 0 or 1. */
typedef enum octet_data_type {
  OCTET_FLOAT32 = 0,
  OCTET_UINT8 = 1,
  OCTET_INT8 = 2,
  OCTET_INT32 = 3,
  OCTET_INT64 = 4,
  OCTET_BOOL = 5,
} octet_data_type;

typedef struct octet_tensor_info {
  size_t struct_size;
  const char* name;
  const int64_t* shape;
  int32_t rank;
  int64_t size; /* number of elements; -1 (and -1 in the shape): it comes up in a run */
  int32_t type; /* octet_data_type: what the engine itself reads or writes there */
} octet_tensor_info;
#define OCTET_TENSOR_INFO_INIT \
  { sizeof(octet_tensor_info), NULL, NULL, 0, 0, OCTET_FLOAT32 }

int32_t octet_engine_input_count(const octet_engine* engine);
int32_t octet_engine_output_count(const octet_engine* engine);
octet_status octet_engine_input(const octet_engine* engine, int32_t index, octet_tensor_info* info);
octet_status octet_engine_output(const octet_engine* engine, int32_t index, octet_tensor_info* info);

/* 1: sizes of the outputs come up in a run, and octet_context_result() gives them; there is no throughput then. */
int32_t octet_engine_finds_sizes(const octet_engine* engine);

/* Sizes that the file was compiled for (octet compile --profiles). The functions above tell of the first, number 0. */
int32_t octet_engine_profile_count(const octet_engine* engine);
octet_status octet_engine_profile_input(const octet_engine* engine, int32_t profile, int32_t index,
                                        octet_tensor_info* info);
octet_status octet_engine_profile_output(const octet_engine* engine, int32_t profile, int32_t index,
                                         octet_tensor_info* info);
/* The profile whose first input has this shape. */
octet_status octet_engine_find_profile(const octet_engine* engine, const int64_t* shape, int32_t rank,
                                       int32_t* profile);

/* ---- what the model carries ---- */

/* The value of a metadata entry ("octet.stage"); NULL: there is none. docs/metadata.md lists those that Octet writes.
 */
const char* octet_engine_metadata(const octet_engine* engine, const char* key);
/* All of them, sorted by key. */
int32_t octet_engine_metadata_count(const octet_engine* engine);
octet_status octet_engine_metadata_at(const octet_engine* engine, int32_t index, const char** key, const char** value);

/* What the entries say of images and classes; NULL, 0 and "" stand for what the file does not say. */
typedef struct octet_model_info {
  size_t struct_size;
  const char* task;           /* "classification", "detectnet_v2", "detector" */
  const char* const* classes; /* names in the order of the scores */
  int32_t class_count;
  int32_t channel_count;     /* of mean and of std, one for each channel of the input; 0: not said */
  const double *mean, *std;  /* the input is (x / 255 - mean) / std of pixels x, in the order of color_order */
  const char* color_order;   /* "rgb", "bgr", "gray" */
  const char* layout;        /* "NCHW", "NHWC" */
  const char* resize;        /* "stretch", "center_crop", "tao": octet/engine.h explains them */
  const char* interpolation; /* "antialias", "bilinear", "tensorflow1" */
  int64_t shorter_side;      /* of center_crop, pixels */
  double central_fraction;   /* of stretch: middle part of height and width */
  int32_t exif_orientation;  /* 1: images are turned as their EXIF data say first */
  const char* decoder;       /* JSON: how the task reads the outputs */
} octet_model_info;
#define OCTET_MODEL_INFO_INIT \
  { sizeof(octet_model_info), NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1.0, 0, NULL }
/* OCTET_ERROR naming the entry that is malformed. */
octet_status octet_engine_model_info(const octet_engine* engine, octet_model_info* info);

/* ---- contexts: the shortest time for one inference ---- */

/* Threads of the caller: runs work(task, part) once for every part in 0..parts-1, together or in turn, and returns when
   all have returned. One call for an inference. */
typedef void (*octet_pool_function)(void* user, int parts, void (*work)(void* task, int part), void* task);

typedef struct octet_context_options {
  size_t struct_size;
  int32_t threads;     /* the caller's included; 0: one per entry of `cpus`, or as many CPUs as the process may use */
  const char* isa;     /* "scalar", "generic", "avx2", "avx_vnni", "avx512_vnni", "amx_int8"; NULL: the CPU's best */
  const int32_t* cpus; /* thread i > 0 runs on CPU cpus[i % cpu_count] alone; NULL: where the system wants */
  int32_t cpu_count;
  octet_pool_function pool; /* these threads instead of own ones; NULL: own ones */
  void* pool_user;
  int32_t pool_concurrent; /* makes no difference any more */
  int64_t idle_spin_us;    /* how long waiting threads look for work before they sleep; negative: about 50 */
  int32_t profile;         /* which size, where the file has several */
} octet_context_options;
#define OCTET_CONTEXT_OPTIONS_INIT \
  { sizeof(octet_context_options), 0, NULL, NULL, 0, NULL, NULL, 0, -1, 0 }

/* `options` may be NULL. Contexts share the weights. */
octet_status octet_context_create(const octet_engine* engine, const octet_context_options* options,
                                  octet_context** context);
void octet_context_free(octet_context* context);

/* The caller's memory, read and written in place by every following run. */
octet_status octet_context_bind_input(octet_context* context, int32_t index, const float* data);
octet_status octet_context_bind_output(octet_context* context, int32_t index, float* data);

/* The same for memory of another type (octet_data_type), converted in every run: an integer of an input is that number;
 * an output is rounded to the nearest integer, of two as near the even one, and what the type does not have becomes its
 * nearest (NaN: 0). */
octet_status octet_context_bind_typed_input(octet_context* context, int32_t index, const void* data, int32_t type);
octet_status octet_context_bind_typed_output(octet_context* context, int32_t index, void* data, int32_t type);

/* Channel c of a pixel is float(pixel[channel[c]]) * scale[c] + offset[c]. Strides in bytes, not negative; 0: no gaps.
 */
typedef struct octet_image_format {
  size_t struct_size;
  int64_t pixel_stride, row_stride, image_stride;
  int32_t channel[4]; /* {2, 1, 0, 3} reads BGR as RGB */
  float scale[4], offset[4];
} octet_image_format;
#define OCTET_IMAGE_FORMAT_INIT                                                    \
  {                                                                                \
    sizeof(octet_image_format), 0, 0, 0, {0, 1, 2, 3}, {1.0f, 1.0f, 1.0f, 1.0f}, { \
      0.0f, 0.0f, 0.0f, 0.0f                                                       \
    }                                                                              \
  }

/* 8-bit pixels (N x H x W x C) for an input of rank 4 with up to four channels. `format` may be NULL. */
octet_status octet_context_bind_image(octet_context* context, int32_t index, const uint8_t* pixels,
                                      const octet_image_format* format);

/* The format of pixels in the order of red, green and blue (or gray ones) for the mean, deviation and order of channels
 * that the file names; OCTET_ERROR where it names none. */
octet_status octet_engine_image_format(const octet_engine* engine, int32_t input, octet_image_format* format);

/* Runs on the bound tensors. Allocates nothing and takes no lock. One caller at a time. */
octet_status octet_context_run(octet_context* context);

/* An output of the latest run, until the next one. Where sizes come up in a run (octet/engine.h) nobody binds outputs,
   and this is the way to them. */
typedef struct octet_tensor_view {
  size_t struct_size;
  const void* data; /* dense, in the order of the shape */
  const int64_t* shape;
  int32_t rank;
  int64_t size; /* number of elements */
  int32_t type; /* octet_data_type */
} octet_tensor_view;
#define OCTET_TENSOR_VIEW_INIT \
  { sizeof(octet_tensor_view), NULL, NULL, 0, 0, OCTET_FLOAT32 }
octet_status octet_context_result(octet_context* context, int32_t index, octet_tensor_view* view);

int32_t octet_context_threads(const octet_context* context);
const char* octet_context_isa(const octet_context* context);

typedef struct octet_layer_report {
  size_t struct_size;
  const char *name, *op, *precision, *kernel, *reason; /* until the next profile of this context */
  double microseconds;                                 /* mean */
} octet_layer_report;
#define OCTET_LAYER_REPORT_INIT \
  { sizeof(octet_layer_report), NULL, NULL, NULL, NULL, NULL, 0.0 }

/* Runs `runs` times on the bound tensors and times every step. */
octet_status octet_context_profile(octet_context* context, int32_t runs, int32_t* layer_count);
octet_status octet_context_layer(const octet_context* context, int32_t index, octet_layer_report* report);

/* ---- throughput: the most inferences a second ---- */

typedef struct octet_throughput_options {
  size_t struct_size;
  int32_t workers;     /* 0: one per entry of `cpus`, or per CPU that the process may use */
  const int32_t* cpus; /* worker i runs on CPU cpus[i % cpu_count] alone; NULL: Octet decides */
  int32_t cpu_count;
  int32_t queue;   /* inferences that may wait for a worker; 0: two per worker */
  const char* isa; /* NULL: the best one */
  int32_t profile; /* which size, where the file has several */
} octet_throughput_options;
#define OCTET_THROUGHPUT_OPTIONS_INIT \
  { sizeof(octet_throughput_options), 0, NULL, 0, 0, NULL, 0 }

octet_status octet_throughput_create(const octet_engine* engine, const octet_throughput_options* options,
                                     octet_throughput** throughput);
/* Finishes what was submitted. */
void octet_throughput_free(octet_throughput* throughput);
/* Arrays of input_count and output_count pointers; the tensors must stay until the inference is done. Where the queue
 * is full: waits, or returns OCTET_QUEUE_FULL if `wait` is 0. */
octet_status octet_throughput_submit(octet_throughput* throughput, const float* const* inputs, float* const* outputs,
                                     int32_t wait, uint64_t* ticket);
/* The same, and done(user, ticket) is called when the inference is done, by the thread that did it and before
 * octet_throughput_wait returns. It must not wait for the throughput's inferences, and no exception may leave it. */
typedef void (*octet_completion_function)(void* user, uint64_t ticket);
octet_status octet_throughput_submit_then(octet_throughput* throughput, const float* const* inputs,
                                          float* const* outputs, int32_t wait, octet_completion_function done,
                                          void* user, uint64_t* ticket);
octet_status octet_throughput_wait(octet_throughput* throughput, uint64_t ticket);
octet_status octet_throughput_wait_all(octet_throughput* throughput);
int32_t octet_throughput_workers(const octet_throughput* throughput);

#ifdef __cplusplus
}
#endif
#endif
