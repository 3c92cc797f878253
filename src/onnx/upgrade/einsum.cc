// Einsum by Transpose, Reshape, MatMul, Mul and ReduceSum.
#include <algorithm>
#include <map>
#include <set>

#include "onnx/upgrade/parts.h"
#include "onnx/upgrade/rules.h"

namespace octet::onnx {
namespace {

using ir::Shape;

// A value whose axes have these labels; sizes as far as they are known.
struct Operand {
  std::string value, labels;
};

bool has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

class Einsum {
 public:
  Einsum(const SourceNode& node, UpgradeContext& context) : node_(node), context_(context), f_(node, context) {}

  Nodes run(const std::string& equation) {
    auto [operands, result] = parse(equation);
    Operand product = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) {
      // What later operands and the result still need.
      std::string needed = result;
      for (size_t k = i + 1; k < operands.size(); ++k) needed += operands[k].labels;
      product = combined(product, operands[i], needed);
    }
    product = ordered(summed(product, result), result);
    if (product.value == node_.inputs[0]) f_("Identity", {product.value});
    return f_.nodes();
  }

 private:
  std::pair<std::vector<Operand>, std::string> parse(std::string text) {
    const std::string whole = text;
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    std::vector<Operand> operands;
    for (size_t start = 0; start <= left.size();) {
      const size_t end = std::min(left.find(',', start), left.size());
      operands.push_back({"", left.substr(start, end - start)});
      start = end + 1;
    }
    if (operands.size() != node_.inputs.size())
      fail("its equation '", whole, "' has ", operands.size(), " terms for ", node_.inputs.size(), " inputs");
    std::map<char, int> times;
    std::string spread;  // labels of the axes that "..." stands for
    for (size_t i = 0; i < operands.size(); ++i) {
      Operand& o = operands[i];
      o.value = node_.inputs[i];
      const Shape shape = known_shape(o.value, context_);
      if (const size_t dots = o.labels.find("..."); dots != std::string::npos) {
        const size_t named = o.labels.size() - 3;
        if (named > shape.size()) fail("its equation '", whole, "' does not fit a tensor of rank ", shape.size());
        std::string own;
        for (size_t a = 0; a < shape.size() - named; ++a) own += static_cast<char>('0' + a);
        if (!spread.empty() && !own.empty() && spread != own)
          fail("its equation '", whole, "' has ... of different ranks, which is not supported");
        if (!own.empty()) spread = own;
        o.labels.replace(dots, 3, own);
      }
      if (o.labels.size() != shape.size())
        fail("its equation '", whole, "' has ", o.labels.size(), " labels for a tensor of rank ", shape.size());
      if (std::set<char>(o.labels.begin(), o.labels.end()).size() != o.labels.size())
        fail("its equation '", whole, "' names an axis of one term twice (a diagonal), which is not supported");
      for (size_t a = 0; a < shape.size(); ++a) note_size(o.labels[a], shape[a]);
      for (const char label : o.labels) ++times[label];
    }
    std::string result;
    if (arrow == std::string::npos) {
      result = spread;
      for (const auto& [label, count] : times)
        if (count == 1 && !has(spread, label)) result += label;
    } else {
      result = text.substr(arrow + 2);
      if (const size_t dots = result.find("..."); dots != std::string::npos) result.replace(dots, 3, spread);
    }
    for (const char label : result)
      if (times.count(label) == 0 || std::count(result.begin(), result.end(), label) != 1)
        fail("its equation '", whole, "' is not understood");
    return {operands, result};
  }

  void note_size(char label, int64_t size) {
    const auto [it, is_new] = sizes_.emplace(label, size);
    if (is_new) return;
    if (it->second == ir::kDynamic) it->second = size;
    if (size != ir::kDynamic && size != it->second)
      fail("axis '", std::string(1, label), "' has the sizes ", it->second, " and ", size,
           "; broadcasting is not supported");
  }

  Shape shape_of(const std::string& labels) const {
    Shape shape;
    for (const char label : labels) shape.push_back(sizes_.at(label));
    return shape;
  }

