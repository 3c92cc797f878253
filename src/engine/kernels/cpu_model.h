// What the cost estimates of tactics assume of the processor at hand. Estimates are only compared with one another, so
// one clock serves all processors; what differs between vendors was measured with bench/kernels/winograd_layers.cc.
#pragma once

namespace octet::kernels {

struct CpuModel {
  double cycles_per_us = 3500;
  // The same for tactics whose rates were measured on AMD's Zen 4, where all convolutions take about 1.6 times as long
  // as the estimates of the others say.
  double cycles_per_us_of_zen4 = 3500;
  // Loads, additions and shuffles beside products of 16-bit integers wait for the same ports; false: they are free.
  bool shared_ports = true;
  double weight_transform = 1.2;    // cycles to transform 32 weights for Winograd's products while these run
  double l2_bytes = 1 << 20;        // of weights that stay in the L2 cache between two passes over them
  double streamed_per_cycle = 3.5;  // bytes of weights from beyond it, other layers between
  // A residual's products looked up in two tables of registers beat multiplying them.
  bool residual_tables = false;
};

const CpuModel& cpu_model();

}  // namespace octet::kernels
