// If with a known condition, and functions of the model. Files are written field by field: Octet itself writes neither.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <protozero/pbf_writer.hpp>

#include "dense/run.h"
#include "draft_model.h"
#include "ir/evaluate_graph.h"
#include "onnx/export.h"

namespace octet::onnx {
namespace {

using protozero::pbf_writer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;
using Write = std::function<void(pbf_writer&)>;

void node(pbf_writer& graph, int field, const std::string& op, const Names& in, const Names& out,
          const Write& attributes = {}, const std::string& domain = "") {
  pbf_writer n(graph, field);
  for (const std::string& name : in) n.add_string(1, name);
  for (const std::string& name : out) n.add_string(2, name);
  n.add_string(4, op);
  if (attributes) attributes(n);
  if (!domain.empty()) n.add_string(7, domain);
}

void value(pbf_writer& graph, int field, const std::string& name, const std::vector<int64_t>& shape = {}) {
  pbf_writer info(graph, field);
  info.add_string(1, name);
  pbf_writer type(info, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int64(1, 1);
  pbf_writer dims(tensor, 2);
  for (const int64_t size : shape) {
    pbf_writer dim(dims, 1);
    dim.add_int64(1, size);
  }
}

void subgraph(pbf_writer& n, const std::string& key, const std::string& output, const Write& nodes) {
  pbf_writer attribute(n, 5);
  attribute.add_string(1, key);
  attribute.add_int64(20, 5);
  pbf_writer graph(attribute, 6);
  nodes(graph);
  value(graph, 12, output);
}

// y = ... of x[2], which `nodes` writes into the graph.
std::string model(const Write& nodes, const Write& functions = {}) {
  std::string bytes;
  pbf_writer m(bytes);
  m.add_int64(1, 8);
  {
    pbf_writer graph(m, 7);
    nodes(graph);
    value(graph, 11, "x", {2});
    value(graph, 12, "y", {2});
  }
  {
    pbf_writer opset(m, 8);
    opset.add_int64(2, 17);
  }
  {
    pbf_writer opset(m, 8);
    opset.add_string(1, "own");
    opset.add_int64(2, 1);
  }
  if (functions) functions(m);
  return bytes;
}

void boolean(pbf_writer& graph, const std::string& name, bool b) {
  pbf_writer tensor(graph, 5);
  tensor.add_int64(2, 9);
  tensor.add_string(8, name);
  tensor.add_bytes(9, std::string(1, b ? '\1' : '\0'));
}

std::vector<float> run(const std::string& bytes) {
  return ir::evaluate_graph(import_bytes(bytes, {}), {floats({2}, {-1, 2})}).at(0).to_floats();
}

std::string error(const std::string& bytes) {
  try {
    import_bytes(bytes, {});
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

// Both branches and the graph use the same names; the branches read `outer` from outside.
std::string branches(const Write& condition) {
  return model([&](pbf_writer& graph) {
    condition(graph);
    node(graph, 1, "Neg", {"x"}, {"outer"});
    const auto branch = [](const std::string& op) {
      return [=](pbf_writer& g) {
        node(g, 1, op, {"outer"}, {"t"});
        node(g, 1, "Identity", {"t"}, {"inner"});
      };
    };
    node(graph, 1, "If", {"condition"}, {"t"}, [&](pbf_writer& n) {
      subgraph(n, "then_branch", "inner", branch("Relu"));
      subgraph(n, "else_branch", "inner", branch("Abs"));
    });
    node(graph, 1, "Add", {"t", "x"}, {"y"});
  });
}

TEST(Subgraphs, IfOfAConstant) {
  EXPECT_THAT(run(branches([](pbf_writer& g) { boolean(g, "condition", true); })), ElementsAre(0, 2));
  EXPECT_THAT(run(branches([](pbf_writer& g) { boolean(g, "condition", false); })), ElementsAre(0, 4));
}

TEST(Subgraphs, IfOfASize) {
  EXPECT_THAT(run(branches([](pbf_writer& g) {
                node(g, 1, "Shape", {"x"}, {"shape"});
                node(g, 1, "Equal", {"shape", "shape"}, {"condition"});
              })),
              ElementsAre(0, 2));
}

TEST(Subgraphs, IfOfAnActivationIsRefused) {
  EXPECT_THAT(error(branches([](pbf_writer& g) { node(g, 1, "Identity", {"x"}, {"condition"}); })),
              AllOf(HasSubstr("(If)"), HasSubstr("its condition 'condition' is float32, expected bool")));
}

// What the branches compute alone is the graph's; the choice lies behind it.
TEST(Subgraphs, IfThatTheNetworkDecides) {
  const std::string bytes = branches([](pbf_writer& g) {
    node(g, 1, "ReduceSum", {"x"}, {"sum"});
    node(g, 1, "Greater", {"sum", "sum"}, {"condition"});
  });
  const ir::Graph graph = import_bytes(bytes, {});
  ASSERT_TRUE(graph.program);
  EXPECT_THAT(op_names(graph), testing::IsSupersetOf({"Relu", "Abs", "Neg", "ReduceSum"}));
  dense::Memory memory;
  std::vector<dense::Tensor> inputs;
  for (const ir::Tensor& t : ir::evaluate_graph(graph, {floats({2}, {-1, 2})}))
    inputs.push_back(memory.of<float>(t.shape(), t.values<float>()));
  EXPECT_THAT(dense::run(*graph.program, inputs).at(0).values<float>(), ElementsAre(0, 4)) << "nothing is above itself";
  // Written and read again: the same.
  const ir::Graph again = import_bytes(export_bytes(graph), {});
  ASSERT_TRUE(again.program);
  EXPECT_EQ(dense::run(*again.program, inputs).at(0).values<float>()[1], 4);
}

TEST(Subgraphs, BranchOfAnotherBranch) {
  const std::string bytes = model([](pbf_writer& graph) {
    boolean(graph, "yes", true);
    boolean(graph, "no", false);
    node(graph, 1, "If", {"yes"}, {"y"}, [](pbf_writer& n) {
      const auto inner = [](pbf_writer& g) {
        node(g, 1, "Neg", {"x"}, {"a"});
        node(g, 1, "If", {"no"}, {"b"}, [](pbf_writer& m) {
          subgraph(m, "then_branch", "a", [](pbf_writer&) {});
          subgraph(m, "else_branch", "c", [](pbf_writer& h) { node(h, 1, "Add", {"a", "a"}, {"c"}); });
        });
      };
      subgraph(n, "then_branch", "b", inner);
      subgraph(n, "else_branch", "b", inner);
    });
  });
  EXPECT_THAT(run(bytes), ElementsAre(2, -4));
}

// own.Leak(a; slope = 0.5) = LeakyRelu(a, alpha = slope); own.Twice(a) = Leak(Leak(a)) + a, with a slope of 0.25
// inside.
void functions(pbf_writer& m) {
  const auto header = [](pbf_writer& f, const std::string& name) {
    f.add_string(1, name);
    f.add_string(4, "a");
    f.add_string(5, "b");
    f.add_string(10, "own");
    pbf_writer opset(f, 9);
    opset.add_int64(2, 17);
  };
  {
    pbf_writer f(m, 25);
    header(f, "Leak");
    node(f, 7, "LeakyRelu", {"a"}, {"b"}, [](pbf_writer& n) {
      pbf_writer attribute(n, 5);
      attribute.add_string(1, "alpha");
      attribute.add_string(21, "slope");
      attribute.add_int64(20, 1);
    });
    pbf_writer fallback(f, 11);
    fallback.add_string(1, "slope");
    fallback.add_float(2, 0.5f);
    fallback.add_int64(20, 1);
  }
  pbf_writer f(m, 25);
  header(f, "Twice");
  const auto quarter = [](pbf_writer& n) {
    pbf_writer attribute(n, 5);
    attribute.add_string(1, "slope");
    attribute.add_float(2, 0.25f);
    attribute.add_int64(20, 1);
  };
  node(f, 7, "Leak", {"a"}, {"t"}, quarter, "own");
  node(f, 7, "Leak", {"t"}, {"u"}, {}, "own");
  node(f, 7, "Add", {"u", "a"}, {"b"});
}

TEST(Subgraphs, FunctionsBecomeTheirBodies) {
  const std::string bytes = model(
      [](pbf_writer& graph) {
        node(graph, 1, "Twice", {"x"}, {"t"}, {}, "own");
        node(graph, 1, "Twice", {"t"}, {"y"}, {}, "own");
      },
      functions);
  // -1: -0.125 - 1 = -1.125, and (1 + 1 / 8) of that once more.
  EXPECT_THAT(run(bytes), ElementsAre(-1.265625f, 8));
}

TEST(Subgraphs, FunctionsThatCallThemselvesAreRefused) {
  const std::string bytes = model([](pbf_writer& graph) { node(graph, 1, "Loop", {"x"}, {"y"}, {}, "own"); },
                                  [](pbf_writer& m) {
                                    pbf_writer f(m, 25);
                                    f.add_string(1, "Loop");
                                    f.add_string(4, "a");
                                    f.add_string(5, "b");
                                    f.add_string(10, "own");
                                    node(f, 7, "Loop", {"a"}, {"t"}, {}, "own");
                                    node(f, 7, "Loop", {"t"}, {"b"}, {}, "own");
                                  });
  EXPECT_THAT(error(bytes), HasSubstr("calls itself"));
}

TEST(Subgraphs, FunctionsOfAnotherOpsetAreRefused) {
  const std::string bytes = model([](pbf_writer& graph) { node(graph, 1, "Old", {"x"}, {"y"}, {}, "own"); },
                                  [](pbf_writer& m) {
                                    pbf_writer f(m, 25);
                                    f.add_string(1, "Old");
                                    f.add_string(4, "a");
                                    f.add_string(5, "b");
                                    f.add_string(10, "own");
                                    node(f, 7, "Relu", {"a"}, {"b"});
                                    pbf_writer opset(f, 9);
                                    opset.add_int64(2, 12);
                                  });
  EXPECT_THAT(error(bytes), AllOf(HasSubstr("opset 12"), HasSubstr("onnx.inliner")));
}

// What parses deeper than any model would exhaust the stack.
TEST(Subgraphs, DeepNestingIsRefused) {
  const std::function<void(pbf_writer&, int)> nested = [&](pbf_writer& graph, int depth) {
    node(graph, 1, "If", {"c"}, {"y"}, [&](pbf_writer& n) {
      if (depth > 0) subgraph(n, "then_branch", "y", [&](pbf_writer& g) { nested(g, depth - 1); });
    });
  };
  EXPECT_THAT(error(model([&](pbf_writer& graph) { nested(graph, 40); })), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace octet::onnx
