// docs/spec.md and the help of `octet spec`.
#include "schema/reference.h"

#include "spec/experiment_schema.h"

namespace octet::spec {
namespace {

constexpr const char* kIntroduction =
    R"(# The experiment file

<!-- Generated from what each layer says of its options by `octet spec --markdown`; a test compares the two. -->

One YAML file describes an experiment from the first training to the engine. Every key has a default, so the file says
only what is special about the experiment. `octet spec --data FOLDER --arch NETWORK` writes one for a folder of images,
`octet spec --defaults` one with every key:

```yaml
model: {arch: resnet20, num_classes: 10, input: [1, 28, 28]}
data:
  train: {format: idx, path: /usr/share/datasets/fashion-mnist, split: train}
  val:   {format: idx, path: /usr/share/datasets/fashion-mnist, split: test}
  augment: {crop_padding: 2, flip: true}
train: {epochs: 8, batch_size_per_gpu: 128}
finetune: {epochs: 2, optimizer: {lr: 0.005}}
```

The same file drives all stages:

| stage | command | uses |
|---|---|---|
| float | `octet train --stage float` | `train` |
| calibration | `octet calibrate` | `quant`, `data.calibration` |
| qat | `octet train --stage qat -m CALIBRATED` | `finetune`, `quant` |
| control | `octet train --stage control -m FLOAT` | `finetune`, without quantization: what QAT is to be compared with |

An unknown key, a wrong type, a value out of range or a missing file is an error with line and column before any work
starts. `--set KEY=VALUE` on the command line changes a key for one run, as in `--set train.optimizer.lr=0.05`; it takes
part in the defaults of `finetune`. Behind a list of sections a key is set in each of them: `--set data.train.limit=100`
takes 100 images of every source, `--set data.train[1].limit=100` of the second one. `model.num_classes`, `model.input`,
`data.mean` and `data.std` may be `auto`. Relative paths are relative to the
working directory. `octet spec -e FILE` checks a file and prints it with every key resolved.
)";

}  // namespace

std::string reference_markdown() {
  ExperimentSpec spec;
  Section root;
  describe(root, spec);
  return kIntroduction + schema::reference_markdown(root);
}

std::string section_help(const std::string& path) {
  ExperimentSpec spec;
  Section root;
  describe(root, spec);
  return schema::section_help(root, path, "the experiment file");
}

}  // namespace octet::spec
