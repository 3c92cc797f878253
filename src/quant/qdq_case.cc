#include "quant/qdq_case.h"

#include "base/error.h"
#include "quant/node_selection.h"

namespace octet::quant {

QdqCase case_of_chain(std::string name, const std::string& chain, std::vector<LinkInput> inputs) {
  if (const std::string problem = problem_of(NodeSelector{.chain = chain}); !problem.empty())
    fail_usage("quantization case '", name, "': ", problem);
  const size_t links = chain_links(chain).size();
  for (const LinkInput& input : inputs)
    if (input.link >= links)
      fail_usage("quantization case '", name, "': link ", input.link, " of the chain ", chain, ", which has ", links,
                 " (the first is 0)");
  return {.name = std::move(name), .find = [chain, inputs = std::move(inputs)](const ir::Graph& graph) {
            std::vector<QdqInput> out;
            for (const std::vector<const ir::Node*>& nodes : find_chains(graph, chain))
              for (const LinkInput& input : inputs)
                if (const ir::Node* node = nodes[input.link]; node->has_input(input.input))
                  out.push_back({node, input.input, input.quantize});
            return out;
          }};
}

}  // namespace octet::quant
