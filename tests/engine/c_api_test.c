/* The C interface, used by a C program: argument 1 is an engine file with the input x (1 x 3 x 6 x 5) and the output y
 * (1 x 20 x 3 x 2), as write_small_engine.cc makes it. Exit status 0: everything holds. */
#include <math.h>
#include <octet/octet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                                            \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      fprintf(stderr, "line %d: %s does not hold (%s)\n", __LINE__, #condition, octet_last_error()); \
      ++failures;                                                                                    \
    }                                                                                                \
  } while (0)

#define EXPECT_ERROR(call, text)                                                                                 \
  do {                                                                                                           \
    const octet_status status = (call);                                                                          \
    if (status != OCTET_ERROR || strstr(octet_last_error(), text) == NULL) {                                     \
      fprintf(stderr, "line %d: status %d, '%s' lacks '%s'\n", __LINE__, (int)status, octet_last_error(), text); \
      ++failures;                                                                                                \
    }                                                                                                            \
  } while (0)

static void run_in_turn(void* user, int parts, void (*work)(void* task, int part), void* task) {
  ++*(int*)user;
  for (int part = 0; part < parts; ++part) work(task, part);
}

static void describe(const octet_engine* engine) {
  EXPECT(octet_engine_input_count(engine) == 1);
  EXPECT(octet_engine_output_count(engine) == 1);
  octet_tensor_info info = OCTET_TENSOR_INFO_INIT;
  EXPECT(octet_engine_input(engine, 0, &info) == OCTET_OK);
  EXPECT(strcmp(info.name, "x") == 0 && info.rank == 4 && info.shape[3] == 5 && info.size == 90);
  EXPECT(info.type == OCTET_FLOAT32);
  EXPECT(octet_engine_output(engine, 0, &info) == OCTET_OK);
  EXPECT(strcmp(info.name, "y") == 0 && info.size == 120);
  EXPECT_ERROR(octet_engine_input(engine, 1, &info), "no input 1");
  EXPECT_ERROR(octet_engine_output(engine, -1, &info), "no output -1");
  octet_tensor_info forgotten;
  memset(&forgotten, 0, sizeof forgotten);
  EXPECT_ERROR(octet_engine_input(engine, 0, &forgotten), "struct_size is 0");
}

static void tell_what_it_carries(const octet_engine* engine) {
  EXPECT(octet_engine_metadata_count(engine) == 8);
  EXPECT(strcmp(octet_engine_metadata(engine, "author"), "somebody") == 0);
  EXPECT(octet_engine_metadata(engine, "title") == NULL && octet_engine_metadata(NULL, "author") == NULL);
  const char *key = NULL, *value = NULL;
  EXPECT(octet_engine_metadata_at(engine, 0, &key, &value) == OCTET_OK);
  EXPECT(strcmp(key, "author") == 0 && strcmp(value, "somebody") == 0);
  EXPECT_ERROR(octet_engine_metadata_at(engine, 8, &key, &value), "no metadata entry 8");
  octet_model_info info = OCTET_MODEL_INFO_INIT;
  EXPECT(octet_engine_model_info(engine, &info) == OCTET_OK);
  EXPECT(strcmp(info.task, "classification") == 0 && info.class_count == 2);
  EXPECT(strcmp(info.classes[0], "cat") == 0 && strcmp(info.classes[1], "dog") == 0);
  EXPECT(info.channel_count == 3 && info.mean[2] == 0.75 && info.std[2] == 0.5);
  EXPECT(strcmp(info.color_order, "bgr") == 0 && strcmp(info.layout, "NCHW") == 0);
  EXPECT(strcmp(info.resize, "center_crop") == 0 && info.shorter_side == 8 && info.central_fraction == 1);
  EXPECT(strcmp(info.interpolation, "antialias") == 0 && strcmp(info.decoder, "") == 0);
  octet_image_format format = OCTET_IMAGE_FORMAT_INIT;
  EXPECT(octet_engine_image_format(engine, 0, &format) == OCTET_OK);
  EXPECT(format.channel[0] == 2 && format.channel[2] == 0 && format.offset[0] == -0.5f);
  EXPECT(fabs(format.scale[1] * 255.0 - 2.0) < 1e-6);
  EXPECT_ERROR(octet_engine_image_format(engine, 1, &format), "no input 1");
}

