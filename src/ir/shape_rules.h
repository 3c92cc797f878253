// Shape rules, one per family of operators; ops.def names them. A rule reads the types (and constants) of the inputs
// and sets the type of every output. Dynamic dimensions (kDynamic) pass through where they can. A misfit is a UserError
// that names the node, the value, expected and actual shape.
#pragma once
namespace octet::ir {
struct Node;
void infer_same(Node&);       // output 0 has the type of input 0
void infer_broadcast(Node&);  // numpy broadcasting over all inputs
void infer_batch_norm(Node&);
void infer_layer_norm(Node&);
void infer_clip(Node&);
void infer_prelu(Node&);
void infer_softmax(Node&);  // and LogSoftmax
void infer_dropout(Node&);
void infer_conv(Node&);
void infer_conv_transpose(Node&);
void infer_gemm(Node&);
void infer_matmul(Node&);
void infer_pool(Node&);
void infer_global_pool(Node&);
void infer_reduce(Node&);
void infer_argmax(Node&);
void infer_concat(Node&);
void infer_split(Node&);
void infer_slice(Node&);
void infer_pad(Node&);
void infer_reshape(Node&);
void infer_flatten(Node&);
void infer_squeeze(Node&);
void infer_unsqueeze(Node&);
void infer_transpose(Node&);
void infer_expand(Node&);
void infer_resize(Node&);
void infer_depth_to_space(Node&);
void infer_cast(Node&);
void infer_quantize(Node&);
void infer_dequantize(Node&);
void infer_fake_quantize(Node&);
}  // namespace octet::ir
