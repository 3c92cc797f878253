# Sourced by scripts that take a user from nothing to a finished results folder: what is needed is installed and built,
# then each command runs as a user would type it. Steps that are done are skipped by a second run, and the step that
# failed is taken up again. `octet` is the program.

say() { printf '\n== %s\n' "$*"; }

# Says how to go on where a step fails. $1: the script as the user calls it.
on_failure_say_how_to_go_on() {
  trap 'status=$?; [ $status -eq 0 ] || echo "'"$1"': this step failed; when what it names is mended, run it again: it goes on from here" >&2' EXIT
}

build_octet() {
  say "Debian packages"
  scripts/install_packages.sh
  say "LibTorch"
  scripts/fetch_libtorch.sh
  say "build"
  cmake --preset release >/dev/null
  cmake --build --preset release -j "$(nproc)" --target octet_cli octet_installed
  say "ONNX Runtime (the rival of the benchmark)"
  scripts/peers_venv.sh
  octet=build/release/bin/octet
}

# step OUTPUT COMMAND...: octet COMMAND..., unless its output is there already.
step() {
  local output="$1"
  shift
  if [ -e "$output" ]; then
    printf '\n== done before: %s\n' "$output"
  else
    printf '\n$ octet %s\n' "$*"
    "$octet" "$@"
  fi
}

# start_clock, note_time FOLDER: notes the seconds in between, and beside them those in which this virtual machine wanted a
# CPU that its host gave to others (/proc/stat). What was spent by earlier runs that were interrupted counts too.
stolen_seconds() { awk -v hz="$(getconf CLK_TCK)" -v cpus="$(nproc)" '/^cpu / { printf "%d", $9 / hz / cpus }' /proc/stat; }
start_clock() { started=$SECONDS stolen=$(stolen_seconds); }
note_time() {
  echo $((SECONDS - started)) >>"$1/seconds.log"
  echo $(($(stolen_seconds) - stolen)) >>"$1/stolen.log"
}
