// The same for tests of what trains: LibTorch's headers cost 15 s a file.
#pragma once
#include "test_pch.h"
#include "train/torch_pch.h"
