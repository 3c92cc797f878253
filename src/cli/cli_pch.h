// Precompiled: what nearly every command includes, of which each costs seconds.
#pragma once
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
