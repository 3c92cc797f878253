// Outputs must not be inputs. A command says what it is going to write before it reads anything; from then on opening
// one of these files for reading is a mistake of the person at the keyboard, by whatever path or link it is reached.
#pragma once
#include <filesystem>
#include <string>

struct stat;

namespace octet {

// `flag` ("-o") stands in messages. UserError (exit 2) when another flag has named the same file already. Devices,
// pipes and files that do not exist yet are nobody's input. May be said again.
void guard_output(const std::filesystem::path& path, const std::string& flag);

// UserError (exit 2) when `path`, or the open file that `info` is of, is a guarded output.
void require_no_output(const std::filesystem::path& path);
void require_no_output(const std::filesystem::path& path, const struct stat& info);

// UserError (exit 2) unless `path` is an existing file and no guarded output; `flag` ("-m") is named in the message.
void require_file(const std::string& path, const std::string& flag);

}  // namespace octet
