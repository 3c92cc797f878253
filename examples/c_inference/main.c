/* Runs an engine file with Octet's C interface and prints the time of every layer. */
#include <octet/octet.h>
#include <stdio.h>
#include <stdlib.h>

static void check(octet_status status) {
  if (status == OCTET_OK) return;
  fprintf(stderr, "%s\n", octet_last_error());
  exit(1);
}

/* Memory for tensor `index`, filled with `value`. */
static float* memory_for(const octet_tensor_info* info, float value) {
  float* data = malloc((size_t)info->size * sizeof(float));
  if (data == NULL) exit(1);
  for (int64_t i = 0; i < info->size; ++i) data[i] = value;
  return data;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.octet [THREADS]\n", argv[0]);
    return 2;
  }
  octet_engine* engine = NULL;
  check(octet_engine_load(argv[1], &engine));
  octet_context_options options = OCTET_CONTEXT_OPTIONS_INIT;
  if (argc > 2) options.threads = atoi(argv[2]);
  octet_context* context = NULL;
  check(octet_context_create(engine, &options, &context));

  float* tensors[64];
  int32_t count = 0;
  const int32_t inputs = octet_engine_input_count(engine), outputs = octet_engine_output_count(engine);
  if (inputs + outputs > 64) return 1;
  for (int32_t i = 0; i < inputs; ++i) {
    octet_tensor_info info = OCTET_TENSOR_INFO_INIT;
    check(octet_engine_input(engine, i, &info));
    tensors[count] = memory_for(&info, 0.5f);
    check(octet_context_bind_input(context, i, tensors[count++]));
  }
  for (int32_t i = 0; i < outputs; ++i) {
    octet_tensor_info info = OCTET_TENSOR_INFO_INIT;
    check(octet_engine_output(engine, i, &info));
    tensors[count] = memory_for(&info, 0.0f);
    check(octet_context_bind_output(context, i, tensors[count++]));
  }
  check(octet_context_run(context));
  printf("Octet %s, %s, %d thread(s)\nfirst output: %g\n", octet_version(), octet_context_isa(context),
         (int)octet_context_threads(context), (double)tensors[inputs][0]);

  int32_t layers = 0;
  check(octet_context_profile(context, 10, &layers));
  for (int32_t i = 0; i < layers; ++i) {
    octet_layer_report layer = OCTET_LAYER_REPORT_INIT;
    check(octet_context_layer(context, i, &layer));
    printf("%10.1f us  %-5s %-24s %s\n", layer.microseconds, layer.precision, layer.kernel, layer.name);
  }
  octet_context_free(context);
  octet_engine_free(engine);
  for (int32_t i = 0; i < count; ++i) free(tensors[i]);
  return 0;
}
