// Precompiled: what nearly every command includes, of which each costs seconds. CLI/CLI.hpp would cost as much again in
// each: it defines CLI11's formatters inline, and every file that has seen them emits them; command_app.cc, which uses
// them, includes it.
#pragma once
#include <CLI/App.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/std_pch.h"