  // Without the axes that nobody needs.
  Operand summed(const Operand& o, const std::string& needed) {
    std::vector<int64_t> axes;
    std::string left;
    for (size_t a = 0; a < o.labels.size(); ++a) {
      if (has(needed, o.labels[a]))
        left += o.labels[a];
      else
        axes.push_back(static_cast<int64_t>(a));
    }
    return axes.empty() ? o : Operand{f_.reduce("ReduceSum", o.value, axes, false), left};
  }

  Operand ordered(const Operand& o, const std::string& labels) {
    if (o.labels == labels) return o;
    std::vector<int64_t> perm;
    for (const char label : labels) perm.push_back(static_cast<int64_t>(o.labels.find(label)));
    return {f_("Transpose", {o.value}, {{"perm", perm}}), labels};
  }

  // The labels of `batch` as they are, those of `rows` and of `columns` as one axis each.
  std::string as_matrices(const Operand& o, const std::string& batch, const std::string& rows,
                          const std::string& columns) {
    const Operand in_order = ordered(o, batch + rows + columns);
    if (rows.size() == 1 && columns.size() == 1) return in_order.value;
    Shape shape = shape_of(batch);
    for (const std::string* part : {&rows, &columns}) {
      int64_t size = 1;
      for (const int64_t d : shape_of(*part))
        size = size == ir::kDynamic || d == ir::kDynamic ? ir::kDynamic : size * d;
      shape.push_back(size);
    }
    return f_.reshape(in_order.value, reshape_target(shape, batch.size() + (rows.size() == 1)));
  }

  Operand combined(Operand a, Operand b, const std::string& needed) {
    a = summed(a, needed + b.labels);
    b = summed(b, needed + a.labels);
    std::string batch, inner, rows, columns;
    for (const char label : a.labels) (!has(b.labels, label) ? rows : has(needed, label) ? batch : inner) += label;
    for (const char label : b.labels)
      if (!has(a.labels, label)) columns += label;
    if (inner.empty()) return multiplied(a, b, batch + rows + columns);
    // A matrix: a product of the last axis, whatever the sizes of the others are.
    const auto by_matrix = [&](const Operand& x, const std::string& left, const Operand& w, const std::string& right) {
      const std::string lines = ordered(x, left + inner).value;
      return Operand{f_("MatMul", {lines, ordered(w, inner + right).value}), left + right};
    };
    const bool line = batch.empty() && inner.size() == 1;
    if (line && columns.size() == 1 && !rows.empty()) return by_matrix(a, rows, b, columns);
    if (line && rows.size() == 1 && !columns.empty()) return by_matrix(b, columns, a, rows);
    const std::string x = as_matrices(a, batch, rows, inner), w = as_matrices(b, batch, inner, columns);
    Operand y{f_("MatMul", {x, w}), batch + rows + columns};
    if (rows.size() != 1 || columns.size() != 1) {
      y.value = f_.reshape(y.value, reshape_target(shape_of(y.labels), batch.size() + (rows.size() == 1)));
    }
    return y;
  }

  // The product of elements, where nothing is summed.
  Operand multiplied(const Operand& a, const Operand& b, const std::string& labels) {
    const auto spread = [&](const Operand& o) {
      std::string own;
      std::vector<int64_t> missing;
      for (size_t i = 0; i < labels.size(); ++i) {
        if (has(o.labels, labels[i]))
          own += labels[i];
        else
          missing.push_back(static_cast<int64_t>(i));
      }
      const std::string value = ordered(o, own).value;
      return missing.empty() ? value : f_("Unsqueeze", {value, f_.ints("axes", missing)});
    };
    const std::string x = spread(a), y = spread(b);
    return {f_("Mul", {x, y}), labels};
  }

  const SourceNode& node_;
  UpgradeContext& context_;
  Formula f_;
  std::map<char, int64_t> sizes_;
};

Nodes einsum(SourceNode node, int, UpgradeContext& context) {
  const auto equation = take<std::string>(node, "equation");
  if (!equation) fail("has no equation");
  require_no_attributes(node);
  for (const std::string& input : node.inputs)
    if (input.empty()) fail("lacks an input");
  return Einsum(node, context).run(*equation);
}

}  // namespace

std::vector<UpgradeRow> einsum_rules() {
  return {{"Einsum", einsum}};
}

}  // namespace octet::onnx
