/* Octet's compiler in C: from an ONNX file to an engine file (octet/compiler.h). Of liboctet_compiler.so.
 *
 *   if (octet_compile_file("model.qdq.onnx", "model.octet", NULL) != OCTET_OK)
 *     fprintf(stderr, "%s\n", octet_compile_last_error());
 *
 * Needs C99; C++ may include it. */
#ifndef OCTET_OCTET_COMPILER_H
#define OCTET_OCTET_COMPILER_H
#include <octet/octet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octet_compile_options {
  size_t struct_size;
  int64_t batch;                   /* images at a time; 0: as the file says, 1 where it leaves that open */
  const char* const* input_shapes; /* "1x3x224x224" or "NAME:1x3x224x224", of inputs whose sizes the file leaves open */
  int32_t input_shape_count;
  const char* isa;      /* that kernels are chosen for; NULL: the best of this CPU. The engine runs on every CPU */
  int32_t threads;      /* that kernels are chosen for; 0: as many CPUs as this process may use */
  int32_t time_kernels; /* 1: chooses kernels by running them for some seconds */
} octet_compile_options;
#define OCTET_COMPILE_OPTIONS_INIT \
  { sizeof(octet_compile_options), 0, NULL, 0, NULL, 0, 0 }

/* Writes the engine file whole or not at all, in place of one that is there. `options` may be NULL. */
octet_status octet_compile_file(const char* onnx_path, const char* engine_path, const octet_compile_options* options);
/* The bytes of an ONNX file to those of an engine file, for octet_engine_from_memory; octet_compile_free() frees them.
 * `name` is for messages and may be NULL. */
octet_status octet_compile_memory(const void* onnx, size_t size, const char* name, const octet_compile_options* options,
                                  void** engine, size_t* engine_size);
void octet_compile_free(void* engine);
/* One sentence about the last failure of these functions in this thread; empty when there was none. */
const char* octet_compile_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