static void run(const octet_engine* engine, const float* x, float* y, const octet_context_options* options) {
  octet_context* context = NULL;
  EXPECT(octet_context_create(engine, options, &context) == OCTET_OK);
  EXPECT_ERROR(octet_context_run(context), "not bound");
  EXPECT(octet_context_bind_input(context, 0, x) == OCTET_OK);
  EXPECT(octet_context_bind_output(context, 0, y) == OCTET_OK);
  EXPECT_ERROR(octet_context_bind_input(context, 7, x), "no input 7");
  EXPECT_ERROR(octet_context_bind_output(context, 0, NULL), "null");
  EXPECT(octet_context_run(context) == OCTET_OK);
  EXPECT(octet_last_error()[0] == '\0');
  octet_context_free(context);
}

static void run_integers(const octet_engine* engine) {
  float x[90], y[120];
  int8_t bytes[90];
  int32_t rounded[120];
  for (int i = 0; i < 90; ++i) x[i] = (float)(bytes[i] = (int8_t)(i * 7 % 41 - 20));
  run(engine, x, y, NULL);
  octet_context* context = NULL;
  EXPECT(octet_context_create(engine, NULL, &context) == OCTET_OK);
  EXPECT(octet_context_bind_typed_input(context, 0, bytes, OCTET_INT8) == OCTET_OK);
  EXPECT(octet_context_bind_typed_output(context, 0, rounded, OCTET_INT32) == OCTET_OK);
  EXPECT(octet_context_run(context) == OCTET_OK);
  for (int i = 0; i < 120; ++i) EXPECT(fabs((double)rounded[i] - (double)y[i]) <= 0.5);
  EXPECT_ERROR(octet_context_bind_typed_input(context, 0, bytes, 17), "type 17");
  EXPECT_ERROR(octet_context_bind_typed_output(context, 3, rounded, OCTET_INT32), "no output 3");
  octet_image_format format = OCTET_IMAGE_FORMAT_INIT;
  format.row_stride = -15;
  EXPECT_ERROR(octet_context_bind_image(context, 0, (const uint8_t*)bytes, &format), "cannot be negative");
  octet_context_free(context);
}

