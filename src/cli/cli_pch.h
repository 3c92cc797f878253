// Precompiled: what nearly every command includes, of which each costs seconds.
#pragma once
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/std_pch.h"
