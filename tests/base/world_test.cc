#include "base/world.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace octet {
namespace {

Environment of(std::map<std::string, std::string> variables) {
  auto kept = std::make_shared<std::map<std::string, std::string>>(std::move(variables));
  return [kept](const char* name) -> const char* {
    const auto found = kept->find(name);
    return found == kept->end() ? nullptr : found->second.c_str();
  };
}

TEST(World, IsAloneWhereNothingIsSaid) {
  const World world = world_of(of({}));
  EXPECT_EQ(world.size, 1);
  EXPECT_EQ(world.rank, 0);
  EXPECT_TRUE(world.started_by.empty());
  EXPECT_FALSE(workers_of(of({}), 4));
}

std::map<std::string, std::string> torchrun() {
  return {{"RANK", "3"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"MASTER_ADDR", "node1"},
          {"MASTER_PORT", "1234"},
          {"TORCHELASTIC_RUN_ID", "x"},
          {"TORCHELASTIC_RESTART_COUNT", "2"}};
}

TEST(World, OfTorchrun) {
  auto variables = torchrun();
  World world = world_of(of(variables));
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.master, "node1");
  EXPECT_EQ(world.port, 1234);
  EXPECT_EQ(world.restarts, 2);
  EXPECT_EQ(world.started_by, "torchrun");
  EXPECT_FALSE(world.served);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  EXPECT_FALSE(world_of(of(variables)).served);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_TRUE(world_of(of(variables)).served);
  // torchrun in a pod, or in a step of Slurm: its own variables count.
  variables["PET_NNODES"] = "2";
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_STEP_NUM_TASKS"] = "2";
  world = world_of(of(variables));
  EXPECT_EQ(world.started_by, "torchrun");
  EXPECT_EQ(world.rank, 3);
  EXPECT_FALSE(workers_of(of(variables), 8));
}

TEST(World, RefusesWhatContradictsItself) {
  auto variables = torchrun();
  variables["RANK"] = "4";
  EXPECT_THROW(world_of(of(variables)), UserError);
  variables["RANK"] = "three";
  EXPECT_THROW(world_of(of(variables)), UserError);
  variables = torchrun();
  variables.erase("MASTER_ADDR");
  EXPECT_THROW(world_of(of(variables)), UserError);
}

// In PyTorchJob RANK is the index of the pod.
TEST(World, OfKubernetes) {
  const auto variables = of({{"PET_NNODES", "2"},
                             {"PET_NPROC_PER_NODE", "4"},
                             {"PET_NODE_RANK", "1"},
                             {"PET_MASTER_ADDR", "job-node-0-0.job"},
                             {"PET_MASTER_PORT", "29400"},
                             {"RANK", "1"},
                             {"WORLD_SIZE", "8"}});
  EXPECT_EQ(world_of(variables).size, 1);
  const auto workers = workers_of(variables, 8);
  ASSERT_TRUE(workers);
  EXPECT_EQ(workers->workers, 4);
  EXPECT_EQ(workers->nodes, 2);
  EXPECT_EQ(workers->node, 1);
  EXPECT_EQ(workers->master, "job-node-0-0.job");
  EXPECT_EQ(workers->port, 29400);
  EXPECT_EQ(workers_of(of({{"PET_NPROC_PER_NODE", "gpu"}}), 3)->workers, 3);
  EXPECT_FALSE(workers_of(of({{"PET_NPROC_PER_NODE", "1"}, {"PET_NNODES", "1"}}), 3));
  EXPECT_THROW(workers_of(of({{"PET_NNODES", "1:4"}}), 1), UserError);
  EXPECT_THROW(workers_of(of({{"PET_NNODES", "2"}, {"PET_NODE_RANK", "2"}}), 1), UserError);
}

TEST(World, OfSlurm) {
  std::map<std::string, std::string> variables = {
      {"SLURM_PROCID", "5"},         {"SLURM_STEP_NUM_TASKS", "8"},          {"SLURM_LOCALID", "1"},
      {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}, {"SLURM_STEP_NODELIST", "gpu[07-08]"},
      {"SLURM_JOB_ID", "1234567"}};
  const World world = world_of(of(variables));
  EXPECT_EQ(world.rank, 5);
  EXPECT_EQ(world.size, 8);
  EXPECT_EQ(world.local_rank, 1);
  EXPECT_EQ(world.local_size, 4);
  EXPECT_EQ(world.master, "gpu07");
  EXPECT_EQ(world.port, 15000 + 4567);
  EXPECT_EQ(world.started_by, "Slurm");
  variables["MASTER_ADDR"] = "10.0.0.1";
  variables["MASTER_PORT"] = "4000";
  EXPECT_EQ(world_of(of(variables)).master, "10.0.0.1");
  EXPECT_EQ(world_of(of(variables)).port, 4000);
  // The batch script itself, before srun.
  EXPECT_EQ(world_of(of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})).size, 1);
}

TEST(World, FirstHostOfAList) {
  EXPECT_EQ(first_host("node1"), "node1");
  EXPECT_EQ(first_host("node1,node2"), "node1");
  EXPECT_EQ(first_host("node[03-05,9],other"), "node03");
  EXPECT_EQ(first_host("a,node[03-05]"), "a");
  EXPECT_EQ(first_host("node[7]"), "node7");
  EXPECT_THROW(first_host(""), UserError);
}

TEST(World, OfMpi) {
  World world = world_of(of({{"OMPI_COMM_WORLD_RANK", "2"},
                             {"OMPI_COMM_WORLD_SIZE", "3"},
                             {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                             {"SLURM_PROCID", "0"},
                             {"SLURM_STEP_NUM_TASKS", "2"}}));
  EXPECT_EQ(world.rank, 2);
  EXPECT_EQ(world.size, 3);
  EXPECT_EQ(world.master, "127.0.0.1");
  EXPECT_EQ(world.started_by, "mpirun");
  std::map<std::string, std::string> spread = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  EXPECT_THROW(world_of(of(spread)), UserError) << "nothing says where rank 0 is";
  spread["MASTER_ADDR"] = "node1";
  EXPECT_EQ(world_of(of(spread)).master, "node1");
}

}  // namespace
}  // namespace octet