static void add_one(void* user, uint64_t ticket) {
  if (ticket > 0) ++*(int*)user;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  octet_engine* engine = NULL;
  EXPECT_ERROR(octet_engine_load("/nonexistent.octet", &engine), "/nonexistent.octet");
  EXPECT(engine == NULL);
  EXPECT_ERROR(octet_engine_load(NULL, &engine), "path is a null pointer");
  EXPECT_ERROR(octet_engine_from_memory("junk", 4, NULL, &engine), "not an Octet engine file");
  EXPECT(octet_engine_load(argv[1], &engine) == OCTET_OK);
  if (engine == NULL) return 1;
  describe(engine);
  tell_what_it_carries(engine);
  run_integers(engine);

  float x[90], y[120], again[120];
  for (int i = 0; i < 90; ++i) x[i] = (float)(i * 7 % 41 - 20) / 16;
  run(engine, x, y, NULL);
  octet_context_options options = OCTET_CONTEXT_OPTIONS_INIT;
  options.threads = 3;
  options.isa = "scalar";
  memset(again, 0, sizeof again);
  run(engine, x, again, &options);
  EXPECT(memcmp(y, again, sizeof y) == 0);
  int calls = 0;
  options.pool = run_in_turn;
  options.pool_user = &calls;
  memset(again, 0, sizeof again);
  run(engine, x, again, &options);
  EXPECT(memcmp(y, again, sizeof y) == 0);
  EXPECT(calls == 1);

  const int64_t shape[4] = {1, 3, 6, 5}, other[4] = {2, 3, 6, 5};
  int32_t profile = -1;
  octet_tensor_info info = OCTET_TENSOR_INFO_INIT;
  EXPECT(octet_engine_profile_count(engine) == 1);
  EXPECT(octet_engine_find_profile(engine, shape, 4, &profile) == OCTET_OK && profile == 0);
  EXPECT(octet_engine_profile_input(engine, 0, 0, &info) == OCTET_OK && info.shape[3] == 5);
  EXPECT_ERROR(octet_engine_find_profile(engine, other, 4, &profile), "no profile for the input 2x3x6x5");
  EXPECT_ERROR(octet_engine_profile_output(engine, 1, 0, &info), "no profile 1");

  octet_context* context = NULL;
  options.profile = 1;
  EXPECT_ERROR(octet_context_create(engine, &options, &context), "no profile 1");
  options.profile = 0;
  options.isa = "sse9";
  EXPECT_ERROR(octet_context_create(engine, &options, &context), "unknown instruction set");
  /* A program of an older header knows fewer members, one of a newer header more. */
  octet_context_options old_options = OCTET_CONTEXT_OPTIONS_INIT;
  old_options.struct_size = offsetof(octet_context_options, isa);
  old_options.isa = "sse9";
  EXPECT(octet_context_create(engine, &old_options, &context) == OCTET_OK);
  octet_context_free(context);
  struct {
    octet_context_options known;
    int64_t unknown;
  } newer = {OCTET_CONTEXT_OPTIONS_INIT, 0};
  newer.known.struct_size = sizeof newer;
  EXPECT(octet_context_create(engine, &newer.known, &context) == OCTET_OK);
  octet_context_free(context);
  newer.unknown = 1;
  EXPECT_ERROR(octet_context_create(engine, &newer.known, &context), "does not have");

  /* Pixels: the float image 0, 1, 2 ... against its bytes. */
  EXPECT(octet_context_create(engine, NULL, &context) == OCTET_OK);
  uint8_t pixels[90];
  for (int i = 0; i < 90; ++i) pixels[i] = (uint8_t)(i * 3);
  for (int c = 0; c < 3; ++c)
    for (int p = 0; p < 30; ++p) x[c * 30 + p] = (float)pixels[p * 3 + c] * 0.01f + -1.0f;
  octet_image_format format = OCTET_IMAGE_FORMAT_INIT;
  for (int c = 0; c < 3; ++c) format.scale[c] = 0.01f, format.offset[c] = -1.0f;
  EXPECT(octet_context_bind_image(context, 0, pixels, &format) == OCTET_OK);
  EXPECT(octet_context_bind_output(context, 0, y) == OCTET_OK);
  EXPECT(octet_context_run(context) == OCTET_OK);
  EXPECT(octet_context_bind_input(context, 0, x) == OCTET_OK);
  EXPECT(octet_context_bind_output(context, 0, again) == OCTET_OK);
  EXPECT(octet_context_run(context) == OCTET_OK);
  EXPECT(memcmp(y, again, sizeof y) == 0);

  int32_t layers = 0;
  EXPECT(octet_context_profile(context, 3, &layers) == OCTET_OK);
  EXPECT(layers == 4);
  octet_layer_report layer = OCTET_LAYER_REPORT_INIT;
  EXPECT(octet_context_layer(context, 1, &layer) == OCTET_OK);
  EXPECT(strcmp(layer.op, "Conv+Relu") == 0 && strcmp(layer.precision, "int8") == 0 && layer.microseconds > 0);
  EXPECT_ERROR(octet_context_layer(context, 4, &layer), "no layer 4");
  EXPECT_ERROR(octet_context_profile(context, 0, &layers), "at least one run");

  octet_throughput* pool = NULL;
  octet_throughput_options many = OCTET_THROUGHPUT_OPTIONS_INIT;
  many.workers = 2;
  EXPECT(octet_throughput_create(engine, &many, &pool) == OCTET_OK);
  EXPECT(octet_throughput_workers(pool) == 2);
  octet_engine_free(engine); /* contexts and pools keep what they need */
  const float* in[] = {x};
  float results[20][120];
  uint64_t ticket = 0;
  for (int i = 0; i < 20; ++i) {
    float* out[] = {results[i]};
    EXPECT(octet_throughput_submit(pool, in, out, 1, &ticket) == OCTET_OK);
  }
  EXPECT(octet_throughput_wait(pool, ticket) == OCTET_OK);
  EXPECT_ERROR(octet_throughput_wait(pool, 999), "ticket 999");
  EXPECT(octet_throughput_wait_all(pool) == OCTET_OK);
  for (int i = 0; i < 20; ++i) EXPECT(memcmp(results[i], y, sizeof y) == 0);
  int finished = 0;
  octet_throughput_options one = OCTET_THROUGHPUT_OPTIONS_INIT;
  one.workers = 1;
  octet_throughput_free(pool);
  EXPECT(octet_engine_load(argv[1], &engine) == OCTET_OK);
  EXPECT(octet_throughput_create(engine, &one, &pool) == OCTET_OK);
  for (int i = 0; i < 20; ++i) {
    float* out[] = {results[i]};
    EXPECT(octet_throughput_submit_then(pool, in, out, 1, add_one, &finished, &ticket) == OCTET_OK);
  }
  EXPECT(octet_throughput_wait_all(pool) == OCTET_OK);
  EXPECT(finished == 20);
  octet_throughput_free(pool);
  octet_engine_free(engine);
  octet_context_free(context);
  octet_context_free(NULL);
  octet_engine_free(NULL);
  octet_throughput_free(NULL);
  EXPECT(strlen(octet_version()) >= 5);
  if (failures == 0) printf("the C interface holds\n");
  return failures != 0;
}
