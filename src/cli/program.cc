#include "cli/program.h"

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cli/command_app.h"
#include "cli/commands.h"
#include "cli/other_program.h"
#include "cli/waiting_threads.h"

namespace octet::cli {
namespace {

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string list_of(const std::vector<Command>& commands) {
  std::string out;
  size_t width = 0;
  for (const Command& command : commands) width = std::max(width, command.name.size());
  for (const Command& command : commands)
    out += "  " + command.name + std::string(width + 2 - command.name.size(), ' ') + command.summary +
           (command.unavailable.empty() ? "" : " (not in this build)") + "\n";
  return out;
}

std::string program_help() {
  return "Octet: low-precision training and INT8 deployment of vision networks\n\n"
         "usage: octet COMMAND [OPTIONS]\n\ncommands:\n" +
         list_of(all_commands()) +
         "\n"
         "  octet COMMAND --help   options and an example of a command\n"
         "  octet --version        version and build\n"
         "\n"
         "exit codes: 0 done, 1 the work failed, 2 usage or spec error, 3 a check did not hold,\n"
         "            128 and the number of the signal that stopped it (130: Ctrl-C, 143: SIGTERM)\n";
}

const char* version_text() {
#if defined(OCTET_WITH_TRAINING) || defined(OCTET_TRAINING_PROGRAM)
  return "octet " OCTET_VERSION "\n";
#else
  return "octet " OCTET_VERSION " (without training)\n";
#endif
}

// `what`: "command", or what the kinds of a command are called.
const Command& find_command(const std::vector<Command>& commands, const std::string& name, const std::string& what) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string hint = did_you_mean(name, names);
  fail_usage("unknown ", what, " '", name, "'",
             hint.empty() ? "; the " + what + "s are " + CLI::detail::join(names, ", ") : hint);
}

// Every way to write every option, as in "-m" and "--model".
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// "-pth" and "-pth=0.2" under the names that the parser knows, which takes a single dash for flags of one letter.
void spell_out(std::vector<std::string>& arguments, const std::map<std::string, std::string>& single_dash) {
  for (std::string& argument : arguments) {
    const size_t end = std::min(argument.find('='), argument.size());
    const auto name = single_dash.find(argument.substr(0, end));
    if (name != single_dash.end()) argument = name->second + argument.substr(end);
  }
}

// Whether the program beside this one is to do it, as far as the arguments tell.
bool goes_elsewhere(const Command& command, const std::vector<std::string>& arguments) {
  if (command.program.empty()) return false;
  const auto needs_it = [&](const std::string& argument) {
    const std::string flag = argument.substr(0, argument.find('='));
    return std::find(command.only_there.begin(), command.only_there.end(), flag) != command.only_there.end();
  };
  return std::any_of(arguments.begin(), arguments.end(), needs_it);
}

// `before`: "convert ", where the command is a kind of that.
[[noreturn]] void go_elsewhere(const Command& command, std::vector<std::string> arguments, const std::string& before) {
  arguments.insert(arguments.begin(), command.name);
  if (!before.empty()) arguments.insert(arguments.begin(), before.substr(0, before.size() - 1));
  let_waiting_threads_sleep();
  become_program(command.program, arguments);
}

// What the work of a command takes LibTorch for, as the command found out.
[[noreturn]] void go_on_with_training(const Command& command, const std::vector<std::string>& arguments,
                                      const std::string& before, const NeedsTraining& why) {
  if (command.program.empty())
    fail_usage(why.what(), "; that takes LibTorch, and this build has no training: configure it with -DOCTET_TRAIN=ON");
  if (!has_program(command.program))
    fail_usage(why.what(), "; that takes LibTorch: install the package octet-training, or keep ", command.program,
               " beside octet");
  go_elsewhere(command, arguments, before);
}

ExitCode run_command(const Command& command, std::vector<std::string> arguments, const std::string& before = "");

// `octet convert spec ...`
ExitCode run_kind(const Command& command, const std::vector<std::string>& arguments) {
  const bool help = arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h";
  if (!help)
    return run_command(find_command(command.kinds, arguments[0], command.name + " command"),
                       {arguments.begin() + 1, arguments.end()}, command.name + " ");
  std::string examples;
  for (const Command& kind : command.kinds)
    if (!kind.examples.empty()) examples += "  " + kind.examples.front() + "\n";
  (arguments.empty() ? std::cerr : std::cout)
      << command.summary << "\n\nusage: octet " << command.name << " COMMAND [OPTIONS]\n\ncommands:\n"
      << list_of(command.kinds) << "\nExamples:\n"
      << examples << "  octet " << command.name << " COMMAND --help\n";
  return arguments.empty() ? ExitCode::kUsage : ExitCode::kDone;
}

// `before`: "convert ", where the command is a kind of that.
ExitCode run_command(const Command& command, std::vector<std::string> arguments, const std::string& before) {
  if (!command.kinds.empty()) return run_kind(command, arguments);
  const std::string name_in_errors = before + command.name;  // behind "octet: "
  const std::string whole_name = "octet " + name_in_errors;
  const std::string see_help = "; see '" + whole_name + " --help'";
  if (!command.unavailable.empty()) fail_usage("'", command.name, "' is missing: ", command.unavailable);
  if (goes_elsewhere(command, arguments)) go_elsewhere(command, std::move(arguments), before);
  const std::vector<std::string> given = arguments;
  CommandApp command_app(command, whole_name);
  CLI::App& app = *command_app.parser;
  try {
    spell_out(arguments, command.single_dash);
    std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 wants in a vector
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return ExitCode::kDone;
  } catch (const CLI::ParseError& e) {
    fail_usage(name_in_errors, ": ", one_line(e.what()), see_help);
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.size() < 2 || extra[0] != '-')
      fail_usage(name_in_errors, ": unexpected argument '", extra, "'", see_help);
    const std::string name = extra.substr(0, extra.find('='));
    std::vector<std::string> names = option_names(app);
    for (const auto& [single_dash, spelled_out] : command.single_dash) names.push_back(single_dash);
    const std::string hint = did_you_mean(name, names);
    fail_usage(name_in_errors, ": unknown option '", name, "'", hint.empty() ? see_help : hint);
  }
  set_log_level(command_app.quiet ? LogLevel::kError : command_app.verbose ? LogLevel::kDebug : LogLevel::kInfo);
  try {
    return command_app.run();
  } catch (const NeedsTraining& why) {
    go_on_with_training(command, given, before, why);
  }
}

ExitCode run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << program_help();
    return ExitCode::kUsage;
  }
  const std::string& first = arguments[0];
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    std::cout << program_help();
    return ExitCode::kDone;
  }
  if (first == "--version") {
    std::cout << version_text();
    return ExitCode::kDone;
  }
  if (first == "help") {
    std::vector<std::string> rest(arguments.begin() + 2, arguments.end());
    rest.push_back("--help");
    return run_command(find_command(all_commands(), arguments[1], "command"), rest);
  }
  return run_command(find_command(all_commands(), first, "command"), {arguments.begin() + 1, arguments.end()});
}

// While it lives, what is printed to standard output is printable.
class PrintableOutput {
 public:
  PrintableOutput() : before_(std::cout.rdbuf()), buffer_(*before_) { std::cout.rdbuf(&buffer_); }
  ~PrintableOutput() {
    std::cout.flush();
    std::cout.rdbuf(before_);
  }
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

 private:
  std::streambuf* before_;
  PrintableBuffer buffer_;
};

int report(const std::string& message, ExitCode code) {
  std::cout.flush();
  if (!message.empty())  // else another process has told it
    std::cerr << "octet: " << printable_line(one_line(message)) << std::endl;
  return static_cast<int>(code);
}

}  // namespace

namespace {

int run_to_status(const std::vector<std::string>& arguments) {
  const PrintableOutput printable_output;
  install_end_handler();
  try {
#ifdef OCTET_WITH_TRAINING
    // Started by hand, not by octet: libgomp has read the environment already.
    if (let_waiting_threads_sleep()) become_program("octet_training", arguments);
#endif
    const ExitCode code = run(arguments);
    if (!std::cout.flush()) fail("standard output cannot be written");
    return static_cast<int>(code);
  } catch (const UserError& e) {
    return report(e.what(), e.code());
  } catch (const InternalError& e) {
    return report(str(e.what(), "; this is a fault of Octet, please report it"), ExitCode::kFailed);
  } catch (const std::bad_alloc&) {
    return report("out of memory", ExitCode::kFailed);
  } catch (const std::exception& e) {
    return report(str("unexpected error: ", e.what()), ExitCode::kFailed);
  }
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  const int status = run_to_status(arguments);
  // A worker tells its launcher by the status alone: a worker that a signal ends was lost.
  if (status > 128 && !std::getenv("OCTET_WORKER")) end_by_signal(status - 128);
  return status;
}

}  // namespace octet::cli
